// SPDX-License-Identifier: Apache-2.0

//go:build lab && kills

package suites

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/kills/backups"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

const (
	killedNamespace, killedGroup = "suite-killed", "shop"
	againNamespace, againGroup   = "suite-killed-again", "again"
	// killRate is what the storage takes in bytes a second while something is killed, so that a backup lasts.
	killRate = 2 << 20
	// killMegabytes are of rows that do not compress.
	killMegabytes = 16
	// killOutcome bounds the time from a kill to the outcome: the pauses between attempts double from 15 s on, and Kubernetes waits before it
	// starts a container again that was killed often.
	killOutcome = 8 * time.Minute
)

// backupKilling are the runs, and the group that those of backups share.
type backupKilling struct {
	results *backups.Results
	path    string
	s3      *stage.S3
	id      *age.X25519Identity
	g       *stage.Group
	digests map[string]string
	// bucket is the storage as a folder of this machine, and place where the group's backups are in it.
	bucket, place string
	n             int
}

// TestKilledBackup: whatever is killed when, no backup claims to be one and is not, nothing is left of it after the sweep, the next one works,
// and a restore never opens without its data. docs/internals/backup-kills.md has the list.
func TestKilledBackup(t *testing.T) {
	k := &backupKilling{path: filepath.Join(lab.Repo, "out", "kills-backup.json")}
	build, err := cluster.BuildSum(lab.Lab.Dir())
	if err != nil {
		t.Fatal(err)
	}
	seed := number(t, "SEED", 1)
	if k.results, err = backups.Open(k.path, build, seed); err != nil {
		t.Fatal(err)
	}
	chosen := k.choose(t, seed)
	if len(chosen) == 0 {
		return
	}
	k.begin(t)
	for i, c := range chosen {
		t.Run(c.Name(), func(t *testing.T) {
			t.Logf("run %d of %d", i+1, len(chosen))
			k.run(t, c)
		})
	}
}

// number is that of a variable of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (k *backupKilling) choose(t *testing.T, seed uint64) []backups.Case {
	t.Helper()
	pattern, err := regexp.Compile(os.Getenv("KILLS"))
	if err != nil {
		t.Fatal(err)
	}
	var matching, chosen []backups.Case
	for _, c := range backups.Cases() {
		if pattern.MatchString(c.Name()) {
			matching = append(matching, c)
		}
	}
	all := backups.Choose(matching, int(number(t, "RUNS", 40)), seed)
	k.results.Planned = max(k.results.Planned, len(all))
	for _, c := range all {
		if os.Getenv("CONTINUE") == "" || !k.results.Passed(c) {
			chosen = append(chosen, c)
		}
	}
	if len(matching) == 0 {
		t.Fatalf("KILLS=%s is none of %s", os.Getenv("KILLS"), backups.Names(backups.Cases()))
	}
	return chosen
}

// begin makes the storage and the group, with a backup by each method that every run must leave alone.
func (k *backupKilling) begin(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	k.s3, k.id = storage(t, stage.S3Options{Name: "s3-killed", Slowable: true}), identity(t)
	g := fresh(t, killedNamespace, killedGroup, k.s3.Grant)
	spec := stage.DefaultSpec(killedGroup)
	spec.Backup = &v1alpha1.BackupSpec{}
	for _, method := range []v1alpha1.BackupMethod{v1alpha1.BackupLogical, v1alpha1.BackupPhysical} {
		spec.Backup.Profiles = append(spec.Backup.Profiles, v1alpha1.BackupProfile{
			Name: profileOf(string(method)), Method: method, Storage: k.s3.Storage(backupPrefix),
			Encryption: &v1alpha1.BackupEncryption{Recipients: []string{k.id.Recipient().String()}},
			// What was shot at must be tried elsewhere.
			Source: v1alpha1.BackupSource{Prefer: v1alpha1.BackupPreferReplica},
		})
	}
	k.g = ownGroup(t, g, spec)
	group, err := k.g.AwaitReady(ctx, bringUp)
	if err != nil {
		t.Fatal(err)
	}
	active := group.Status.ActiveSite
	query(t, k.g, active, strings.Join(stage.OddSchema("MARKER-KILLED"), "; "))
	makeRandom(t, k.g, active, killMegabytes)
	if err := k.g.AwaitCaughtUp(ctx, active, comeBack); err != nil {
		t.Fatal(err)
	}
	if k.bucket, err = k.s3.Dir(ctx); err != nil {
		t.Fatal(err)
	}
	k.place = filepath.Join(k.bucket, backupPrefix, killedNamespace, killedGroup, "backups")
	if k.digests, err = k.g.Digests(ctx, active); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{backups.Logical, backups.Physical} {
		if _, err := k.g.MakeBackup(ctx, "base-"+profileOf(method), profileOf(method), backupLimit); err != nil {
			t.Fatal(err)
		}
	}
}

