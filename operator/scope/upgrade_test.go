// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// Each line but the first is a guard: what is not certain to wait for a turn is not held.
func TestWhatIsHeld(t *testing.T) {
	site := v1alpha1.UpgradeSite{Name: "c", Template: "t2", Behind: true}
	asked := v1alpha1.UpgradeSite{Name: "c", Template: "t2", Asked: true}
	for name, tt := range map[string]struct {
		revision, known string
		site            v1alpha1.UpgradeSite
		turn            bool
		of, want        string
		held            bool
	}{
		"it waits":              {"r2", "r2", site, false, "c", "t2", true},
		"it has the turn":       {"r2", "r2", site, true, "c", "t2", false},
		"nothing is paced":      {"", "", site, false, "c", "t2", false},
		"of another version":    {"r2", "r1", site, false, "c", "t2", false},
		"of another site":       {"r2", "r2", site, false, "b", "t2", false},
		"asked for":             {"r2", "r2", asked, false, "c", "t2", false},
		"another wish":          {"r2", "r2", site, false, "c", "t3", false},
		"no site was persisted": {"r2", "r2", v1alpha1.UpgradeSite{}, false, "c", "", false},
	} {
		group := scopetest.Group(scopetest.Running)
		group.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: tt.known, Sites: []v1alpha1.UpgradeSite{tt.site}}
		if got := scope.NewUpgrade(group, tt.revision, tt.turn).Held(tt.of, tt.want); got != tt.held {
			t.Errorf("%s: held %t", name, got)
		}
	}
}

// What was persisted by one look is what the next one begins with; a look that saw no pods leaves it as it is.
func TestUpgradeIsKeptBetweenLooks(t *testing.T) {
	group := scopetest.Group(scopetest.Running)
	first := scope.NewUpgrade(group, "r2", false)
	if !first.Same(group) {
		t.Error("a look that saw no pods writes something")
	}
	if first.Sort(group, "c", scope.Templates{Has: "t1", Want: "t2"}) {
		t.Error("a change of the specification that nobody acted on waits for a turn")
	}
	group.Status.ObservedGeneration = group.Generation
	first = scope.NewUpgrade(group, "r2", false)
	if !first.Sort(group, "c", scope.Templates{Has: "t1", Want: "t2"}) || first.Sort(group, "b", scope.Templates{Has: "t2", Want: "t2"}) || first.Same(group) {
		t.Fatalf("%+v", first.Status(group))
	}
	applied := applyv1alpha1.MysqlFailoverGroupStatus()
	first.Apply(group, applied)
	if u := applied.Upgrade; u == nil || *u.Revision != "r2" || *u.Generation != group.Generation || len(u.Sites) != 2 || *u.Sites[1].Name != "c" || !*u.Sites[1].Behind {
		t.Fatalf("%+v", applied.Upgrade)
	}
	group.Status.Upgrade = first.Status(group)
	next := scope.NewUpgrade(group, "r2", false)
	if !next.Held("c", "t2") || !next.Sort(group, "c", scope.Templates{Has: "t1", Want: "t2"}) || next.Sort(group, "b", scope.Templates{Has: "t2", Want: "t2"}) || !next.Same(group) {
		t.Errorf("%+v", next.Status(group))
	}
	// In its turn nothing is held.
	if turn := scope.NewUpgrade(group, "r2", true); turn.Sort(group, "c", scope.Templates{Has: "t1", Want: "t2"}) || turn.Held("c", "t2") {
		t.Error("held in its turn")
	}
}

// A change that a look acknowledged, which did not come to the pods, was still asked for.
func TestAChangeThatNoLookComparedWithIsAskedFor(t *testing.T) {
	group := scopetest.Group(scopetest.Running)
	group.Generation, group.Status.ObservedGeneration = 3, 3
	for name, tt := range map[string]struct {
		compared int64
		held     bool
	}{"an older one": {group.Generation - 1, false}, "this one": {group.Generation, true}, "written by a version that did not note it": {0, true}} {
		group.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: "r1", Generation: tt.compared, Sites: []v1alpha1.UpgradeSite{{Name: "c", Template: "t1"}}}
		if u := scope.NewUpgrade(group, "r2", false); u.Sort(group, "c", scope.Templates{Has: "t1", Want: "t2"}) != tt.held || u.Status(group).Generation != group.Generation {
			t.Errorf("%s: %+v", name, u.Status(group))
		}
	}
}

// A look that got only as far as the cache's pods, as without a usable certificate, notes nothing: what was asked for before would be forgotten.
func TestALookAtTheCacheAloneNotesNothing(t *testing.T) {
	group := scopetest.Group(scopetest.Running)
	group.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: "r1", Sites: []v1alpha1.UpgradeSite{{Name: "c", Template: "t1", Asked: true}}}
	u := scope.NewUpgrade(group, "r2", false)
	u.Sort(group, v1alpha1.UpgradeCache+"c", scope.Templates{Has: "t1", Want: "t2"})
	if got := u.Status(group); got != group.Status.Upgrade {
		t.Errorf("%+v", got)
	}
	u.Sort(group, "c", scope.Templates{Has: "t1", Want: "t2"})
	if got := u.Status(group); len(got.Sites) != 2 || got.Revision != "r2" {
		t.Errorf("%+v", got)
	}
}

