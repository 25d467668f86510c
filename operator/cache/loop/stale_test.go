// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"os"
	"slices"
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

// What a person has to settle stands in the condition, whatever the caches themselves say, and goes with it. Until somebody has looked
// for such a thing, the condition stays as it is: an operator that begins must not say for a moment that all is well.
func TestTheConditionNamesWhatAPersonHasToSettle(t *testing.T) {
	w := newWorld(t, nil)
	w.troubles = &troubles{}
	w.restart()
	ready := func() metav1.Condition {
		t.Helper()
		c := meta.FindStatusCondition(w.group().Status.Conditions, v1alpha1.ConditionCacheReady)
		if c == nil {
			t.Fatal("no condition")
		}
		return *c
	}
	w.troubles.say("", "")
	w.passes(4)
	if c := ready(); c.Status != metav1.ConditionTrue {
		t.Fatalf("without any: %+v", c)
	}
	w.troubles.say(v1alpha1.ReasonWrongNames, "issue it anew")
	w.passes(1)
	if c := ready(); c.Status != metav1.ConditionFalse || c.Reason != string(v1alpha1.ReasonWrongNames) || c.Message != "issue it anew" {
		t.Errorf("with one: %+v", c)
	}
	if got := w.traffic(); !slices.Equal(got, []string{"east"}) {
		t.Errorf("the cache works, and its traffic is at %v", got)
	}
	w.troubles.found = nil
	w.restart()
	w.passes(3)
	if c := ready(); c.Reason != string(v1alpha1.ReasonWrongNames) {
		t.Errorf("an operator that has not looked yet says %+v", c)
	}
	w.l.memory.Began = time.Now().Add(-2 * troublePatience)
	w.passes(1)
	if c := ready(); c.Status != metav1.ConditionTrue {
		t.Errorf("nobody ever looks, and the condition is %+v", c)
	}
	w.troubles.say(v1alpha1.ReasonSecretMissing, "create it")
	for _, site := range []string{"east", "west"} {
		w.engine(site).fails = errAway
	}
	w.passes(1)
	if c := ready(); c.Reason != string(v1alpha1.ReasonSecretMissing) || !strings.HasPrefix(c.Message, "create it; ") || !strings.Contains(c.Message, "does not answer") {
		t.Errorf("with one and no master: %+v", c)
	}
}

// The budget keeps the master's pod on a cordoned node for as long as no other cache can take over with every key. The condition says so.
func TestTheConditionNamesADrainThatWaits(t *testing.T) {
	const waits = "; node worker is cordoned, and its drain waits until a cache on another node can take over"
	for name, tc := range map[string]struct {
		leaving string
		replica cache.Pod
		message string
		want    string
	}{
		"no replica has caught up":     {"node worker is cordoned", cache.Pod{Linked: true, Syncing: true}, "m", "m" + waits},
		"the replica's node goes, too": {"node worker is cordoned", cache.Pod{Linked: true, Leaving: "node other is cordoned"}, "m", "m" + waits},
		"the replica's site goes":      {"node worker is cordoned", cache.Pod{Linked: true, Removed: true}, "m", "m" + waits},
		"a replica can take over":      {"node worker is cordoned", cache.Pod{Linked: true}, "m", "m"},
		"an update waits":              {"Update", cache.Pod{}, "m", "m"},
		"nothing goes":                 {"", cache.Pod{}, "m", "m"},
		"the condition stays":          {"node worker is cordoned", cache.Pod{}, "", ""},
	} {
		tc.replica.Site, tc.replica.Reachable, tc.replica.Role, tc.replica.Following = "west", true, v1alpha1.CacheReplica, "east"
		s := cache.Snapshot{Pods: []cache.Pod{{Site: "east", Reachable: true, Role: v1alpha1.CacheMaster, Leaving: tc.leaving}, tc.replica}}
		d := cache.Decision{Status: cache.Durable{ActiveSite: "east"}, Message: tc.message}
		if got := withDrain(s, d).Message; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		d.Status.Transition = &v1alpha1.CacheTransition{}
		if got := withDrain(s, d).Message; got != tc.message {
			t.Errorf("%s, while the master moves: %q", name, got)
		}
	}
	w := newWorld(t, nil)
	w.passes(4)
	pod := w.pod("east")
	pod.Spec.NodeName = "worker"
	if err := w.c.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: corev1.NodeSpec{Unschedulable: true}}); err != nil {
		t.Fatal(err)
	}
	w.engine("west").info.LinkUp = false
	w.passes(1)
	if c := meta.FindStatusCondition(w.group().Status.Conditions, v1alpha1.ConditionCacheReady); c == nil || !strings.Contains(c.Message, waits) {
		t.Errorf("%+v", c)
	}
}

