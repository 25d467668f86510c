// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

func TestAGroupGetsItsMasterAndFollowsMySQL(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	g := w.group()
	if got := w.traffic(); !slices.Equal(got, []string{"east"}) || g.Status.Cache == nil || g.Status.Cache.ActiveSite != "east" || g.Status.Cache.Transition != nil {
		t.Fatalf("traffic %v, status %+v", got, g.Status.Cache)
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionCacheReady); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	if said := w.engine("west").said; !slices.Contains(said, "follow orders-cache-east.shop.svc") {
		t.Errorf("west was told %v", said)
	}
	if len(g.Status.Cache.Sites) != 2 || g.Status.Cache.Sites[1].Link != "Up" || g.Status.Cache.Sites[0].Image != "valkey:9" {
		t.Errorf("sites %+v", g.Status.Cache.Sites)
	}
	w.order, w.late = nil, 3
	w.planned()
	w.passes(1)
	want := []string{"status", "route", "try", "try", "try", "take over", "label orders-cache-east-0", "label orders-cache-west-0", "label orders-cache-east-0"}
	if !slices.Equal(w.order, want) {
		t.Errorf("done in this order: %v, want %v", w.order, want)
	}
	w.passes(2)
	last := w.group().Status.Cache.LastPromotion
	if got := w.traffic(); !slices.Equal(got, []string{"west"}) || last == nil || last.To != "west" || !last.SessionsPreserved || last.Kind != v1alpha1.CacheMovePlanned {
		t.Errorf("traffic %v, record %+v", got, last)
	}
	if said := w.engine("east").said; said[len(said)-1] != "cut" {
		t.Errorf("the clients of the old master were not cut: %v", said)
	}
	if got := w.selector(); !maps.Equal(got, selector(key.Name, "west")) {
		t.Errorf("the Service selects %v", got)
	}
	w.engine("east").said = nil
	w.l.links["west"].onAt = time.Now().Add(-time.Minute)
	w.passes(1)
	if got := w.selector(); !maps.Equal(got, v1alpha1.CacheSelector(key.Name)) || !slices.Contains(w.engine("east").said, "cut") {
		t.Errorf("a while later the Service selects %v, and the old master was told %v: want its late clients to be cut", got, w.engine("east").said)
	}
}

// The Service for applications follows the labels again whoever wrote what to it, and without it the caches are looked after all the same.
func TestTheServiceFollowsTheLabels(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	s := &corev1.Service{}
	if err := w.c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: v1alpha1.CacheService(key.Name)}, s); err != nil {
		t.Fatal(err)
	}
	for name, selector := range map[string]map[string]string{"nothing": nil, "a person's": {"app": "mine"}, "another site": selector(key.Name, "west")} {
		s.Spec.Selector = selector
		if err := w.c.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		w.l.wrote = route{}
		w.passes(1)
		w.l.links["east"].onAt = time.Now().Add(-time.Minute)
		w.passes(1)
		if got := w.selector(); !maps.Equal(got, v1alpha1.CacheSelector(key.Name)) {
			t.Errorf("%s: the Service selects %v", name, got)
		}
		if err := w.c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.c.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.planned()
	w.passes(3)
	if got := w.traffic(); !slices.Equal(got, []string{"west"}) {
		t.Errorf("without the Service: traffic %v", got)
	}
}

// A Service through which nobody answers, or which is late for ever, holds a move up for a moment and no longer.
func TestAMoveWaitsForNobodyBehindTheService(t *testing.T) {
	for name, change := range map[string]func(*world){
		"it leads to the old one for ever": func(w *world) { w.late = 1 << 30 },
		"nobody answers behind it":         func(w *world) { w.silent = true },
		"it has no address":                func(w *world) { w.address("None") },
	} {
		w := newWorld(t, nil)
		w.passes(4)
		change(w)
		w.planned()
		w.passes(3)
		if got := w.traffic(); !slices.Equal(got, []string{"west"}) {
			t.Errorf("%s: traffic %v", name, got)
		}
	}
}

// I22: what is not durable is not done: an operator that ends would leave a move that nobody knows of.
func TestNothingIsDoneBeforeItIsDurable(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	w.refuse = func(what string) error {
		if what == "status" {
			return errAway
		}
		return nil
	}
	w.order = nil
	w.l.told.Store(&cache.MySQL{Active: "west", Epoch: 4, Moving: true, Kind: v1alpha1.FailoverEmergency})
	w.passes(3)
	if slices.ContainsFunc(w.order, func(done string) bool { return done != "status" }) {
		t.Errorf("done: %v", w.order)
	}
	w.refuse = nil
	w.passes(4)
	if got := w.traffic(); !slices.Equal(got, []string{"west"}) {
		t.Errorf("traffic %v", got)
	}
}

