// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// endFences takes back whatever a test has kept fenced, however it ends: the group is shared.
func endFences(t *testing.T, g *stage.Group) {
	t.Helper()
	t.Cleanup(func() {
		group, err := g.Get(context.Background())
		if err != nil {
			t.Error(err)
			return
		}
		before := group.DeepCopy()
		maps.DeleteFunc(group.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha1.AnnotationKeepFenced+"-") })
		if err := lab.Kube.Patch(context.Background(), group, client.MergeFrom(before)); err != nil {
			t.Error(err)
		}
	})
}

// awaitReason waits until a condition is true for a reason, and says something.
func awaitReason(t *testing.T, g *stage.Group, kind string, reason v1alpha1.Reason, words string) {
	t.Helper()
	_, err := g.Await(t.Context(), time.Minute, fmt.Sprintf("condition %s to say %s", kind, reason), func(group *v1alpha1.MysqlFailoverGroup) error {
		if c := meta.FindStatusCondition(group.Status.Conditions, kind); c == nil || c.Status != "True" || c.Reason != string(reason) || !strings.Contains(c.Message, words) {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A site that is kept fenced takes over from nobody: not in a planned failover, not by the forecast, and not after the operator was replaced.
// It goes on replicating, and an active site that restarts is opened again. Afterwards it is a candidate again.
func TestPluginKeepsASiteFencedI29(t *testing.T) {
	g, group := whole(t)
	active, site := group.Status.ActiveSite, otherCandidate(t, group)
	endFences(t, g)
	afterCooldown(t)

	plugin(t, "fence", "on", name, active, "--yes").want(t, 5, nil).says(t, active+" is the active site", "move the role first", "kubectl mfg failover "+name)
	plugin(t, "fence", "on", name, site, "--yes").want(t, 0, nil).says(t, "no other site may take over", site+" is kept fenced")
	if err := lab.KillOperator(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lab.AwaitOperator(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), time.Minute, "the next operator to say that "+site+" is kept fenced", func(context.Context) error {
		var e explained
		a := plugin(t, "explain", name, "-o", "json")
		if err := json.Unmarshal([]byte(a.out), &e); err != nil {
			return err
		}
		if a.code != 3 || e.Explanation == nil || !slices.Contains(e.Explanation.Blockers, string(v1alpha1.ReasonKeptFenced)) {
			return fmt.Errorf("I29: exit code %d, explanation %+v", a.code, e.Explanation)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	plugin(t, "failover", name, "--to", site, "--yes").want(t, 5, nil).says(t, "refused (KeptFenced)", "kubectl mfg fence off "+name+" "+site)
	plugin(t, "status", name).says(t, "read-only, kept", "never takes over")

	if _, err := g.Break(t.Context(), fault(t, "mysqld-kill"), active); err != nil {
		t.Fatal(err)
	}
	sleep(t, 2*time.Second) // the operator has seen it by then, so "ready" is what comes after
	if err := stage.Poll(t.Context(), time.Minute, "mysqld of "+active, func(ctx context.Context) error {
		_, err := g.RootSQL(ctx, active, "SELECT 1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	after, err := g.AwaitReady(t.Context(), comeBack) // replicas follow, that site too
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.ActiveSite != active || after.Status.Epoch != group.Status.Epoch {
		t.Errorf("I29: %s is active under epoch %d", after.Status.ActiveSite, after.Status.Epoch)
	}
	plugin(t, "fence", "off", name, site, "--yes").want(t, 0, nil).says(t, site+" is not kept fenced any more")
	afterCooldown(t)
	plugin(t, "explain", name).want(t, 0, nil).says(t, "healthy; would fail over to "+site)
}

// An active site that the annotation comes to stays open. Once it was closed it is not opened again; with nobody else left the group has no
// writer, and says how to end that.
func TestKeptFencedWithoutAnotherSiteI29(t *testing.T) {
	g, group := whole(t)
	active, site := group.Status.ActiveSite, otherCandidate(t, group)
	endFences(t, g)
	plugin(t, "fence", "on", name, site, "--yes").want(t, 0, nil)
	if out, err := lab.Lab.Kubectl(t.Context(), "annotate", "mfg", name, "-n", namespace, v1alpha1.KeepFencedSite(active)+"=by-hand"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	awaitReason(t, g, v1alpha1.ConditionSitesKeptFenced, v1alpha1.ReasonActiveStaysOpen, active+" is the active site and stays open")
	if got := query(t, g, active, "SELECT @@super_read_only"); got != "0" {
		t.Errorf("I29: %s was open, and is closed: super_read_only is %s", active, got)
	}

	if _, err := g.Break(t.Context(), fault(t, "mysqld-kill"), active); err != nil {
		t.Fatal(err)
	}
	// While its mysqld is down it is the other site that is named; once it is back, this one.
	awaitReason(t, g, v1alpha1.ConditionFailoverBlocked, v1alpha1.ReasonKeptFenced, "kubectl mfg fence off "+name+" "+active)
	sleep(t, 5*time.Second) // it would have been opened in half a second
	for _, kept := range []string{active, site} {
		if got := query(t, g, kept, "SELECT @@super_read_only"); got != "1" {
			t.Errorf("I29: %s is kept fenced, and open", kept)
		}
	}
	plugin(t, "fence", "off", name, active, "--yes").want(t, 0, nil)
	after, err := g.AwaitReady(t.Context(), comeBack)
	if err != nil {
		t.Fatal(err)
	}
	if after.Status.ActiveSite != active || after.Status.Epoch != group.Status.Epoch {
		t.Errorf("%s is active under epoch %d, it was %s under %d", after.Status.ActiveSite, after.Status.Epoch, active, group.Status.Epoch)
	}
	plugin(t, "fence", "off", name, site, "--yes").want(t, 0, nil)
}
