// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

// looked is a look at the world that leads to some actions.
func (w *world) looked(actions ...cache.Action) look {
	w.t.Helper()
	k := look{group: w.group(), began: time.Now(), decision: cache.Decision{Actions: actions}}
	k.snapshot, k.pods = w.l.gather(w.t.Context(), k.group)
	w.order = nil
	return k
}

// What fails and concerns a replica alone holds up only what is left to do with that one, and everything that failed is told.
func TestWhatFailsAndWhatGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	k := w.looked(cache.Follow{Site: "west", Master: "east"}, cache.Label{Site: "west", Role: v1alpha1.CacheReplica}, cache.CutClients{Site: "west"}, cache.CutClients{Site: "east"}, cache.Promote{Site: "east"}, cache.Label{Site: "east", Role: v1alpha1.CacheMaster})
	w.engine("west").fails = errAway
	err := w.l.perform(t.Context(), k)
	if err == nil || err.Error() != "west follows east: "+errAway.Error()+"\ncut clients of west: "+errAway.Error() || !slices.Equal(w.engine("east").said, []string{"cut", "promote"}) || !slices.Equal(w.order, []string{"label orders-cache-east-0"}) {
		t.Errorf("%v; east was told %q, written %q", err, w.engine("east").said, w.order)
	}
	if k := w.l.links["west"]; !k.cutAt.IsZero() {
		t.Error("clients that were not cut count as cut")
	}
	if since := time.Since(w.l.links["east"].cutAt); since > time.Minute {
		t.Errorf("clients were cut %s ago", since)
	}
	w.engine("east").fails = errors.New("broken")
	err = w.l.perform(t.Context(), k)
	if err == nil || !strings.Contains(err.Error(), "west follows east: ") || !strings.Contains(err.Error(), "cut clients of east: ") || !strings.Contains(err.Error(), "promote east: broken") || len(w.order) != 1 {
		t.Errorf("%v, written %q", err, w.order)
	}
	k.began = time.Now().Add(-lookValidity - time.Second)
	w.engine("east").fails = nil
	if err := w.l.perform(t.Context(), k); err == nil || !strings.Contains(err.Error(), "west follows east: the look it rests on is 6s old") || len(w.engine("east").said) != 2 {
		t.Errorf("%v; east was told %q", err, w.engine("east").said)
	}
}

// When the traffic went: with the label, unless the Service names another site; then it went with that.
func TestWhenTheTrafficWent(t *testing.T) {
	for route, counts := range map[string]bool{cache.ByLabels: true, "east": true, "west": false} {
		w := newWorld(t, nil)
		k := w.looked(cache.TrafficOff{Site: "east"}, cache.TrafficOff{Site: "nowhere"})
		w.l.wrote.site = route
		if err := w.l.perform(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if got := !w.l.links["east"].offAt.IsZero(); got != counts {
			t.Errorf("route %q: it counts %t", route, got)
		}
	}
	w := newWorld(t, nil)
	k := w.looked(cache.TakeOver{From: "east", To: "west", Budget: time.Second})
	if err := w.l.perform(t.Context(), k); err != nil || time.Since(w.l.links["east"].offAt) > time.Minute || !w.l.links["west"].offAt.IsZero() {
		t.Errorf("%v, %+v", err, w.l.links["east"])
	}
	east, west := *w.l.links["east"], *w.l.links["west"]
	for _, links := range []map[string]*link{{"east": &east}, {"west": &west}, {"east": {}, "west": &west}, {"east": &east, "west": {}}} {
		w.l.links = links
		if err := w.l.act(t.Context(), k, k.decision.Actions[0]); !errors.Is(err, errNoPod) {
			t.Errorf("%v: %v", links, err)
		}
	}
	w.l.links = map[string]*link{"east": {}}
	for _, site := range []string{"east", "west"} {
		if err := w.l.at(t.Context(), site, Engine.Promote); !errors.Is(err, errNoPod) {
			t.Errorf("%s: %v", site, err)
		}
	}
}

// What is to be done at a site that has left, with its pod and all that is known of it, fails and ends nothing.
func TestASiteThatHasLeft(t *testing.T) {
	w := newWorld(t, nil)
	k := w.looked()
	delete(k.pods, "west")
	delete(w.l.links, "west")
	for _, a := range []cache.Action{cache.TrafficOn{Site: "west"}, cache.CutClients{Site: "west"}, cache.Promote{Site: "west"}, cache.Label{Site: "west", Role: v1alpha1.CacheReplica}} {
		if err := w.l.act(t.Context(), k, a); !errors.Is(err, errNoPod) {
			t.Errorf("%s: %v", a, err)
		}
	}
	if err := w.l.act(t.Context(), k, cache.TrafficOff{Site: "west"}); err != nil {
		t.Errorf("without a pod there is traffic: %v", err)
	}
}

// Labels are those of the very pod that was looked at. One that is gone has no traffic; nothing else is taken for done.
func TestLabelsOfAPod(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "x")
	off, on := map[string]any{v1alpha1.LabelCacheTraffic: nil}, map[string]any{v1alpha1.LabelCacheRole: "master", v1alpha1.LabelCacheTraffic: v1alpha1.CacheTrafficOn}
	for _, tc := range []struct {
		name   string
		labels map[string]any
		api    error
		fails  bool
	}{
		{"given", on, nil, false}, {"taken", off, nil, false},
		{"given to one that is gone", on, gone, true}, {"taken from one that is gone", off, gone, false},
		{"given while the API server is away", on, errAway, true}, {"taken while the API server is away", off, errAway, true},
	} {
		w := newWorld(t, nil)
		k := w.looked()
		w.refuse = func(string) error { return tc.api }
		if err := w.l.patch(t.Context(), k, "east", tc.labels); (err != nil) != tc.fails {
			t.Errorf("%s: %v", tc.name, err)
		}
		at, pod := w.l.links["east"], w.pod("east")
		if written := at.written != nil; written != (tc.api == nil) || written && (at.version != pod.ResourceVersion || time.Since(at.writtenAt) > time.Minute || at.written[v1alpha1.LabelSite] != "east") {
			t.Errorf("%s: remembered %+v", tc.name, at)
		}
	}
	w := newWorld(t, nil)
	k := w.looked()
	delete(k.pods, "east")
	if err := w.l.patch(t.Context(), k, "east", on); !errors.Is(err, errNoPod) {
		t.Errorf("without a pod: %v", err)
	}
}