// After the first that fails nothing of what rests on it is done.
func TestTheFirstFailureStops(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	w.refuse = func(what string) error {
		if what == "route" {
			return errAway
		}
		return nil
	}
	w.order = nil
	w.planned()
	w.passes(2)
	if slices.Contains(w.order, "take over") || slices.Contains(w.order, "label orders-cache-west-0") {
		t.Errorf("the Service could not be written, and yet: %v", w.order)
	}
	if got := w.traffic(); !slices.Equal(got, []string{"east"}) {
		t.Errorf("traffic %v", got)
	}
}

// Whatever an operator had done when it ended, the next one ends with one master with traffic.
func TestAnOperatorThatEndsAnywhere(t *testing.T) {
	for after := range 8 {
		w := newWorld(t, nil)
		w.passes(4)
		w.order = nil
		w.refuse = func(string) error {
			if len(w.order) > after {
				return errAway
			}
			return nil
		}
		w.planned()
		w.passes(1)
		w.refuse = nil
		w.restart()
		w.planned()
		w.passes(6)
		if got := w.traffic(); !slices.Equal(got, []string{"west"}) || w.group().Status.Cache.Transition != nil {
			t.Errorf("after %d writes: traffic %v, %+v", after, got, w.group().Status.Cache)
		}
	}
}

// What somebody else wrote since is not written over.
func TestAnotherLeaderIsNoticed(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	g := w.group()
	g.Status.Cache.ActiveSite = "west"
	if err := w.c.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.order = nil
	w.planned()
	w.passes(1)
	if len(w.order) != 0 || w.l.loaded {
		t.Errorf("done: %v, and what stands is read again: %t", w.order, !w.l.loaded)
	}
}

// TestALeaderThatStoodStillReadsWhatStandsI22: another one led meanwhile, and moved the role to west. To what this one remembers, west is a
// second master that has to follow east, with all that was written there since.
func TestALeaderThatStoodStillReadsWhatStandsI22(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	steady := false
	w.loops.Steady = func() bool { return steady }
	g := w.group()
	g.Status.Cache.ActiveSite, g.Status.ActiveSite = "west", "west"
	if err := w.c.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	west := w.engine("west")
	west.info.Role, west.info.MasterHost, west.info.LinkUp, west.said, w.order = v1alpha1.CacheMaster, "", false, nil, nil
	w.passes(1)
	if len(w.order) != 0 || len(west.said) != 0 || w.l.loaded || w.loops.Readiness(key.Namespace, key.Name, "west").Known {
		t.Errorf("I22: it just continued and did %v, told west %v, and what stands is read again: %t", w.order, west.said, !w.l.loaded)
	}
	steady = true
	w.passes(3)
	if got := w.group().Status.Cache.ActiveSite; got != "west" || len(west.said) != 0 || !slices.Contains(w.engine("east").said, "follow orders-cache-west.shop.svc") {
		t.Errorf("I22: it still leads: status names %s, west was told %v and east %v", got, west.said, w.engine("east").said)
	}
}

// Words about the cache are not written over the role that another process has moved since.
func TestWordsDoNotTakeTheRoleBackI22(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	g := w.group()
	g.Status.Cache.ActiveSite = "west"
	if err := w.c.Status().Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.l.said = said{}
	w.passes(1)
	if got := w.group().Status.Cache.ActiveSite; got != "west" || w.l.loaded {
		t.Errorf("I22: status names %s, and what stands is read again: %t", got, !w.l.loaded)
	}
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MysqlFailoverGroup){
		"another release's": func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Claim = &v1alpha1.GroupClaim{Lease: "other/lease"} },
		"being deleted": func(g *v1alpha1.MysqlFailoverGroup) {
			now := metav1.Now()
			g.DeletionTimestamp, g.Finalizers = &now, []string{v1alpha1.Finalizer}
		},
	} {
		w := newWorld(t, change)
		w.passes(3)
		if len(w.order) != 0 || w.engine("west").said != nil {
			t.Errorf("%s: done %v %v", name, w.order, w.engine("west").said)
		}
		if w.loops.Readiness(key.Namespace, key.Name, "west").Known {
			t.Errorf("%s: somebody answers for it", name)
		}
	}
}

