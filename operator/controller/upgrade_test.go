// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// oneTurn gives the turn to one group.
type oneTurn struct{ group string }

func (o *oneTurn) Has(group types.NamespacedName) bool { return group.String() == o.group }

// pacedWorld is a group that runs, up to date, with an operator that paces upgrades.
func pacedWorld(t *testing.T) (*world, *oneTurn) {
	t.Helper()
	w, turns := runningWorld(t), &oneTurn{}
	w.r.Turns, w.r.Revision = turns, "r1"
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	w.reconcile()
	return w, turns
}

// newOperator replaces the operator by one with another sidecar, which remembers nothing.
func (w *world) newOperator() {
	w.r.Install.SidecarImage, w.r.Revision = "sidecar:next", "r2"
}

func replaced(before, after map[string]string) (sites []string) {
	for _, site := range []string{"a", "b", "c"} {
		if before[site] != after[site] {
			sites = append(sites, site)
		}
	}
	return sites
}

func (w *world) reconcileOften() {
	w.t.Helper()
	for range 5 {
		w.reconcile()
	}
}

func TestANewOperatorWaitsForTheTurn(t *testing.T) {
	w, turns := pacedWorld(t)
	before := w.deployments()
	w.newOperator()
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) > 0 {
		t.Fatalf("%v replaced without a turn", sites)
	}
	if c := w.condition(v1alpha1.ConditionUpgradePending); c.Reason != v1alpha1.ReasonUpgradeWaiting {
		t.Errorf("condition %+v", c)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonAsExpected {
		t.Errorf("what waits for its turn is under way: %+v", c)
	}
	// Pinned, it gets no pod, whatever it is given.
	turns.group = scopetest.Key.String()
	pin := func(value string) scopetest.Option {
		return func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.AnnotationUpgradePin: value}
			g.Generation-- // annotations are no part of it
		}
	}
	w.change(pin("until January"))
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) > 0 {
		t.Fatalf("%v replaced although pinned", sites)
	}
	if c := w.condition(v1alpha1.ConditionUpgradePending); c.Reason != v1alpha1.ReasonUpgradePinned {
		t.Errorf("condition %+v", c)
	}
	w.change(pin(""))
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) != 1 || sites[0] != "c" {
		t.Fatalf("%v replaced in its turn", sites)
	}
	if c := w.condition(v1alpha1.ConditionUpgradePending); c.Reason != v1alpha1.ReasonUpgradeUnderWay {
		t.Errorf("condition %+v", c)
	}
}

// What a person asks for waits for no turn, and takes the new version along; what changes no pod replaces none.
func TestAnOwnChangeWaitsForNoTurn(t *testing.T) {
	w, _ := pacedWorld(t)
	before := w.deployments()
	w.newOperator()
	w.reconcileOften()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.Mode = v1alpha1.FailoverManual })
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) > 0 {
		t.Fatalf("%v replaced by a change that is none of the pods", sites)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.7.99" })
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) != 1 || sites[0] != "c" {
		t.Fatalf("%v replaced by an image of the specification", sites)
	}
	// The next operator goes on with what a person asked of the one before.
	w.settle("c")
	w.reconcile()
	w.r.Install.SidecarImage, w.r.Revision = "sidecar:third", "r3"
	w.reconcile()
	for _, site := range w.group().Status.Upgrade.Sites {
		if site.Name == "a" && !site.Asked || site.Name == "c" && !site.Behind {
			t.Errorf("a next operator takes %+v", site)
		}
	}
}

// A change of the specification while no operator ran is done at once by the one that comes.
func TestAChangeWithoutAnOperator(t *testing.T) {
	w, _ := pacedWorld(t)
	before := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.7.99" })
	w.newOperator()
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) != 1 || sites[0] != "c" {
		t.Fatalf("%v replaced", sites)
	}
}

// pinned has a person pin the group, and set another annotation. Neither is part of its generation.
func (w *world) pinned(key, value string) {
	w.t.Helper()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{v1alpha1.AnnotationUpgradePin: "until January", key: value}
		g.Generation--
	})
}