// The condition says what the pods wait for.
func TestWhatIsToldOfAnUpgrade(t *testing.T) {
	for name, tt := range map[string]struct {
		key, value string
		turn, done bool
		want       v1alpha1.Reason
	}{
		"it waits":                     {want: v1alpha1.ReasonUpgradeWaiting},
		"it has the turn":              {turn: true, want: v1alpha1.ReasonUpgradeUnderWay},
		"pinned":                       {key: v1alpha1.AnnotationUpgradePin, value: "why", want: v1alpha1.ReasonUpgradePinned},
		"a window that can be read":    {key: v1alpha1.AnnotationUpgradeWindow, value: "01:00-02:00", want: v1alpha1.ReasonUpgradeWaiting},
		"a window that cannot":         {key: v1alpha1.AnnotationUpgradeWindow, value: "at night", want: v1alpha1.ReasonUpgradeWindowUnreadable},
		"which says nothing in a turn": {key: v1alpha1.AnnotationUpgradeWindow, value: "at night", turn: true, want: v1alpha1.ReasonUpgradeUnderWay},
		"nothing is behind":            {done: true},
		"nor with a pin":               {key: v1alpha1.AnnotationUpgradePin, value: "why", done: true},
	} {
		group := scopetest.Group(scopetest.Running)
		group.Status.ObservedGeneration = group.Generation
		if tt.key != "" {
			group.Annotations = map[string]string{tt.key: tt.value}
		}
		s := &scope.Scope{Group: group, Upgrade: scope.NewUpgrade(group, "r2", tt.turn)}
		has := "t1"
		if tt.done {
			has = "t2"
		}
		s.Upgrade.Sort(group, "c", scope.Templates{Has: has, Want: "t2"})
		s.TellUpgrade()
		var got v1alpha1.Reason
		for _, c := range s.Conditions {
			if c.Type == v1alpha1.ConditionUpgradePending {
				got = v1alpha1.Reason(c.Reason)
			}
		}
		if got != tt.want {
			t.Errorf("%s: reason %q, want %q", name, got, tt.want)
		}
	}
}

// Only what no version of the operator changes on its own tells an order.
func TestOrdered(t *testing.T) {
	type notes = map[string]string
	at := func(value string) notes { return notes{v1alpha1.AnnotationRestartedAt: value} }
	for name, tt := range map[string]struct {
		has, want           notes // of the Deployments
		round, pod, ordered string
		noPod, none         bool
		is                  bool
	}{
		"nothing":                         {},
		"another template":                {has: notes{v1alpha1.AnnotationSpecHash: "t1"}, want: notes{v1alpha1.AnnotationSpecHash: "t2"}, pod: "t1"},
		"a restart":                       {want: at("2026-11-26T10:00:00Z"), is: true},
		"another restart":                 {has: at("2026-11-26T10:00:00Z"), want: at("2026-11-26T11:00:00Z"), is: true},
		"a restart without a pod":         {want: at("2026-11-26T10:00:00Z"), noPod: true, is: true},
		"a restart that is done":          {has: at("2026-11-26T10:00:00Z"), want: at("2026-11-26T10:00:00Z")},
		"it is to be unsealed":            {ordered: "2", is: true},
		"it is to be unsealed once more":  {round: "2", ordered: "3", is: true},
		"it is to be sealed":              {round: "2", is: true},
		"it is unsealed already":          {round: "2", ordered: "2"},
		"its pod is of another template":  {has: notes{v1alpha1.AnnotationSpecHash: "t1"}, ordered: "2", pod: "t0"},
		"it has no pod that could tell":   {ordered: "2", noPod: true},
		"it has no Deployment to compare": {want: at("2026-11-26T10:00:00Z"), ordered: "2", none: true},
	} {
		s := &scope.Scope{Deployments: map[string]*appsv1.Deployment{}, Pods: map[string]*corev1.Pod{}}
		if !tt.none {
			s.Deployments["c"] = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: tt.has}}
		}
		if !tt.noPod {
			s.Pods["c"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: notes{v1alpha1.AnnotationSpecHash: tt.pod, v1alpha1.AnnotationKeyringRound: tt.round}}}
		}
		want := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: tt.want}}
		want.Spec.Template.Annotations = notes{v1alpha1.AnnotationKeyringRound: tt.ordered}
		if got := scope.Ordered(s, "c", want); got != tt.is {
			t.Errorf("%s: ordered %t", name, got)
		}
	}
}