// An engine that shows an old certificate is told to read the new one. One that does not in five minutes has its pod marked, which is
// replaced then; and its successor is not marked for the same certificate again.
func TestARenewedCertificateReachesTheEngines(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(4)
	west := w.engine("west")
	if string(west.certificate) != "certificate" {
		t.Errorf("the certificate to show is %q", west.certificate)
	}
	mark := func() string { return w.pod("west").Annotations[v1alpha1.AnnotationCacheStale] }
	west.stale = true
	w.passes(2)
	if west.stale || !slices.Contains(west.said, "renew") {
		t.Errorf("it was told %v", west.said)
	}
	if since := w.l.links["west"].stale.since; !since.IsZero() {
		t.Errorf("it counts as stale since %s", since)
	}
	west.stale, west.stubborn = true, true
	w.passes(2)
	if mark() != "" {
		t.Error("its pod is marked at once")
	}
	w.l.links["west"].stale.since = time.Now().Add(-stalePatience - time.Second)
	w.passes(1)
	if mark() == "" {
		t.Error("its pod is not marked")
	}
	if message := w.group().Status.Cache.Sites[1].Message; !strings.Contains(message, "certificate") {
		t.Errorf("status says %q of it", message)
	}
	if said := w.engine("east").said; slices.Contains(said, "renew") {
		t.Errorf("the other one was told %v", said)
	}
	pod := cachePod("west", "10.0.0.2")
	pod.UID = "its-successor"
	if err := w.c.Delete(t.Context(), cachePod("west", "")); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.passes(2)
	w.l.links["west"].stale.since = time.Now().Add(-stalePatience - time.Second)
	w.passes(1)
	if mark() != "" {
		t.Error("a pod whose predecessor was replaced for this certificate is marked again")
	}
}

// With an engine whose masters name no offset, what a replica lacks is what its master says of it.
func TestTheLagThatTheMasterNames(t *testing.T) {
	w := newWorld(t, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Engine = v1alpha1.CacheDragonfly })
	w.passes(4)
	w.engine("east").info.Replicas = []engine.Replica{{Host: "10.0.0.9", Lag: 3}, {Host: "10.0.0.2", Lag: 4000}}
	w.passes(1)
	if s := w.l.seen.Load().synced; s[1].Yes || !strings.Contains(s[1].Why, "4000 changes") {
		t.Errorf("west has caught up: %+v", s)
	}
	w.engine("east").info.Replicas[1].Lag = 400
	w.l.said.written = time.Time{}
	w.passes(1)
	if s := w.l.seen.Load().synced; !s[1].Yes {
		t.Errorf("west has not caught up: %+v", s)
	}
	if behind := w.group().Status.Cache.Sites[1].OffsetBehind; behind == nil || *behind != 400 {
		t.Errorf("status says %v", behind)
	}
}

// A pod whose engine answers nothing for a minute is marked, and replaced then, if its port takes connections: the kubelet takes it for well.
// One that cannot be reached at all is not, nor is any while no cache of the group answers: then the network may be what is broken.
func TestAnEngineThatHangsIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world)
		marked bool
	}{
		"it hangs":                      {func(*world) {}, true},
		"not for long":                  {func(w *world) { w.l.links["west"].stale.silent = time.Now().Add(-hungPatience + soon) }, false},
		"its port is closed":            {func(w *world) { w.engine("west").deaf = true }, false},
		"nobody answers":                {func(w *world) { w.engine("east").fails = errAway }, false},
		"one was replaced a moment ago": {func(w *world) { w.l.links["west"].stale.hungAt = time.Now().Add(-hungPause + time.Minute) }, false},
		"one was replaced long ago":     {func(w *world) { w.l.links["west"].stale.hungAt = time.Now().Add(-hungPause - time.Minute) }, true},
		"the kubelet sees it": {func(w *world) {
			pod := w.pod("west")
			pod.Status.Conditions = nil
			if err := w.c.Status().Update(w.t.Context(), pod); err != nil {
				w.t.Fatal(err)
			}
		}, false},
		"it refuses the password": {func(w *world) { w.engine("west").fails = engine.ErrPassword }, false},
		"its reads time out":      {func(w *world) { w.engine("west").fails = os.ErrDeadlineExceeded }, true},
		"it answers again":        {func(w *world) { w.engine("west").fails = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.passes(4)
			pod := w.pod("west")
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := w.c.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			w.engine("west").fails = context.DeadlineExceeded
			w.passes(1)
			if w.pod("west").Annotations[v1alpha1.AnnotationCacheStale] != "" {
				t.Fatal("it is marked at once")
			}
			w.l.links["west"].stale.silent = time.Now().Add(-hungPatience - time.Second)
			tc.change(w)
			w.passes(1)
			if why := w.pod("west").Annotations[v1alpha1.AnnotationCacheStale]; (why != "") != tc.marked {
				t.Errorf("marked %q", why)
			}
			if at := w.l.links["west"].stale.hungAt; tc.marked && time.Since(at) > time.Minute {
				t.Errorf("it is not remembered: %s", at)
			}
		})
	}
	k := &link{uid: "a", stale: stale{hungAt: time.Now(), silent: time.Now(), since: time.Now(), asked: []byte("x")}}
	k.become("b", engine.Target{}, func(engine.Target) Engine { return &cacheModel{} })
	if k.stale.hungAt.IsZero() || k.stale.asked == nil || !k.stale.silent.IsZero() || !k.stale.since.IsZero() {
		t.Errorf("of the pod before, the next one has %+v", k.stale)
	}
}
