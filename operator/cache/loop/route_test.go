// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

func (w *world) service() *corev1.Service {
	w.t.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: v1alpha1.CacheService(key.Name)}}
	k := key
	k.Name = s.Name
	if err := w.c.Get(w.t.Context(), k, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// Where the Service leads is what this loop wrote while the manager's cache may not show it yet, and what stands after that.
func TestWhereTheServiceLeads(t *testing.T) {
	for _, tc := range []struct {
		name, selects string
		wrote         func(version string) route
		want          string
	}{
		{"nothing was written", "west", func(string) route { return route{} }, "west"},
		{"by labels", cache.ByLabels, func(string) route { return route{} }, cache.ByLabels},
		{"written just now", "west", func(string) route { return route{"east", "999999", time.Now()} }, "east"},
		{"and it shows", "west", func(version string) route { return route{"east", version, time.Now()} }, "west"},
		{"written long ago", "west", func(string) route { return route{"east", "999999", time.Now().Add(-time.Minute)} }, "west"},
		{"not written at all", "west", func(string) route { return route{"east", "", time.Now()} }, "west"},
		{"to somebody else", "?", func(string) route { return route{} }, cache.NoRoute},
	} {
		w := newWorld(t, nil)
		s := w.service()
		if s.Spec.Selector = selector(key.Name, tc.selects); tc.selects == "?" {
			s.Spec.Selector = map[string]string{"app": "mine"}
		}
		if err := w.c.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		w.l.wrote = tc.wrote(w.service().ResourceVersion)
		if got := w.l.routed(t.Context(), w.group()); got != tc.want {
			t.Errorf("%s: it leads to %q, want %q", tc.name, got, tc.want)
		}
		if err := w.c.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := w.l.routed(t.Context(), w.group()); got != cache.ByLabels {
			t.Errorf("%s: without the Service it leads to %q", tc.name, got)
		}
	}
}

// A Service that names a site takes the traffic from all others in that moment; one that follows the labels takes it from nobody.
func TestTheServiceTakesTraffic(t *testing.T) {
	for site, from := range map[string]string{"west": "east", "east": "west", cache.ByLabels: ""} {
		w := newWorld(t, nil)
		k := w.looked()
		if err := w.l.route(t.Context(), k, site); err != nil {
			t.Fatal(err)
		}
		if at := w.l.wrote; at.site != site || at.version != w.service().ResourceVersion || time.Since(at.at) > time.Minute {
			t.Errorf("remembered %+v", at)
		}
		for name, link := range w.l.links {
			if link.offAt.IsZero() == (name == from) {
				t.Errorf("route to %q: the traffic of %s went at %s", site, name, link.offAt)
			}
		}
		w.refuse = func(string) error { return errAway }
		w.l.wrote = route{}
		if err := w.l.route(t.Context(), k, site); err == nil || w.l.wrote.version != "" {
			t.Errorf("what could not be written is remembered: %v, %+v", err, w.l.wrote)
		}
	}
}

// For how long a move waits for the Service: until a connection reaches the target; 0.2 s where nobody can be asked or answers, 1.2 s at most.
// One connection that fails after others have got through does not count as nobody.
func TestHowLongAMoveWaitsForTheService(t *testing.T) {
	for _, tc := range []struct {
		name        string
		change      func(*world)
		least, most time.Duration
		tries       int // at most so many if negative
	}{
		{"at once", func(w *world) { w.late = 0 }, 0, arriveBlind, 1},
		{"a little late", func(w *world) { w.late = 14 }, 13 * arriveEvery, arriveMost, 14},
		{"for ever", func(w *world) { w.late = 1 << 30 }, arriveMost, arriveMost + arriveBlind, -61},
		{"nobody answers", func(w *world) { w.silent = true }, arriveBlind, arriveMost, -3},
		{"one is lost on the way", func(w *world) {
			w.late = 14
			dial := w.loops.Dial
			w.loops.Dial = func(t engine.Target) Engine {
				if e := dial(t); w.tries < 11 || w.tries > 12 {
					return e
				}
				return &cacheModel{fails: errAway}
			}
		}, 13 * arriveEvery, arriveMost, 14},
		{"no address", func(w *world) { w.address("None") }, arriveBlind, arriveMost, 0},
		{"no Service", func(w *world) {
			if err := w.c.Delete(w.t.Context(), w.service()); err != nil {
				w.t.Fatal(err)
			}
		}, arriveBlind, arriveMost, 0},
		{"no link", func(w *world) { delete(w.l.links, "west") }, arriveBlind, arriveMost, 0},
		{"no connection", func(w *world) { w.l.links["west"].close() }, arriveBlind, arriveMost, 0},
		{"no name of the process", func(w *world) { w.l.links["west"].info.Run = "" }, arriveBlind, arriveMost, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			k := w.looked()
			if err := w.l.route(t.Context(), k, "west"); err != nil {
				t.Fatal(err)
			}
			tc.change(w)
			w.tries = 0
			began := time.Now()
			w.l.arrive(t.Context(), k.group, "west")
			took := time.Since(began)
			if took < tc.least || took > tc.most+soon {
				t.Errorf("it waited %s", took)
			}
			slow := took >= arriveMost // a machine that is short of time gets fewer tries
			if tc.tries < 0 && w.tries > -tc.tries || tc.tries >= 0 && w.tries != tc.tries && !slow {
				t.Errorf("it tried %d times within %s", w.tries, took)
			}
		})
	}
	w := newWorld(t, nil)
	k := w.looked()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w.l.arrive(ctx, k.group, "west"); w.tries != 0 {
		t.Error("an operator that ends waits")
	}
}
