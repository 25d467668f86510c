// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

func (w *world) ready() metav1.Condition {
	w.t.Helper()
	c := meta.FindStatusCondition(w.group().Status.Conditions, v1alpha1.ConditionCacheReady)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// The engines are well and the operator may not label their pods, so the Service leads nowhere: the condition says so after a while, in
// words that stay the same, and is true again once an attempt succeeds.
func TestTheConditionSaysThatActionsFail(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	if c := w.ready(); c.Status != metav1.ConditionTrue {
		t.Fatalf("at first %+v", c)
	}
	pod := w.pod("east")
	delete(pod.Labels, v1alpha1.LabelCacheTraffic)
	if err := w.c.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.l.links["east"].written = nil
	port := 40000
	w.refuse = func(what string) error {
		if strings.HasPrefix(what, "label") {
			port++
			return errors.New("denied on port " + time.Duration(port).String())
		}
		return nil
	}
	w.passes(1)
	if c := w.ready(); c.Status != metav1.ConditionTrue || w.l.failing.since.IsZero() || w.l.failing.pause() != failedPause {
		t.Errorf("after one failure %+v, next look after %s", c, w.l.failing.pause())
	}
	w.l.failing.since = time.Now().Add(-failingPatience)
	w.passes(1)
	c := w.ready()
	if c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha1.ReasonCacheActionFails) || !strings.Contains(c.Message, "denied on port") || w.l.failing.pause() != interval {
		t.Fatalf("after ten seconds %+v, next look after %s", c, w.l.failing.pause())
	}
	version := w.group().ResourceVersion
	w.passes(3)
	if now := w.ready(); now.Message != c.Message || w.group().ResourceVersion != version {
		t.Errorf("it was written again: %q, at first %q", now.Message, c.Message)
	}
	w.refuse = nil
	w.passes(2)
	if c := w.ready(); c.Status != metav1.ConditionTrue || w.l.failing != (failing{}) {
		t.Errorf("once it succeeds: %+v, %+v", c, w.l.failing)
	}
}

// What the decision has to say stays in front, and what nobody would hear of is said now.
func TestWhatIsSaidBesideAFailure(t *testing.T) {
	now := time.Now()
	long := errors.New(strings.Repeat("é", failingLength))
	for name, c := range map[string]struct {
		d      cache.Decision
		reason v1alpha1.Reason
		starts string
	}{
		"ready":     {cache.Decision{Ready: true, Reason: v1alpha1.ReasonAsExpected, Message: "well"}, v1alpha1.ReasonCacheActionFails, "since 20"},
		"passing":   {cache.Decision{Keep: true, Reason: v1alpha1.ReasonCacheMoving, Message: "moving"}, v1alpha1.ReasonCacheActionFails, "since 20"},
		"not ready": {cache.Decision{Reason: v1alpha1.ReasonCacheNoMaster, Message: "no master"}, v1alpha1.ReasonCacheNoMaster, "no master; since 20"},
	} {
		l := &loop{}
		l.withFailure(c.d, long, now.Add(-failingPatience))
		d := l.withFailure(c.d, long, now)
		if d.Ready || d.Keep || d.Reason != c.reason || !strings.HasPrefix(d.Message, c.starts) || len(d.Message) > failingLength+150 || !strings.HasSuffix(d.Message, "é...") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