// An order that comes while no operator runs is no change of the version that comes: it is done although the group is pinned. Nothing else is.
func TestAnOrderWithoutAnOperator(t *testing.T) {
	for name, tt := range map[string]struct {
		key, value string
		want       []string
	}{
		"a restart of one site": {v1alpha1.RestartedAtSite("b"), "2026-11-26T10:00:00Z", []string{"b"}},
		"a restart of all":      {v1alpha1.AnnotationRestartedAt, "2026-11-26T10:00:00Z", []string{"c"}}, // the first one
		"a time that is none":   {v1alpha1.AnnotationRestartedAt, "soon", nil},
		"another annotation":    {v1alpha1.AnnotationPauseUntil, "2026-01-01T00:00:00Z", nil},
	} {
		w, _ := pacedWorld(t)
		before := w.deployments()
		w.pinned(tt.key, tt.value)
		w.newOperator()
		w.reconcileOften()
		if sites := replaced(before, w.deployments()); !slices.Equal(sites, tt.want) {
			t.Errorf("%s: %v replaced, want %v", name, sites, tt.want)
		}
	}
}

// Nor is it one that a site is unsealed, if the operator before decided it and did not come to its pod.
func TestAnUnsealingThatTheOperatorBeforeDecided(t *testing.T) {
	w := sealedWorld(t)
	w.r.Turns, w.r.Revision = &oneTurn{}, "r1"
	w.reconcileOften()
	before := w.deployments()
	w.order(v1alpha1.AnnotationRotateKeyring, "c")
	w.reconcile()
	if sites := replaced(before, w.deployments()); len(sites) > 0 || w.keyring("c").Phase == v1alpha1.KeyringSealed {
		t.Fatalf("%v replaced by the operator before, c is %+v", sites, w.keyring("c"))
	}
	w.pinned(v1alpha1.AnnotationRotateKeyring, "c")
	w.newOperator()
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); !slices.Equal(sites, []string{"c"}) {
		t.Errorf("%v replaced, c is %+v", sites, w.keyring("c"))
	}
}

// The pods of a cache wait for the same turn as those of MySQL, and a pin keeps them too. What a person asks of the cache waits for neither.
func TestTheCacheWaitsForTheTurn(t *testing.T) {
	w := cachedWorld(t)
	turns := &oneTurn{}
	w.r.Turns, w.r.Revision = turns, "r1"
	w.facts.Open("a")
	w.reconcileOften()
	missing := func() (out string) {
		for _, site := range []string{"a", "b", "c"} {
			if w.cachePod(site) == nil {
				out += site + " "
			}
		}
		return out
	}
	w.r.Install.PlatformAssignsIDs, w.r.Revision = true, "r2" // of both kinds of pods
	w.reconcileOften()
	if gone := missing(); gone != "" {
		t.Fatalf("without a turn the cache of %s was replaced", gone)
	}
	behind := ""
	for _, site := range w.group().Status.Upgrade.Sites {
		if site.Behind {
			behind += site.Name + " "
		}
	}
	if behind != "a b c cache/a cache/b cache/c " {
		t.Errorf("behind are %s", behind)
	}
	if c := w.condition(v1alpha1.ConditionUpgradePending); !strings.Contains(c.Message, "the pods of a, b, c, cache/a, cache/b, cache/c are") {
		t.Errorf("condition %+v", c)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); strings.Contains(c.Message, "cache") {
		t.Errorf("what waits for its turn is under way: %+v", c)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.MaxMemory = resource.MustParse("1Gi") })
	w.reconcileOften()
	if gone := missing(); gone != "b " {
		t.Errorf("for a change of the specification that of %s was replaced", gone)
	}
}

// In its turn the group gets them, one after the other.
func TestTheCacheIsUpdatedInTheTurn(t *testing.T) {
	w := cachedWorld(t)
	w.r.Turns, w.r.Revision = &oneTurn{scopetest.Key.String()}, "r1"
	w.facts.Open("a")
	w.reconcileOften()
	w.r.Install.PlatformAssignsIDs, w.r.Revision = true, "r2"
	w.reconcileOften()
	if w.cachePod("a") == nil || w.cachePod("b") != nil || w.cachePod("c") == nil {
		t.Error("the first replica was not replaced")
	}
	// A pod that does not work waits for no turn.
	w = cachedWorld(t)
	w.r.Turns, w.r.Revision = &oneTurn{}, "r1"
	w.facts.Open("a")
	w.reconcileOften()
	pod := w.cachePod("c")
	pod.Status.Conditions = nil
	w.must(w.c.Status().Update(w.ctx, pod))
	w.r.Install.PlatformAssignsIDs, w.r.Revision = true, "r2"
	w.reconcileOften()
	if w.cachePod("a") == nil || w.cachePod("b") == nil || w.cachePod("c") != nil {
		t.Error("the broken one was not replaced, or another was")
	}
}
