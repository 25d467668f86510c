// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

func (w *world) provisioned(site string) bool {
	w.t.Helper()
	return w.site(site).Provisioned
}

// ended enters a job that has ended.
func (w *world) ended(site string, o work.Outcome) {
	key := scope.SiteKey{Group: scopetest.Key, Site: site}
	job := w.r.Work.Begin(key, func() {})
	job.Hold()
	job.Finish(o)
}

func (w *world) busy(site string) bool {
	_, busy := w.r.Work.Busy(scopetest.Key.Namespace, scopetest.Key.Name, site)
	return busy
}

// While the mark is not in status, the site must stay out of the poll loop's hands: after a crash nobody would know.
func TestMarkIsPersistedBeforeRelease(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.settle("a", "b", "c")
	w.ended("b", work.Outcome{Verdict: work.VerdictAdopt, Message: "the site's data is part of the active site's", Cloned: true})

	w.fail["*v1alpha1.MysqlFailoverGroupApplyConfiguration"] = errors.New("no")
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil {
		t.Fatal("no error")
	}
	if w.provisioned("b") || !w.busy("b") {
		t.Error("the site was let go without its mark")
	}
	clear(w.fail)
	w.reconcile()
	if !w.provisioned("b") || w.busy("b") {
		t.Errorf("provisioned %v, busy %v", w.provisioned("b"), w.busy("b"))
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonProvisioning || !strings.Contains(c.Message, "c") {
		t.Errorf("condition %+v", c)
	}
}

// strand makes b need what a has purged.
func (w *world) strand() {
	f, _ := w.facts.Sites("", "")
	a, b := f.Sites["a"], f.Sites["b"]
	a.Executed, a.Purged = sets(uuidOfA+":1-100"), sets(uuidOfA+":1-50")
	b.Executed, b.IOErrno, b.Following = sets(uuidOfA+":1-40"), 13114, false
	w.facts.Set("a", a)
	w.facts.Set("b", b)
}

// A clone that ends half-way must not leave a site that passes for whole, so the mark goes first.
func TestStrandedSiteLosesItsMarkBeforeTheClone(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	w.strand()
	w.r.runner.Lead(t.Context())
	w.mayClone()

	w.reconcile()
	if w.provisioned("b") || w.said.Count(v1alpha1.ReasonSiteStranded) != 1 {
		t.Errorf("provisioned %v, events %v", w.provisioned("b"), w.said.List)
	}
	if w.r.Work.Jobs() != 0 {
		t.Error("the clone began before the mark was off")
	}
	w.reconcile()
	if w.r.Work.Jobs() != 1 {
		t.Errorf("%d jobs", w.r.Work.Jobs())
	}
	w.r.runner.Wait()
}

// Nothing is cloned to a volume that goes, so a stranded site keeps its mark there: until its pod ends it may be the only other copy.
func TestAStrandedSiteKeepsItsMarkWhileItsVolumeGoes(t *testing.T) {
	w := settledWorld(t)
	w.terminate("b")
	w.strand()
	w.reconcile()
	if !w.provisioned("b") || w.said.Count(v1alpha1.ReasonSiteStranded) != 0 {
		t.Errorf("provisioned %t, events %v", w.provisioned("b"), w.said.List)
	}
}

func TestNothingIsProvisionedDuringFailover(t *testing.T) {
	tests := map[string]func(*world){
		"transition": func(w *world) {
			g := w.group()
			g.Status.Transition = &v1alpha1.Transition{To: "b"}
			w.must(w.c.Status().Update(w.ctx, g))
		},
		"old facts":     func(w *world) { w.facts.Open("c") },
		"nobody active": func(w *world) { w.facts.Open("") },
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.facts.Open("a")
			w.reconcile()
			w.settle("a", "b", "c")
			w.strand()
			w.r.runner.Lead(context.Background())
			happens(w)
			w.reconcile()
			if !w.provisioned("b") || w.r.Work.Jobs() != 0 {
				t.Errorf("provisioned %v, %d jobs", w.provisioned("b"), w.r.Work.Jobs())
			}
		})
	}
}

// What is said of a refused site does not come and go while it is looked at again.
func TestRefusalStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, scopetest.Group())
		w.reconcile()
		w.monitorStatus("a", 1)
		w.facts.Open("a")
		w.settle("a", "b", "c")
		w.ended("b", work.Outcome{Verdict: work.VerdictRefuse, Message: "it has 3 transactions"})
		var seen []conditions.Condition
		for i := range 4 {
			if i == 2 {
				time.Sleep(time.Minute)
				if w.r.Work.Begin(scope.SiteKey{Group: scopetest.Key, Site: "b"}, func() {}) == nil {
					t.Fatal("the next look did not begin")
				}
			}
			w.reconcile()
			seen = append(seen, w.condition(v1alpha1.ConditionProgressing))
		}
		for _, c := range seen {
			if c.Reason != v1alpha1.ReasonCloneRefused || c.Status != metav1.ConditionFalse {
				t.Errorf("condition %+v", c)
			}
		}
		if w.said.Count(v1alpha1.ReasonSiteCloneRefused) != 1 {
			t.Errorf("events %v", w.said.List)
		}
	})
}

// A refused site that becomes the active site by the hand of a person has the group's data by definition.
func TestRefusalEnds(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.settle("a", "b", "c")
	w.ended("b", work.Outcome{Verdict: work.VerdictRefuse, Message: "it has 3 transactions"})
	w.reconcile()
	w.monitorStatus("b", 2)
	w.facts.Open("b")
	w.reconcile()
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason == v1alpha1.ReasonCloneRefused {
		t.Errorf("condition %+v", c)
	}
}

func TestFailureIsShown(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.settle("a", "b", "c")
	w.ended("b", work.Outcome{Verdict: work.VerdictWait, Message: "clone: no space left", Failed: true})
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); !strings.Contains(c.Message, "b (clone: no space left), c") {
		t.Errorf("condition %+v", c)
	}
}

func TestDivergedSiteIsNotProvisioned(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.settle("a", "b", "c")
	w.facts.Set("b", scope.SiteFacts{MysqlUp: true, AdminAddr: "10.0.0.2:33062", Diverged: true})
	w.facts.Set("c", scope.SiteFacts{})
	w.r.runner.Lead(context.Background())
	w.reconcile()
	if w.r.Work.Jobs() != 0 {
		t.Errorf("%d jobs", w.r.Work.Jobs())
	}
	if c := w.condition(v1alpha1.ConditionProgressing); !strings.Contains(c.Message, "b (it has diverged") {
		t.Errorf("condition %+v", c)
	}
}