// Only what there is to say is written, and only over what was read: a null would be taken for a value, and a write in between be lost.
func TestWhatIsWrittenToStatus(t *testing.T) {
	w := newWorld(t, nil)
	w.passes(2)
	var sent []string
	w.loops.Client = interceptor.NewClient(w.c, interceptor.Funcs{
		SubResourceApply: func(_ context.Context, _ client.Client, _ string, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			text, err := json.Marshal(obj)
			sent = append(sent, string(text))
			return err
		},
	})
	live := w.group()
	for _, status := range []v1alpha1.MysqlFailoverGroupStatus{{}, {Cache: &v1alpha1.CacheStatus{ActiveSite: "east"}}} {
		if err := w.l.apply(t.Context(), live, status); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range sent {
		if strings.Contains(text, "null") || strings.Contains(text, `"cache"`) != (i == 1) || !strings.Contains(text, `"resourceVersion":"`+live.ResourceVersion+`"`) {
			t.Error(text)
		}
	}
	if len(sent) != 2 {
		t.Errorf("%d were sent", len(sent))
	}
}

// A conflict is tried again, and no error else; a group that was made again under the same name, or another's by now, is not written to.
func TestHowADecisionIsPersisted(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "mysqlfailovergroups"}, key.Name, errors.New("changed"))
	for _, tc := range []struct {
		name   string
		change func(*world, *look)
		writes int
		want   error
	}{
		{"well", func(*world, *look) {}, 1, nil},
		{"a conflict", func(w *world, _ *look) {
			w.refuse = func(string) error {
				if len(w.order) < persistTries {
					return conflict
				}
				return nil
			}
		}, persistTries, nil},
		{"conflicts without end", func(w *world, _ *look) { w.refuse = func(string) error { return conflict } }, persistTries, conflict},
		{"away", func(w *world, _ *look) { w.refuse = func(string) error { return errAway } }, 1, errAway},
		{"another group", func(_ *world, k *look) { k.group.UID = "another" }, 0, errOvertaken},
		{"another's group", func(w *world, _ *look) {
			g := w.group()
			g.Status.Claim = &v1alpha1.GroupClaim{Lease: "mfg/theirs"}
			if err := w.c.Status().Update(w.t.Context(), g); err != nil {
				w.t.Fatal(err)
			}
		}, 0, errOvertaken},
		{"gone", func(w *world, _ *look) {
			if err := w.c.Delete(w.t.Context(), w.group()); err != nil {
				w.t.Fatal(err)
			}
		}, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			k := w.looked()
			w.l.loaded = true
			k.decision.Status.ActiveSite = "east"
			tc.change(w, &k)
			err := w.l.persist(t.Context(), k)
			well := tc.want == nil && tc.name != "gone"
			if (err == nil) != well || tc.want != nil && !errors.Is(err, tc.want) || len(w.order) != tc.writes {
				t.Errorf("%v, written %v", err, w.order)
			}
			if w.l.loaded != well || (w.l.durable.ActiveSite == "east") != well {
				t.Errorf("it stands %t: %+v", w.l.loaded, w.l.durable)
			}
		})
	}
	w := newWorld(t, nil)
	if err := w.c.Delete(t.Context(), w.group()); err != nil {
		t.Fatal(err)
	}
	if err := w.l.load(t.Context()); err == nil || w.l.loaded {
		t.Errorf("what cannot be read is loaded: %v", err)
	}
}

// Of two pods of a site the one counts that is not going; one without a site is nobody's.
func TestOfTwoPodsTheOneThatStays(t *testing.T) {
	for _, first := range []string{"a", "z"} {
		w := newWorld(t, nil)
		goes := cachePod("east", "10.0.0.1")
		goes.Name, goes.Finalizers = first, []string{"test/keeps-it"}
		none := cachePod("", "10.0.0.9")
		for _, pod := range []*corev1.Pod{goes, none} {
			if err := w.c.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.c.Delete(t.Context(), goes); err != nil {
			t.Fatal(err)
		}
		pods := w.l.podsOf(t.Context(), w.group())
		if len(pods) != 2 || pods["east"].Name != "orders-cache-east-0" {
			t.Errorf("with %q: %v", first, pods)
		}
		if err := w.c.Delete(t.Context(), w.pod("east")); err != nil {
			t.Fatal(err)
		}
		if got := w.l.podsOf(t.Context(), w.group())["east"]; got == nil || got.Name != first {
			t.Errorf("one that goes is none: %v", got)
		}
		other := cachePod("east", "10.0.0.1")
		other.Name, other.Finalizers = "m", goes.Finalizers
		if err := w.c.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if err := w.c.Delete(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if got := w.l.podsOf(t.Context(), w.group())["east"]; got == nil || got.Name != min(first, "m") {
			t.Errorf("of two that go, it is %v", got)
		}
	}
}
