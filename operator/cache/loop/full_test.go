// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

// A master that is full refuses the operator, and lives: it keeps the traffic, and people are told. One that only ends connections is believed
// while its pod is ready; one whose container began after it became the master is not.
func TestAFullMasterStays(t *testing.T) {
	ready := func(is corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}} }
	}
	began := func(at time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{}, {State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}}
		}
	}
	for name, tc := range map[string]struct {
		fails error
		pod   func(*corev1.Pod)
		want  string
	}{
		"it says so":                        {engine.ErrFull, func(*corev1.Pod) {}, "east"},
		"it says so, and began before":      {engine.ErrFull, began(time.Now().Add(-time.Hour)), "east"},
		"it says so, and began since":       {engine.ErrFull, began(time.Now().Add(time.Hour)), "west"},
		"it ends connections":               {engine.ErrDropped, ready(corev1.ConditionTrue), "east"},
		"it ends them, and is not ready":    {engine.ErrDropped, ready(corev1.ConditionFalse), "west"},
		"it ends them, and nobody knows it": {engine.ErrDropped, func(*corev1.Pod) {}, "west"},
		"it is silent":                      {errAway, ready(corev1.ConditionTrue), "west"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.passes(6)
			w.engine("west").info.Keys = 9
			pod := w.pod("east")
			tc.pod(pod)
			w.update(pod)
			w.engine("east").fails = fmt.Errorf("dial: %w", tc.fails)
			w.passes(1)
			is := w.l.memory.Sites["east"]
			is.AwaySince, is.MissedSince = time.Now().Add(-time.Minute), time.Now().Add(-time.Minute)
			w.l.memory.Sites["east"] = is
			w.passes(6)
			if got := w.traffic(); fmt.Sprint(got) != fmt.Sprint([]string{tc.want}) {
				t.Errorf("%v take the traffic, want %s", got, tc.want)
			}
			c := meta.FindStatusCondition(w.group().Status.Conditions, v1alpha1.ConditionCacheReady)
			if told := c.Reason == string(v1alpha1.ReasonCacheFull) && strings.Contains(c.Message, "end connections of applications"); told != (tc.want == "east") {
				t.Errorf("%+v", c)
			}
		})
	}
}

// A drain of the node of a full master waits for as long as nobody can have it hand over, and the condition says so.
func TestADrainWaitsForAFullMaster(t *testing.T) {
	s := cache.Snapshot{Pods: []cache.Pod{{Site: "east", Exists: true, Full: true, Leaving: "node worker is cordoned"}, {Site: "west", Exists: true}}}
	d := cache.Decision{Status: cache.Durable{ActiveSite: "east"}, Message: "m"}
	if got := withDrain(s, d).Message; !strings.Contains(got, "its drain waits") {
		t.Error(got)
	}
}

// The process of a former master that handed over to nobody and is full has its pod replaced: it would never be told to follow, and its clients
// would write on.
func TestAFullFormerMasterIsReplaced(t *testing.T) {
	at := time.Now().Add(-10 * time.Minute)
	for name, tc := range map[string]struct {
		change func(p *cache.Pod, last *cache.Promotion, k *link)
		marked bool
	}{
		"it is": {func(*cache.Pod, *cache.Promotion, *link) {}, true},
		"not for long": {func(_ *cache.Pod, _ *cache.Promotion, k *link) {
			k.stale.full = time.Now().Add(-hungPatience + 10*time.Second)
		}, false},
		"it was marked a moment ago":   {func(_ *cache.Pod, _ *cache.Promotion, k *link) { k.stale.hungAt = time.Now().Add(-time.Minute) }, false},
		"it answers":                   {func(p *cache.Pod, _ *cache.Promotion, _ *link) { p.Reachable = true }, false},
		"it is silent":                 {func(p *cache.Pod, _ *cache.Promotion, _ *link) { p.Full = false }, false},
		"it handed over":               {func(_ *cache.Pod, last *cache.Promotion, _ *link) { last.Reason = "" }, false},
		"another was the master":       {func(_ *cache.Pod, last *cache.Promotion, _ *link) { last.From = "south" }, false},
		"it is the master again":       {func(_ *cache.Pod, last *cache.Promotion, _ *link) { last.To = "west" }, false},
		"its container is a newer one": {func(p *cache.Pod, _ *cache.Promotion, _ *link) { p.Began = at.Add(time.Second) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			p, k := cache.Pod{Site: "west", Exists: true, Full: true, Began: at.Add(-time.Hour)}, &link{engine: &cacheModel{}}
			k.answered(engine.ErrFull, time.Now().Add(-hungPatience-time.Second))
			k.answered(engine.ErrDropped, time.Now())
			last := &cache.Promotion{At: metav1.NewMicroTime(at), From: "west", To: "east", Reason: v1alpha1.ReasonCacheMasterSilent}
			tc.change(&p, last, k)
			w.l.links = map[string]*link{"west": k}
			see := look{group: w.group(), began: time.Now(), pods: map[string]*corev1.Pod{"west": w.pod("west")},
				snapshot: cache.Snapshot{Status: cache.Durable{Last: last}, Pods: []cache.Pod{{Site: "east", Reachable: true}, p}}}
			w.l.markStale(t.Context(), see)
			if got := w.pod("west").Annotations[v1alpha1.AnnotationCacheStale]; got == staleFull != tc.marked {
				t.Errorf("marked %q", got)
			}
			if tc.marked && time.Since(k.stale.hungAt) > time.Minute {
				t.Error("it is not remembered")
			}
			if k.answered(nil, time.Now()); k.fullFor(time.Now()) != 0 {
				t.Error("one that answers counts as full")
			}
		})
	}
}
