// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// campaign is how long the rotation of all sites may take.
const campaign = 30 * time.Minute

// pluginRun is one run of the plugin that takes long, or that is interrupted.
type pluginRun struct {
	group *stage.Group
	args  []string
	stdin string
	// until says that a person presses Ctrl-C now; nil if nobody does.
	until func(*v1alpha1.MysqlFailoverGroup) bool
}

// play runs bin/kubectl-mfg as a user would, without a terminal.
func (r pluginRun) play(t *testing.T) answer {
	t.Helper()
	program, err := lab.Program("kubectl-mfg")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), campaign)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"-n", r.group.Namespace}, r.args...)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = lab.Lab.Environ(), strings.NewReader(r.stdin), &out, &errOut
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	if r.until != nil {
		go r.interrupt(watched, cmd.Process)
	}
	err = cmd.Wait()
	a := answer{out: out.String(), errOut: errOut.String(), took: time.Since(began)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		a.code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	t.Logf("kubectl mfg %s: exit code %d after %s\n%s", strings.Join(r.args, " "), a.code, a.took.Round(time.Millisecond), a.errOut)
	return a
}

// interrupt presses Ctrl-C once it is time.
func (r pluginRun) interrupt(ctx context.Context, p *os.Process) {
	for ctx.Err() == nil {
		if group, err := r.group.Get(ctx); err == nil && r.until(group) {
			_ = p.Signal(os.Interrupt)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// rotations is what a test reads of the report of rotate.
type rotations struct {
	Outcome string   `json:"outcome"`
	Before  []string `json:"before"`
	Left    []string `json:"left"`
	Steps   []struct {
		Action, Site, Outcome string
		FromVersion           int64  `json:"fromVersion"`
		ToVersion             int64  `json:"toVersion"`
		LostTransactions      *int64 `json:"lostTransactions"`
	} `json:"steps"`
}

// rotatedBy are the sites that a run rotated.
func (r rotations) rotatedBy() (sites []string) {
	for _, s := range r.Steps {
		if s.Action == "Rotate" && s.Outcome == "Succeeded" {
			sites = append(sites, s.Site)
		}
	}
	return sites
}

// pluginRotatesAll: `kubectl mfg rotate --all` under load, with Ctrl-C in the middle of the first site and again in the middle
// of the second. The operator goes on without it, the third run watches the rest, and no site is rotated twice.
func pluginRotatesAll(t *testing.T, v *vault) {
	before := v.sealed(t, comeBack)
	active, quiet := before.Status.ActiveSite, ""
	for _, s := range before.Spec.Sites {
		if s.Role == v1alpha1.DROnly {
			quiet = s.Name
		}
	}
	own := ownGTIDs(t, v.Group, quiet)
	w := witnesses(t, v.Group)
	at := load.Now()
	args := []string{"rotate", v.Name, "--all", "--yes", "-o", "json"}
	begun := func(n int) func(*v1alpha1.MysqlFailoverGroup) bool {
		return func(group *v1alpha1.MysqlFailoverGroup) bool {
			rotated := 0
			for _, s := range group.Spec.Sites {
				if keyringOf(group, s.Name).RotatedVersion > keyringOf(before, s.Name).KeyringVersion {
					rotated++
				}
			}
			unsealed := slices.ContainsFunc(group.Spec.Sites, func(s v1alpha1.Site) bool {
				return keyringOf(group, s.Name).Phase == v1alpha1.KeyringUnsealed
			})
			return rotated == n && unsealed
		}
	}
	var runs [3]rotations
	for i := range 2 {
		a := pluginRun{group: v.Group, args: args, until: begun(i)}.play(t)
		a.want(t, 4, &runs[i]).says(t, "interrupted", "the operator continues; to watch it: kubectl mfg rotate "+v.Name+" -n "+v.Namespace+" --all",
			"to stop it: kubectl mfg rotate "+v.Name+" -n "+v.Namespace+" --stop")
		now, err := v.Get(t.Context())
		if err != nil || !now.Status.EncryptionAtRest.Campaign.UnderWay() || now.Annotations[v1alpha1.AnnotationRotateKeyring] != v1alpha1.EverySite {
			t.Errorf("the operator does not go on: %v", err)
		}
	}
	pluginRun{group: v.Group, args: args}.play(t).want(t, 0, &runs[2])
	group := v.sealed(t, comeBack)
	checkCampaign(t, v, before, runs[:])
	c := group.Status.EncryptionAtRest.Campaign
	if c == nil || c.Outcome != v1alpha1.CampaignDone || len(c.Left()) != 0 || group.Annotations[v1alpha1.AnnotationRotateKeyring] != "" {
		t.Errorf("the campaign is %+v, the annotations are %v", c, group.Annotations)
	}
	if group.Status.ActiveSite == active {
		t.Errorf("%s is still active, so it was never rotated as a replica", active)
	}
	if now := ownGTIDs(t, v.Group, quiet); now != own {
		t.Errorf("%s had the transactions %q of its own, and has %q after the rotation (I20)", quiet, own, now)
	}
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	verdict, _ := judge(t, w, at)
	if len(verdict.Missing) > 0 || verdict.Lost > 0 {
		t.Errorf("%d acknowledged rows are missing, %d reported lost", len(verdict.Missing), verdict.Lost)
	}
	noErrant(t, v.Group)
}

// checkCampaign looks at every site after a campaign: rotated by one run, both master keys new, the version before kept.
func checkCampaign(t *testing.T, v *vault, before *v1alpha1.MysqlFailoverGroup, runs []rotations) {
	t.Helper()
	group := v.sealed(t, comeBack)
	var rotated []string
	for _, r := range runs {
		rotated = append(rotated, r.rotatedBy()...)
	}
	slices.Sort(rotated)
	if len(rotated) != len(slices.Compact(slices.Clone(rotated))) {
		t.Errorf("a site was rotated by more than one run: %v", rotated)
	}
	for _, s := range group.Spec.Sites {
		was, is := keyringOf(before, s.Name), keyringOf(group, s.Name)
		if is.KeyringVersion <= was.KeyringVersion || is.RotatedVersion != is.KeyringVersion || is.KeyringDigest == was.KeyringDigest {
			t.Errorf("%s: version %d before, %d after, rotated %d (the runs tell of %v)", s.Name,
				was.KeyringVersion, is.KeyringVersion, is.RotatedVersion, rotated)
		}
		checkSealed(t, v, group, s.Name)
		old := &corev1.Secret{}
		if err := v.Kube.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: was.KeyringSecret}, old); err != nil {
			t.Errorf("the version before is gone: %v", err)
			continue
		}
		fresh := keysIn(t, secretData(t, v, is.KeyringSecret))
		for id := range keysIn(t, old.Data["keyring"]) {
			delete(fresh, id)
		}
		var innodb, binlog bool
		for id := range fresh {
			innodb = innodb || strings.HasPrefix(id, "INNODBKey-")
			binlog = binlog || strings.HasPrefix(id, "MySQLReplicationKey_")
		}
		if !innodb || !binlog {
			t.Errorf("%s: new master key of InnoDB: %v, of the binary log: %v", s.Name, innodb, binlog)
		}
	}
}

// noErrant fails if a replica has transactions that the active site lacks.
func noErrant(t *testing.T, g *stage.Group) {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range replicas(group) {
		has := strings.ReplaceAll(query(t, g, site, "SELECT @@gtid_executed"), "\\n", "")
		// Asked afterwards: what was written since is no error.
		all := strings.ReplaceAll(query(t, g, group.Status.ActiveSite, "SELECT @@gtid_executed"), "\\n", "")
		if errant := query(t, g, group.Status.ActiveSite, fmt.Sprintf("SELECT GTID_SUBTRACT('%s', '%s')", has, all)); errant != "" {
			t.Errorf("%s has errant transactions: %s", site, errant)
		}
	}
}
