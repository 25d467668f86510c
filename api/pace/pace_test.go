// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// waits is a healthy group with a pod of an older version of the operator.
func waits() *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Generation: 3, Annotations: map[string]string{}}}
	g.Status.ObservedGeneration = 3
	g.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: "r2", Sites: []v1alpha1.UpgradeSite{{Name: "a"}, {Name: "b", Behind: true}}}
	g.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue},
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonAsExpected), Message: "nothing is under way"},
	}
	return g
}

// Each is a guard: a group of which it is true is given no turn, and one that has the turn is not done.
func TestWhyATurnCannotBegin(t *testing.T) {
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) // a Wednesday
	always, night := window(t, ""), window(t, "22:00-04:00")
	set := func(at int, status metav1.ConditionStatus, reason v1alpha1.Reason) func(*v1alpha1.MysqlFailoverGroup) {
		return func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions[at].Status, g.Status.Conditions[at].Reason, g.Status.Conditions[at].Message = status, string(reason), "the message"
		}
	}
	annotated := func(key, value string) func(*v1alpha1.MysqlFailoverGroup) {
		return func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations[key] = value }
	}
	// fenced is a group of which the active site, a further site that could take its role, and whom a person keeps fenced are given.
	fenced := func(active, kept string, more ...string) func(*v1alpha1.MysqlFailoverGroup) {
		return func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.ActiveSite = active
			for _, name := range append([]string{"a", "b"}, more...) {
				g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: name, Role: v1alpha1.PrimaryCandidate})
			}
			g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "dr", Role: v1alpha1.DROnly})
			g.Annotations[v1alpha1.KeepFencedSite(kept)] = "why"
		}
	}
	// keyrings is a group with the active site a or b, of which the keyring of another site may be in its pod alone.
	keyrings := func(active, failed string, behind ...string) func(*v1alpha1.MysqlFailoverGroup) {
		return func(g *v1alpha1.MysqlFailoverGroup) {
			fenced(active, "dr")(g)
			g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{{Name: "c"}, {Name: failed, Phase: v1alpha1.KeyringFailed}}}
			for _, name := range behind {
				g.Status.Upgrade.Sites = append(g.Status.Upgrade.Sites, v1alpha1.UpgradeSite{Name: name, Behind: true})
			}
		}
	}
	for name, tc := range map[string]struct {
		change       func(*v1alpha1.MysqlFailoverGroup)
		installation Window
		want         string
	}{
		"nothing is in the way":       {func(*v1alpha1.MysqlFailoverGroup) {}, always, ""},
		"pinned":                      {annotated(v1alpha1.AnnotationUpgradePin, "the sale"), always, "it is pinned"},
		"a pin without a word":        {annotated(v1alpha1.AnnotationUpgradePin, ""), always, ""},
		"the installation's window":   {func(*v1alpha1.MysqlFailoverGroup) {}, night, "its window is closed: 22:00-04:00 UTC"},
		"a window of its own":         {annotated(v1alpha1.AnnotationUpgradeWindow, "Sun 00:00-24:00"), always, "its window is closed: Sun 00:00-24:00 UTC"},
		"an own window that is open":  {annotated(v1alpha1.AnnotationUpgradeWindow, "Wed 11:00-13:00"), night, ""},
		"a window nobody understands": {annotated(v1alpha1.AnnotationUpgradeWindow, "at night"), always, "its window cannot be read"},
		"not ready":                   {set(0, metav1.ConditionFalse, "X"), always, "it is not healthy: the message"},
		"nobody knows if it is ready": {set(0, metav1.ConditionUnknown, "X"), always, "it is not healthy: the message"},
		"something is under way":      {set(1, metav1.ConditionTrue, "X"), always, "it is not healthy: the message"},
		"a volume is being deleted":   {set(1, metav1.ConditionFalse, v1alpha1.ReasonVolumeTerminating), always, "a volume of it is being deleted: the message"},
		"a volume is being deleted, and something is under way": {set(1, metav1.ConditionTrue, v1alpha1.ReasonVolumeTerminating), always, "it is not healthy: the message"},
		"a site is not back": {set(1, metav1.ConditionFalse, v1alpha1.ReasonSiteNotBack), always, "it is not healthy: the message"},
		"no word of what is under way": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Conditions = g.Status.Conditions[:1] }, always,
			"it is not healthy: it is not known what is under way"},
		"no word of whether it is ready": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Conditions = g.Status.Conditions[1:] }, always,
			"it is not healthy: it is not ready yet"},
		"a failover":           {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Transition = &v1alpha1.Transition{} }, always, "it is not healthy: its active site is changing"},
		"a new specification":  {func(g *v1alpha1.MysqlFailoverGroup) { g.Generation++ }, always, "it is not healthy: its specification has just changed"},
		"it is on its way out": {func(g *v1alpha1.MysqlFailoverGroup) { g.DeletionTimestamp = new(metav1.Now()) }, always, "it is not healthy: it is being deleted"},
		"seen by another":      {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Upgrade.Revision = "r1" }, always, "it is not healthy: this version of the operator has not looked at it yet"},
		"seen by another, and not ready": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Upgrade.Revision = "r1"
			set(0, metav1.ConditionFalse, "X")(g)
		}, always, "it is not healthy: the message"},
		"paused": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue})
		}, always, "it is paused; to end that: kubectl mfg resume orders -n shop"},
		"no longer paused": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionFalse})
		}, always, ""},
		"only observed, and a replica is left": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.Failover.Mode, g.Status.ActiveSite = v1alpha1.FailoverObserve, "a"
		}, always, ""},
		"only observed, and the active site is left": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.Failover.Mode, g.Status.ActiveSite = v1alpha1.FailoverObserve, "b"
		}, always, "only its active site b is left, whose role the operator does not move: spec.failover.mode is Observe"},
		"kept fenced, and a replica is left": {fenced("a", "b"), always, ""},
		"kept fenced, and the active site is left": {fenced("b", "a"), always, "only its active site b is left, and a person keeps each site fenced that could take its role (a); " +
			"to end that: kubectl mfg fence off orders a -n shop"},
		"only the active site is kept fenced":       {fenced("b", "b"), always, ""},
		"one of two that could take the role is":    {fenced("b", "a", "c"), always, ""},
		"one that is never promoted is kept fenced": {fenced("b", "dr"), always, ""},
		"a site with the only copy of its keyring is left": {keyrings("a", "b"), always, "only the running pod may have the keyring that its data needs (b); " +
			"see what to do: kubectl mfg keyring verify orders -n shop"},
		"the active site with it is left":     {keyrings("b", "b"), always, "only the running pod may have the keyring that its data needs (b); see what to do: kubectl mfg keyring verify orders -n shop"},
		"such a site, and another replica":    {keyrings("a", "b", "c"), always, ""},
		"such a site, and a pod of the cache": {keyrings("a", "b", "cache/b"), always, ""},
		"the active site is left, and only such a site could take its role": {keyrings("b", "a"), always,
			"only its active site b is left, and no other site can take its role; only the running pod may have the keyring that its data needs (a); " +
				"see what to do: kubectl mfg keyring verify orders -n shop"},
		"the active site is left, and its replica is up to date": {keyrings("b", "c"), always, ""},
		"no listener for keyrings": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionEncryptionReady, Status: metav1.ConditionFalse,
				Reason: string(v1alpha1.ReasonEscrowListenerMissing), Message: "the operator has no listener"})
		}, always, "no pod of it is replaced: the operator has no listener"},
		"keyrings that are not all sealed": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionEncryptionReady, Status: metav1.ConditionFalse,
				Reason: string(v1alpha1.ReasonNotSealed)})
		}, always, ""},
		"the active site is left": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.ActiveSite = "b" }, always, ""},
		"seen by nobody":          {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Upgrade = nil }, always, "it is not healthy: this version of the operator has not looked at it yet"},
	} {
		g := waits()
		tc.change(g)
		if got := WhyNot(See(g, "r2"), tc.installation, noon); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestWhatIsSeenOfAGroup(t *testing.T) {
	if got := See(waits(), "r2"); !got.Behind || got.Name != "shop/orders" || got.Unseen {
		t.Errorf("%+v", got)
	}
	first := waits()
	first.Status.Upgrade.Sites = []v1alpha1.UpgradeSite{{Name: "a", Behind: true}, {Name: "b"}}
	if !See(first, "r2").Behind {
		t.Error("one old pod is enough, whichever it is")
	}
	done := waits()
	done.Status.Upgrade.Sites[1].Behind = false
	if See(done, "r2").Behind {
		t.Error("a group without old pods is behind")
	}
	// What an older version said of pods is not taken for news.
	if got := See(waits(), "r3"); got.Behind || !got.Unseen || !strings.Contains(got.Why, "has not looked") {
		t.Errorf("%+v", got)
	}
}

// A group of another release is given its turns there. A process without a Lease leaves a claim that has run out, and operates the group.
func TestWhoseAGroupIs(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *v1alpha1.GroupClaim
		own   string
		want  string
	}{
		"nobody has claimed it": {nil, "mfg/mfg-operator", ""},
		"this release has":      {&v1alpha1.GroupClaim{Lease: "mfg/mfg-operator"}, "mfg/mfg-operator", ""},
		"another release has":   {&v1alpha1.GroupClaim{Lease: "blue/mfg-operator"}, "mfg/mfg-operator", "it is operated under Lease blue/mfg-operator"},
		"another, and no Lease": {&v1alpha1.GroupClaim{Lease: "blue/mfg-operator"}, "", ""},
	} {
		g := waits()
		g.Status.Claim = tc.claim
		if got := Elsewhere(g, tc.own); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