// Switched off, what was said of it goes, and so does the loop; a request is refused.
func TestACacheThatIsSwitchedOff(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	g := w.group()
	g.Spec.Cache.Enabled = false
	g.Annotations = map[string]string{v1alpha1.AnnotationPromoteCache: "west"}
	if err := w.c.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.passes(2)
	g = w.group()
	if _, over := w.l.pass(t.Context()); !over || g.Status.Cache != nil || meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionCacheReady) != nil {
		t.Errorf("over %t, status %+v %+v", over, g.Status.Cache, g.Status.Conditions)
	}
	if last := g.Status.LastRequest(v1alpha1.RequestPromoteCache); last == nil || last.Outcome != v1alpha1.RequestRefused || g.Annotations[v1alpha1.AnnotationPromoteCache] != "" {
		t.Errorf("answer %+v, left %v", last, g.Annotations)
	}
}

func TestARequestIsAnswered(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	g := w.group()
	g.Annotations = map[string]string{v1alpha1.AnnotationPromoteCache: "west", v1alpha1.AnnotationPromoteCache + "-id": "7"}
	if err := w.c.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.passes(4)
	g = w.group()
	if last := g.Status.LastRequest(v1alpha1.RequestPromoteCache); last == nil || last.Outcome != v1alpha1.RequestDone || last.ID != "7" || len(g.Annotations) != 0 {
		t.Errorf("answer %+v, left %v", last, g.Annotations)
	}
	if got := w.traffic(); !slices.Equal(got, []string{"west"}) {
		t.Errorf("traffic %v", got)
	}
}

// A cache that answers nothing costs a look no more than its time, and the others nothing.
func TestACacheThatHangs(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	w.engine("west").mu.Lock()
	w.engine("west").hangs = true
	w.engine("west").mu.Unlock()
	began := time.Now()
	w.passes(1)
	if took := time.Since(began); took < askTimeout || took > askTimeout+soon {
		t.Errorf("a look took %s", took)
	}
	r := w.loops.Readiness(key.Namespace, key.Name, "west")
	if r.Known {
		t.Error("a loop that nobody runs answers")
	}
	if s := w.l.seen.Load().synced; s[1].Yes || !strings.Contains(s[1].Why, "does not answer") {
		t.Errorf("west has caught up: %+v", s)
	}
}

func TestLoopsBeginAndEndWithTheirGroups(t *testing.T) {
	w := newWorld(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	w.loops.Ensure(key)
	go func() { defer close(ended); _ = w.loops.Start(ctx) }()
	eventually(t, func() bool { return w.loops.Readiness(key.Namespace, key.Name, "west").Known })
	w.loops.Moved(key.Namespace, key.Name, cache.MySQL{Active: "east", Epoch: 9})
	eventually(t, func() bool { return w.loops.Readiness(key.Namespace, key.Name, "west").Synced })
	if w.loops.Ended(key) {
		t.Error("it runs and is said to have ended")
	}
	w.loops.Forget(key)
	eventually(t, func() bool { return w.loops.Ended(key) })
	w.loops.Ensure(key)
	eventually(t, func() bool { return !w.loops.Ended(key) })
	stop()
	<-ended
}

func eventually(t *testing.T, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if yes() {
			return
		}
	}
	t.Fatal("it does not come to that")
}

// A pod of MySQL is never taken for one of a cache, nor the pod of another group.
func TestWhichPodsAreCaches(t *testing.T) {
	w := newWorld(t, nil)
	for name, labels := range map[string]map[string]string{
		"mysql": {v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelGroup: key.Name, v1alpha1.LabelSite: "south"},
		"other": {v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelGroup: "another", v1alpha1.LabelSite: "north"},
	} {
		if err := w.c.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for site := range w.l.podsOf(t.Context(), w.group()) {
		names = append(names, site)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"east", "west"}) {
		t.Errorf("caches of %v", names)
	}
	if got := indexed(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelGroup: "g"}}}); got != nil {
		t.Errorf("a pod of MySQL is found as a cache of %v", got)
	}
}

// The labels that were written count until the manager's cache shows them, and no longer than that.
func TestWrittenLabelsCount(t *testing.T) {
	pod := cachePod("east", "10.0.0.1")
	pod.ResourceVersion = "1"
	k := &link{written: map[string]string{v1alpha1.LabelCacheRole: "master", v1alpha1.LabelCacheTraffic: "enabled"}, version: "2", writtenAt: time.Now()}
	if role, on := k.labels(pod); role != v1alpha1.CacheMaster || !on {
		t.Error("what was written just now does not count")
	}
	k.writtenAt = time.Now().Add(-time.Minute)
	if role, on := k.labels(pod); role != "" || on {
		t.Error("what was written long ago counts more than what stands")
	}
	k.writtenAt, pod.ResourceVersion = time.Now(), "2"
	if _, on := k.labels(pod); on {
		t.Error("what was written counts more than what stands by now")
	}
}