func profileOf(method string) string { return strings.ToLower(method) }

// run makes one run and keeps what came of it, also when it fails.
func (k *backupKilling) run(t *testing.T, c backups.Case) {
	began := time.Now()
	r := &backups.Result{Case: c, Doing: "waiting for the group to be whole"}
	defer func() {
		if r.Passed = !t.Failed(); r.Passed {
			r.Doing = ""
		} else {
			k.g.Diagnose(context.Background(), "kills-backup-"+strings.ReplaceAll(c.Name(), "/", "-"))
		}
		if err := k.s3.SetRate(context.Background(), 0); err != nil {
			t.Logf("let the storage be fast: %v", err)
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
	if _, err := k.g.AwaitReady(t.Context(), bringUp); err != nil {
		t.Fatal(err)
	}
	k.n++
	switch c.Work {
	case backups.Backup:
		k.backup(t, c, r)
	case backups.Removal:
		k.removal(t, c, r)
	case backups.Restore:
		k.restore(t, c, r)
	}
}

func (k *backupKilling) name(what string, try int) string {
	return fmt.Sprintf("%s-%d-%d", what, k.n, try)
}

// backup kills while a backup is made.
func (k *backupKilling) backup(t *testing.T, c backups.Case, r *backups.Result) {
	var b *v1alpha1.MysqlBackup
	var killed time.Time
	var names []string
	for try := 1; ; try++ {
		r.Doing = "waiting for the step"
		name := k.name("hit", try)
		names = append(names, name)
		if err := k.s3.SetRate(t.Context(), killRate); err != nil {
			t.Fatal(err)
		}
		sleep(t, time.Second) // the server has read the rate
		if err := k.g.OrderBackup(t.Context(), name, profileOf(c.Method)); err != nil {
			t.Fatal(err)
		}
		var hit bool
		killed, hit = k.shoot(t, c, k.backupTarget(name))
		if err := k.s3.SetRate(t.Context(), 0); err != nil && c.Kill != backups.Storage {
			t.Error(err)
		}
		r.Doing = "waiting for the outcome"
		b = k.outcome(t, name)
		if hit {
			break
		}
		if try == missTries {
			t.Fatalf("the step was over %d times before there was something to kill", try)
		}
	}
	r.AfterSeconds, r.Attempts = time.Since(killed).Seconds(), b.Status.Attempts
	r.Outcome = string(b.Status.Phase)
	if b.Status.Phase != v1alpha1.BackupCompleted {
		r.Outcome += ": " + string(b.Status.Reason)
	}
	k.judge(t, r)
	k.next(t, c, r, names)
}

// outcome waits until a backup is made or given up.
func (k *backupKilling) outcome(t *testing.T, name string) *v1alpha1.MysqlBackup {
	t.Helper()
	b, err := k.g.AwaitBackup(t.Context(), name, killOutcome, func(b *v1alpha1.MysqlBackup) error {
		if p := b.Status.Phase; p != v1alpha1.BackupCompleted && p != v1alpha1.BackupFailed {
			return errors.New(stage.DescribeBackup(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// next makes another backup, which must work, and removes all that are not those of the beginning.
func (k *backupKilling) next(t *testing.T, c backups.Case, r *backups.Result, names []string) {
	t.Helper()
	r.Doing = "making the next backup"
	next := k.name("next", 0)
	if _, err := k.g.MakeBackup(t.Context(), next, profileOf(c.Method), killOutcome); err != nil {
		t.Fatal(err)
	}
	k.whole(t)
	r.Doing = "removing the backups"
	for _, name := range append(names, next) {
		k.remove(t, name)
	}
	for _, name := range append(names, next) {
		k.awaitGone(t, name)
	}
	if left := k.left(t); len(left) > 0 {
		t.Errorf("the removal has left %v", left)
	}
}

// removal kills while a backup is removed.
func (k *backupKilling) removal(t *testing.T, c backups.Case, r *backups.Result) {
	var killed time.Time
	for try := 1; ; try++ {
		r.Doing = "waiting for the step"
		name := k.name("gone", try)
		if _, err := k.g.MakeBackup(t.Context(), name, profileOf(c.Method), killOutcome); err != nil {
			t.Fatal(err)
		}
		k.remove(t, name)
		var hit bool
		killed, hit = k.shoot(t, c, k.removalTarget(name))
		r.Doing = "waiting for it to be gone"
		k.awaitGone(t, name)
		if hit {
			break
		}
		if try == missTries {
			t.Fatalf("the step was over %d times before there was something to kill", try)
		}
	}
	r.AfterSeconds, r.Outcome = time.Since(killed).Seconds(), "removed"
	k.judge(t, r)
	k.next(t, c, r, nil)
}

// restore kills while another group is made of a backup.
func (k *backupKilling) restore(t *testing.T, c backups.Case, r *backups.Result) {
	for try := 1; ; try++ {
		r.Doing = "waiting for the step"
		g := fresh(t, againNamespace, againGroup, k.s3.Grant)
		if err := lab.PutIdentity(t.Context(), againNamespace, identitySecret, k.id.String()); err != nil {
			t.Fatal(err)
		}
		spec := restored(k.s3, againGroup)
		spec.InitFromBackup.From = &v1alpha1.RestoreFrom{Namespace: killedNamespace, Group: killedGroup}
		spec.InitFromBackup.Backup = "base-" + profileOf(c.Method)
		spec.Sites = spec.Sites[:2]
		g, err := lab.NewGroup(t.Context(), g.Namespace, g.Name, spec)
		if err != nil {
			t.Fatal(err)
		}
		end := neverOpen(t, g, spec.Sites[0].Name)
		killed, hit := k.shoot(t, c, k.restoreTarget(g, spec.Sites[0].Name))
		r.Doing = "waiting for the restore"
		group, err := g.AwaitRestore(t.Context(), killOutcome, "the restore", stage.RestoreNotDone)
		if err == nil {
			r.AfterSeconds, r.Outcome = time.Since(killed).Seconds(), cmp.Or(string(group.Status.Restore.Phase), "nothing")
			_, err = g.AwaitReady(t.Context(), killOutcome)
		}
		end()
		if err != nil {
			g.Diagnose(context.Background(), "kills-backup-again")
			t.Fatal(err)
		}
		if hit {
			r.Doing = "comparing what was restored"
			for _, site := range spec.Sites {
				got, err := g.Digests(t.Context(), site.Name)
				if err != nil {
					t.Fatal(err)
				}
				sameDigests(t, site.Name, k.digests, got)
			}
		}
		if err := g.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		if hit {
			k.judge(t, r)
			return
		}
		if try == missTries {
			t.Fatalf("the step was over %d times before there was something to kill", try)
		}
	}
}
