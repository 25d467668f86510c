// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// onlyTheActiveIsOld is a group of which everything but the active site got the new image.
func onlyTheActiveIsOld(t *testing.T) *world {
	t.Helper()
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	w.settle("c")
	w.reconcile()
	w.settle("b")
	return w
}

// asked is true if the poll loop is asked to move the role away from a site.
func (w *world) asked(site string) bool {
	w.t.Helper()
	reason, wanted := w.r.Work.Leaving(scopetest.Key.Namespace, scopetest.Key.Name, site)
	if wanted && reason != "its pod is to be updated" {
		w.t.Errorf("the poll loop does not know the reason %q", reason)
	}
	return wanted
}

// moveRole does what a planned failover does.
func (w *world) moveRole(from, to string) {
	w.t.Helper()
	w.monitorStatus(to, w.group().Status.Epoch+1)
	w.facts.Open(to)
	g, _ := w.facts.Sites("", "")
	old, active := g.Sites[from], g.Sites[to]
	old.Writable, old.Following = false, true
	active.Writable, active.Following = true, false
	w.facts.Set(from, old)
	w.facts.Set(to, active)
}

func (w *world) annotate(key, value string) {
	w.t.Helper()
	g := w.group()
	g.Annotations = map[string]string{key: value}
	w.must(w.c.Update(w.ctx, g))
}

func TestTheRoleMovesBeforeTheActiveSiteIsUpdated(t *testing.T) {
	w := onlyTheActiveIsOld(t)
	old := w.deployments()
	for range 3 {
		w.reconcile()
	}
	if diff := cmp.Diff(old, w.deployments()); diff != "" {
		t.Fatalf("the active site's pod is replaced in place (-want +got):\n%s", diff)
	}
	if !w.asked("a") || w.asked("b") || w.asked("c") {
		t.Fatal("the role is not asked to move away from a alone")
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonMovingRole || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	if n := w.said.Count(v1alpha1.ReasonSiteAskedToLeave); n != 1 {
		t.Errorf("said %d times", n)
	}
	w.moveRole("a", "b")
	w.reconcile()
	if got := w.deployments(); got["a"] == old["a"] || got["b"] != old["b"] {
		t.Errorf("the former active site is not updated: %v, before %v", got, old)
	}
	if w.asked("a") || w.asked("b") {
		t.Error("the role is asked to move although it has")
	}
	w.settle("a")
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonAsExpected {
		t.Errorf("condition %+v", c)
	}
}

// Whatever keeps an update from going on also keeps the role where it is.
func TestTheRoleIsNotAskedToMove(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*world)
		status  metav1.ConditionStatus
		reason  v1alpha1.Reason
	}{
		"a failover is under way": {func(w *world) {
			g := w.group()
			g.Status.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverEmergency, From: "a", To: "b"}
			w.must(w.c.Status().Update(w.ctx, g))
		}, metav1.ConditionTrue, v1alpha1.ReasonWaitingForSite},
		"paused": {func(w *world) {
			w.annotate(v1alpha1.AnnotationPauseUntil, time.Now().Add(time.Hour).Format(time.RFC3339))
		}, metav1.ConditionFalse, v1alpha1.ReasonPaused},
		"observed": {func(w *world) {
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Failover.Mode = v1alpha1.FailoverObserve })
		}, metav1.ConditionFalse, v1alpha1.ReasonRoleStays},
		"the candidate has diverged": {func(w *world) {
			g, _ := w.facts.Sites("", "")
			f := g.Sites["b"]
			f.Diverged = true
			w.facts.Set("b", f)
		}, metav1.ConditionFalse, v1alpha1.ReasonNoCandidate},
		"the candidate is kept fenced": {func(w *world) {
			w.annotate(v1alpha1.KeepFencedSite("b"), "why")
		}, metav1.ConditionFalse, v1alpha1.ReasonNoCandidate},
		"the candidate is cloned": {func(w *world) {
			w.r.Work.Begin(scope.SiteKey{Group: scopetest.Key, Site: "b"}, func() {}).Hold()
		}, metav1.ConditionTrue, v1alpha1.ReasonWaitingForSite},
	} {
		t.Run(name, func(t *testing.T) {
			w := onlyTheActiveIsOld(t)
			w.reconcile()
			if !w.asked("a") {
				t.Fatal("nothing is asked for at all")
			}
			tc.happens(w)
			old := w.deployments()
			w.reconcile()
			w.reconcile()
			if diff := cmp.Diff(old, w.deployments()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if w.asked("a") {
				t.Error("the role is asked to move")
			}
			if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != tc.reason || c.Status != tc.status {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

// Why the role did not move is where people look for the update.
func TestARefusedMoveIsTold(t *testing.T) {
	w := onlyTheActiveIsOld(t)
	g := w.group()
	g.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{
		From: "a", To: "b", Cause: v1alpha1.ReasonOrderedUpdate, Phase: v1alpha1.PlannedReverted, Message: "b is 70000 transactions behind",
	}
	w.must(w.c.Status().Update(w.ctx, g))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); !w.asked("a") || !strings.Contains(c.Message, "70000 transactions behind") {
		t.Errorf("condition %+v", c)
	}
}

// While the active site's pod starts, its replicas do not follow. They must not be replaced for that.
func TestNothingElseIsReplacedWhileTheActiveSiteStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want bool
	}{
		"just now": {time.Second, true},
		"failed":   {2 * scope.BrokenAfter, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := onlyTheActiveIsOld(t)
			pod := &corev1.Pod{}
			w.get(pod, "mysql-orders-a-"+w.deployments()["a"])
			w.must(w.c.Delete(w.ctx, pod))
			pod.ResourceVersion, pod.CreationTimestamp = "", metav1.NewTime(time.Now().Add(-tc.age))
			pod.Status.Conditions = nil
			w.must(w.c.Create(w.ctx, pod))
			for _, site := range []string{"a", "b", "c"} {
				w.facts.Set(site, scope.SiteFacts{MysqlUp: site == "c"})
			}
			w.facts.Open("")
			w.nodeIs("a", corev1.ConditionTrue)
			w.isUnavailable("b")
			old := w.deployments()
			w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.9" })
			w.reconcile()
			got := w.deployments()
			if spared := got["b"] == old["b"] && got["c"] == old["c"]; spared != tc.want {
				t.Errorf("got %v, before %v; condition %+v", got, old, w.condition(v1alpha1.ConditionProgressing))
			}
		})
	}
}

// The active site's mysqld crashes in the middle of an update: whoever does not follow it now may be about to replace it.
func TestNoCandidateIsTakenWhileTheActiveSiteIsDown(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MysqlFailoverGroup){
		"I30": func(*v1alpha1.MysqlFailoverGroup) {},
		// It stays until the role has moved, and is the active site all that time.
		"I30, and it left the specification": func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[1:] },
	} {
		t.Run(name, func(t *testing.T) { noCandidateIsTaken(t, change) })
	}
}

func noCandidateIsTaken(t *testing.T, change func(*v1alpha1.MysqlFailoverGroup)) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	g, _ := w.facts.Sites("", "")
	for site, f := range g.Sites {
		f.Following, f.Writable, f.MysqlUp = false, false, site != "a"
		w.facts.Set(site, f)
	}
	w.facts.Open("")
	old := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Image = "mysql:9.8"
		change(g)
	})
	w.reconcile()
	got := w.deployments()
	if got["b"] != old["b"] || got["c"] != old["c"] {
		t.Errorf("got %v, before %v", got, old)
	}
}
