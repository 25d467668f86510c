// SPDX-License-Identifier: Apache-2.0

//go:build lab && kills

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/kills"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// Everything is killed once at every step of what unseals a site. The runs have a build tag of their own, so that
// `make test` does not wait for them: docs/internals/encryption-kills.md says how to make them, some of them, or the rest.

// missTries is how often a run is begun again because its step was over before there was something to kill.
const missTries = 4

// killing are the runs, and the group that those of one kind of work share.
type killing struct {
	results *kills.Results
	path    string
	vault   *vault
}

// TestKilledWhileUnsealed: whatever is killed when, it ends sealed, without two writers and without the loss of an
// acknowledged row, neither by the group nor by the site that was hit.
func TestKilledWhileUnsealed(t *testing.T) {
	k := &killing{path: filepath.Join(lab.Repo, "out", "encryption-kills.json")}
	build, err := cluster.BuildSum(lab.Lab.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if k.results, err = kills.Open(k.path, build); err != nil {
		t.Fatal(err)
	}
	chosen := chosenKills(t, k.results)
	keepLogs(t)
	for i, c := range chosen {
		if i > 0 && chosen[i-1].Work != c.Work {
			k.end(t)
		}
		t.Run(c.Name(), func(t *testing.T) {
			t.Logf("run %d of %d", i+1, len(chosen))
			k.run(t, c)
		})
	}
	k.end(t)
	t.Logf("%d runs have no result yet: %s", len(k.results.Missing()), kills.Names(k.results.Missing()))
}

// chosenKills are the runs that KILLS names; with CONTINUE without those that have passed with this build.
func chosenKills(t *testing.T, before *kills.Results) []kills.Case {
	t.Helper()
	pattern, err := regexp.Compile(os.Getenv("KILLS"))
	if err != nil {
		t.Fatal(err)
	}
	var chosen []kills.Case
	for _, c := range kills.Cases() {
		if steps[c.Step] == nil || killers[c.Kill].do == nil || works[c.Work] == nil {
			t.Fatalf("nobody knows how to do %s", c.Name())
		}
		if pattern.MatchString(c.Name()) && (os.Getenv("CONTINUE") == "" || !before.Passed(c)) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 && os.Getenv("CONTINUE") == "" {
		t.Fatalf("KILLS=%s is none of %s", os.Getenv("KILLS"), kills.Names(kills.Cases()))
	}
	return chosen
}

// run makes one run and keeps what came of it, also when it fails.
func (k *killing) run(t *testing.T, c kills.Case) {
	began := time.Now()
	r := &kills.Result{Case: c, Doing: "bringing up the group"}
	defer func() {
		if r.Passed = !t.Failed(); r.Passed {
			r.Doing = ""
		} else if k.vault != nil {
			k.vault.Diagnose(context.Background(), "kills-"+strings.ReplaceAll(c.Name(), "/", "-"))
		}
		if c.Work == kills.Bootstrap {
			k.end(t)
		}
		r.Seconds = time.Since(began).Seconds()
		k.results.Add(*r)
		if err := k.results.Write(k.path, time.Now()); err != nil {
			t.Error(err)
		}
	}()
	if err := lab.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	works[c.Work](t, k, c, r)
}

// works are how each work is begun and judged.
var works = map[string]func(*testing.T, *killing, kills.Case, *kills.Result){
	kills.Rotation: func(t *testing.T, k *killing, c kills.Case, r *kills.Result) {
		k.ordered(t, c, r, func(site string) (string, string) { return v1alpha1.AnnotationRotateKeyring, site })
	},
	kills.Clone: func(t *testing.T, k *killing, c kills.Case, r *kills.Result) {
		k.ordered(t, c, r, func(site string) (string, string) { return v1alpha1.AnnotationRecloneSite, site + ":confirm" })
	},
	kills.Bootstrap: func(t *testing.T, k *killing, c kills.Case, r *kills.Result) { k.bootstrap(t, c, r) },
}

// ordered kills in work that is ordered on a replica, under load.
func (k *killing) ordered(t *testing.T, c kills.Case, r *kills.Result, order func(site string) (annotation, value string)) {
	v := k.whole(t)
	before := v.sealed(t, resealing)
	site := replicas(before)[0]
	was := keyringOf(before, site)
	annotation, value := order(site)
	r.Doing = "starting the writers"
	w := witnesses(t, v.Group)
	events := v.eventCounts(t)
	lift := func() {}
	if c.Step == kills.StepRotated {
		lift = v.withhold(t)
	}
	at := load.Now()
	var killed time.Time
	var alone copyInMemory
	for try := 1; ; try++ {
		r.Doing = "waiting for the step"
		annotate(t, v.Group, annotation, value)
		if c.Step == kills.StepRotated {
			alone = v.onlyInMemory(t, site, was)
		}
		var hit bool
		if killed, hit = killAt(t, v.Group, site, c); hit {
			break
		}
		if try == missTries {
			t.Fatalf("the step was over %d times before there was something to kill", try)
		}
		was = keyringOf(v.sealed(t, resealing), site)
	}
	lift()
	r.Doing = "waiting for it to be sealed"
	after := v.sealed(t, 2*resealing)
	r.SealedAfterSeconds = time.Since(killed).Seconds()
	var answer v1alpha1.LastRequest
	if last := after.Status.LastRequest(v1alpha1.RequestOf(annotation)); last != nil && last.Target == value {
		answer = *last
	}
	r.Answer = strings.ToLower(string(answer.Outcome)) + ", " + answer.Message
	r.Events = v.since(t, events)
	r.Doing = "looking at what is sealed"
	checkSealed(t, v, after, site)
	now := keyringOf(after, site)
	fresh, same := now.KeyringVersion > was.KeyringVersion, now.KeyringDigest == was.KeyringDigest
	done := answer.Outcome == v1alpha1.RequestDone
	switch {
	case done && c.Work == kills.Rotation && (!fresh || same):
		t.Errorf("the order was answered %q, and the keyring is version %d, before %d", r.Answer, now.KeyringVersion, was.KeyringVersion)
	case done && fresh == same:
		// A clone into a server that has master keys makes no others; one that lost its keyring begins with a new one.
		t.Errorf("keyring version %d, before %d; the same content: %t", now.KeyringVersion, was.KeyringVersion, same)
	case !done && answer.Outcome != v1alpha1.RequestRefused:
		t.Errorf("the order was answered %q", r.Answer)
	}
	if c.Step == kills.StepRotated {
		alone.judge(t, c, now, r.Events)
	}
	r.Doing = "judging what the writers saw"
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	k.judge(t, w, at, site, r)
}

// judge ends the writers. No acknowledged row may be missing, neither on the active site nor on the one that was hit, and
// that one may have no transaction that the active site lacks.
func (k *killing) judge(t *testing.T, w *stage.Witnesses, at time.Duration, site string, r *kills.Result) {
	t.Helper()
	verdict, testimony := judge(t, w, at)
	r.Acknowledged, r.Lost = verdict.Acked, len(verdict.Missing)
	if verdict.From != verdict.To || len(verdict.Records) > 0 {
		t.Errorf("the role moved from %s to %s: a replica was hit", verdict.From, verdict.To)
	}
	if len(verdict.Missing) > 0 || verdict.Lost > 0 {
		t.Errorf("%d acknowledged rows are missing, %d reported lost", len(verdict.Missing), verdict.Lost)
	}
	if verdict.Acked == 0 {
		t.Error("no row was acknowledged: nothing is proven")
	}
	commits := journal.Commits(testimony.All()...)
	err := stage.Poll(t.Context(), comeBack, "every row on "+site, func(ctx context.Context) error {
		rows, err := k.vault.Rows(ctx, site)
		if err != nil {
			return err
		}
		if missing := journal.Missing(commits, rows); len(missing) > 0 {
			r.Lost = max(r.Lost, len(missing))
			return fmt.Errorf("%d acknowledged rows are not on %s", len(missing), site)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Lost = len(verdict.Missing)
	// Read first on the site that was hit: what it has then, the active site has had before.
	set := func(site string) string {
		return strings.ReplaceAll(query(t, k.vault.Group, site, "SELECT @@gtid_executed"), "\\n", "")
	}
	hit, active := set(site), set(verdict.To)
	if errant := query(t, k.vault.Group, site, fmt.Sprintf("SELECT GTID_SUBTRACT('%s', '%s')", hit, active)); errant != "" {
		t.Errorf("%s has transactions that %s lacks: %s", site, verdict.To, errant)
	}
}

// whole is the group of all ordered runs. One that an earlier run left broken is made again.
func (k *killing) whole(t *testing.T) *vault {
	t.Helper()
	if k.vault != nil {
		_, err := k.vault.Await(t.Context(), resealing, "the group to be whole", func(group *v1alpha1.MysqlFailoverGroup) error {
			return errors.Join(notSealed(group), stage.NotUpdated(group))
		})
		if err == nil {
			return k.vault
		}
		t.Logf("starting anew: %v", err)
		k.end(t)
	}
	return k.make(t, vaultNamespace, vaultName, stage.EncryptedSpec(vaultName))
}

func (k *killing) make(t *testing.T, namespace, name string, spec v1alpha1.MysqlFailoverGroupSpec) *vault {
	t.Helper()
	// What a run that was killed itself left behind.
	if err := (&stage.Group{Stage: lab, Namespace: namespace, Name: name}).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	g, err := lab.NewGroup(t.Context(), namespace, name, spec)
	if err != nil {
		t.Fatal(err)
	}
	k.vault = &vault{Group: g, needles: map[string]string{}, began: time.Now()}
	return k.vault
}

// end removes the group that is there.
func (k *killing) end(t *testing.T) {
	t.Helper()
	if k.vault == nil {
		return
	}
	if k.vault.Namespace == vaultNamespace {
		nothingInLogs(t, k.vault) // what was killed may have said more than usual
	}
	if err := errors.Join(lab.Restore(context.Background()), k.vault.Delete(context.Background())); err != nil {
		t.Errorf("clean up: %v", err)
	}
	k.vault = nil
}

// bootstrap makes a group for the run, and kills at the site that is to be the active one.
func (k *killing) bootstrap(t *testing.T, c kills.Case, r *kills.Result) {
	spec := stage.EncryptedSpec("young")
	spec.Sites = spec.Sites[:2]
	site := spec.Sites[0].Name
	for try := 1; ; try++ {
		r.Doing = "waiting for the step"
		young := k.make(t, "suite-young", "young", spec)
		killed, hit := killAt(t, young.Group, site, c)
		if hit {
			r.Doing = "waiting for it to be sealed"
			group := young.sealed(t, 2*bringUp)
			r.SealedAfterSeconds = time.Since(killed).Seconds()
			r.Events = young.since(t, nil)
			r.Doing = "looking at what is sealed"
			for _, s := range spec.Sites {
				checkSealed(t, young, group, s.Name)
			}
			r.Doing = "writing to the new group"
			w := witnesses(t, young.Group)
			at := load.Now()
			if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
			k.judge(t, w, at, site, r)
			return
		}
		if try == missTries {
			t.Fatalf("the step was over %d times before there was something to kill", try)
		}
	}
}

// since are the reasons of the events about keyrings and sites that came meanwhile, in their order.
func (v *vault) since(t *testing.T, before map[string]int) []string {
	t.Helper()
	reasons := []string{}
	lines, err := v.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines) // by the time of day
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, " ")
		reason, _, _ := strings.Cut(rest, ":")
		told := strings.HasPrefix(reason, "Keyring") || strings.HasPrefix(reason, "Reclone") || strings.HasPrefix(reason, "Site")
		if before[line] == 0 && told && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// eventCounts are how many events of each line there are.
func (v *vault) eventCounts(t *testing.T) map[string]int {
	t.Helper()
	lines, err := v.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, line := range lines {
		counts[line]++
	}
	return counts
}
