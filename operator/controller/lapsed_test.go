// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

// The annotation is what a person takes back; that the policy ordered, or that the site is named again, is no withdrawal.
func TestAnOrderIsWithdrawnWithItsAnnotation(t *testing.T) {
	w := orderWorld(t)
	w.ordered("b", "b:confirm")
	key := scope.SiteKey{Group: scopetest.Key, Site: "b"}
	cancelled := 0
	w.r.Work.Forget(scopetest.Key)
	job := w.r.Work.Begin(key, func() { cancelled++ })
	is := func(want bool) {
		t.Helper()
		w.reconcile()
		if got := w.r.clones.Withdrawn(key, "b:confirm"); got != want {
			t.Errorf("withdrawn %t", got)
		}
	}
	is(false)
	w.order(v1alpha1.AnnotationRecloneSite, "")
	is(true)
	is(true)
	if cancelled != 1 {
		t.Errorf("what waits for its turn was ended %d times", cancelled)
	}
	if w.provisioned("b") || w.site("b").Clone == nil {
		t.Error("it was dropped without a look at the site")
	}
	job.Hold()
	w.mayClone() // another operator, which remembers nothing
	if is(true); cancelled != 1 {
		t.Error("a job that holds its site was ended")
	}
	w.order(v1alpha1.AnnotationRecloneSite, "b:confirm")
	is(false)
}

// I14: a site that was promoted while its clone waited for its turn is not cloned when it is a replica again: what it took in
// between may be nowhere else.
func TestNoCloneOfASiteThatWasActiveMeanwhile(t *testing.T) {
	w := orderWorld(t)
	w.ordered("b", "b:confirm")
	cancelled := 0
	w.r.Work.Forget(scopetest.Key)
	w.r.Work.Begin(scope.SiteKey{Group: scopetest.Key, Site: "b"}, func() { cancelled++ })
	w.reconcile()
	if cancelled != 0 {
		t.Fatal("a job of a replica was ended")
	}
	w.monitorStatus("b", 2)
	w.facts.Open("b")
	if w.reconcile(); cancelled != 1 {
		t.Errorf("I14: what waited to clone the active site was ended %d times", cancelled)
	}
}

// A lapsed order is answered, and its site is whole again without a clone.
func TestLapsedOrderIsAnswered(t *testing.T) {
	w := orderWorld(t)
	w.ordered("b", "b:confirm")
	w.ended("b", work.Outcome{Verdict: work.VerdictLapse, Message: "the active site was a", Order: "b:confirm"})
	w.reconcile()
	w.r.runner.Wait()
	g := w.group()
	last := w.last(v1alpha1.RequestRecloneSite)
	if g.Annotations[v1alpha1.AnnotationRecloneSite] != "" || last != "b:confirm: Refused (OrderLapsed): the active site was a" {
		t.Errorf("annotations %v, answer %q", g.Annotations, last)
	}
	if w.site("b").Clone != nil || w.busy("b") || w.said.Count(v1alpha1.ReasonRecloneRefused) != 1 {
		t.Errorf("status %+v, events %v", w.site("b"), w.said.List)
	}
	w.r.Work.Forget(scopetest.Key)
	w.ended("b", work.Outcome{Verdict: work.VerdictAdopt, Message: "its data is the group's"})
	if w.reconcile(); !w.provisioned("b") {
		t.Errorf("status %+v", w.site("b"))
	}
}
