// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

// counted is an engine of which it is known how often it was closed. It has no certificate.
type counted struct {
	Engine
	closed int
}

func (c *counted) Close() { c.closed++ }

// A connection is kept as long as it leads to the same process in the same way; else it is ended, and another one made.
func TestWhenALinkIsMadeAnew(t *testing.T) {
	roots := func(name string) *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(&x509.Certificate{Raw: []byte(name), RawSubject: []byte(name)})
		return p
	}
	of := func(name, authority string) *tls.Config {
		return &tls.Config{ServerName: name, RootCAs: roots(authority), MinVersion: tls.VersionTLS12}
	}
	before := func() engine.Target {
		return engine.Target{Addr: "10.0.0.1:6379", Engine: v1alpha1.CacheValkey, Passwords: []string{"a"}, TLS: of("east", "x"), Certificate: []byte("c")}
	}
	for _, tc := range []struct {
		name   string
		uid    string
		change func(*engine.Target)
		anew   bool
	}{
		{"nothing", "u", func(*engine.Target) {}, false},
		{"the pod", "v", func(*engine.Target) {}, true},
		{"the address", "u", func(t *engine.Target) { t.Addr = "10.0.0.2:6379" }, true},
		{"the engine", "u", func(t *engine.Target) { t.Engine = v1alpha1.CacheDragonfly }, true},
		{"the passwords", "u", func(t *engine.Target) { t.Passwords = []string{"b"} }, true},
		{"the name in the certificate", "u", func(t *engine.Target) { t.TLS = of("west", "x") }, true},
		{"the authority", "u", func(t *engine.Target) { t.TLS = of("east", "y") }, true},
		{"no TLS", "u", func(t *engine.Target) { t.TLS = nil }, true},
		{"the certificate", "u", func(t *engine.Target) { t.Certificate = []byte("d") }, true},
	} {
		old, next := &counted{}, &counted{}
		k := &link{uid: "u", target: before(), engine: old, cutAt: time.Now()}
		target := before()
		tc.change(&target)
		k.become(tc.uid, target, func(engine.Target) Engine { return next })
		if (k.engine == next) != tc.anew || (old.closed == 1) != tc.anew || k.target.Addr != target.Addr || k.cutAt.IsZero() != (tc.uid != "u") {
			t.Errorf("%s has changed: made anew %t, closed %d times, %+v", tc.name, k.engine == next, old.closed, k)
		}
	}
	k := &link{uid: "u", target: engine.Target{Addr: "a"}, engine: &counted{}}
	k.become("u", engine.Target{Addr: "a"}, func(engine.Target) Engine { t.Error("without TLS it is made anew with every look"); return nil })
	k.become("u", engine.Target{Addr: "a", TLS: of("east", "x")}, func(engine.Target) Engine { return nil })
	if k.become("u", k.target, func(engine.Target) Engine { return &counted{} }); k.engine == nil {
		t.Error("one that is closed is not made anew")
	}
	last := k.engine.(*counted)
	k.close()
	if k.close(); last.closed != 1 || k.engine != nil {
		t.Errorf("closed %d times", last.closed)
	}
}

// For how long an engine has shown its old certificate, and has answered nothing, counts from the first look that saw it.
func TestSinceWhenALinkIsStale(t *testing.T) {
	began := time.Now()
	k := &link{engine: &cacheModel{stale: true, stubborn: true}}
	for _, later := range []time.Duration{0, time.Minute, 2 * time.Minute} {
		if got := k.renew(t.Context(), began.Add(later)); got != later {
			t.Errorf("after %s it is stale for %s", later, got)
		}
		if k.answered(context.DeadlineExceeded, began.Add(later)); !k.stale.silent.Equal(began) {
			t.Errorf("silent since %s", k.stale.silent)
		}
	}
	if k.answered(errors.New("it refuses"), began); !k.stale.silent.IsZero() {
		t.Error("an answer is none")
	}
	k.engine = &counted{}
	if got := k.renew(t.Context(), began); got != 0 || !k.stale.since.IsZero() {
		t.Errorf("one that has no certificate is stale for %s", got)
	}
	pod := cachePod("east", "10.0.0.1")
	pod.Labels[v1alpha1.LabelCacheRole], pod.ResourceVersion = string(v1alpha1.CacheReplica), "1"
	k = &link{version: "2", writtenAt: time.Now()}
	if role, _ := k.labels(pod); role != v1alpha1.CacheReplica {
		t.Errorf("nothing was written, and the role is %q", role)
	}
}

// Which pods are marked to be replaced, each reason asked without the others.
func TestWhichPodsAreMarked(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	for _, tc := range []struct {
		name   string
		change func(p *cache.Pod, pod *corev1.Pod, k *link)
		want   string
	}{
		{"an old certificate", func(_ *cache.Pod, _ *corev1.Pod, k *link) { k.stale.since = long }, staleCertificate},
		{"an old certificate, as of when it answered", func(p *cache.Pod, _ *corev1.Pod, k *link) { k.stale.since, p.Reachable = long, false }, ""},
		{"an old certificate, marked before", func(_ *cache.Pod, _ *corev1.Pod, k *link) { k.stale.since, k.stale.asked = long, []byte("c") }, ""},
		{"nothing", func(*cache.Pod, *corev1.Pod, *link) {}, ""},
		{"it hangs", func(p *cache.Pod, _ *corev1.Pod, k *link) { p.Reachable, k.stale.silent = false, long }, staleHung},
		{"it is silent for the first time", func(p *cache.Pod, _ *corev1.Pod, _ *link) { p.Reachable = false }, ""},
		{"it answers again", func(_ *cache.Pod, _ *corev1.Pod, k *link) { k.stale.silent = long }, ""},
		{"it cannot be asked whether it listens", func(p *cache.Pod, _ *corev1.Pod, k *link) {
			p.Reachable, k.stale.silent, k.engine = false, long, &counted{}
		}, ""},
		{"it is not ready", func(p *cache.Pod, pod *corev1.Pod, k *link) {
			p.Reachable, k.stale.silent, pod.Status.Conditions[0].Status = false, long, corev1.ConditionFalse
		}, ""},
		{"something else is true of it", func(p *cache.Pod, pod *corev1.Pod, k *link) {
			p.Reachable, k.stale.silent, pod.Status.Conditions[0].Type = false, long, corev1.PodScheduled
		}, ""},
		{"it is marked", func(p *cache.Pod, pod *corev1.Pod, k *link) {
			p.Reachable, k.stale.silent = false, long
			pod.Annotations = map[string]string{v1alpha1.AnnotationCacheStale: "before"}
		}, "before"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			pod := w.pod("west")
			pod.Status.Conditions = []corev1.PodCondition{ready}
			p, k := cache.Pod{Site: "west", Exists: true, Reachable: true}, &link{engine: &cacheModel{}, target: engine.Target{Certificate: []byte("c")}}
			tc.change(&p, pod, k)
			w.update(pod)
			w.order = nil
			w.l.links = map[string]*link{"west": k}
			see := look{group: w.group(), began: time.Now(), pods: map[string]*corev1.Pod{"west": pod, "south": cachePod("south", "")},
				snapshot: cache.Snapshot{Pods: []cache.Pod{{Site: "east", Reachable: true}, {Site: "south"}, p}}}
			w.l.markStale(t.Context(), see)
			if got := w.pod("west").Annotations[v1alpha1.AnnotationCacheStale]; got != tc.want || tc.want == "before" && len(w.order) != 0 {
				t.Errorf("marked %q, want %q (%v)", got, tc.want, w.order)
			}
			if tc.want == staleCertificate != (string(k.stale.asked) == "c") && tc.name != "an old certificate, marked before" {
				t.Errorf("asked for %q", k.stale.asked)
			}
		})
	}
	w := newWorld(t, nil)
	w.refuse = func(string) error { return errAway }
	k := &link{engine: &cacheModel{}, target: engine.Target{Certificate: []byte("c")}, stale: stale{since: long}}
	w.l.links = map[string]*link{"west": k}
	w.l.markStale(t.Context(), look{began: time.Now(), pods: map[string]*corev1.Pod{"west": w.pod("west")}, snapshot: cache.Snapshot{Pods: []cache.Pod{{Site: "west", Reachable: true}}}})
	if k.stale.asked != nil {
		t.Error("a mark that could not be written counts")
	}
}

// Two durable parts are the same if they name the same master and the same move; a group with another release's claim is left alone.
func TestWhatIsOvertaken(t *testing.T) {
	now := metav1.NewMicroTime(time.Now())
	move := func(from, to string, at metav1.MicroTime) cache.Durable {
		return cache.Durable{ActiveSite: "east", Transition: &cache.Transition{From: from, To: to, StartedAt: at}}
	}
	still, moves := cache.Durable{ActiveSite: "east"}, move("east", "west", now)
	for name, tc := range map[string]struct {
		a, b cache.Durable
		same bool
	}{
		"nothing":        {still, still, true},
		"a move":         {moves, move("east", "west", now), true},
		"below a second": {moves, move("east", "west", metav1.NewMicroTime(now.Truncate(time.Microsecond))), true},
		"another master": {still, cache.Durable{ActiveSite: "west"}, false},
		"begun":          {still, moves, false},
		"ended":          {moves, still, false},
		"elsewhere":      {moves, move("east", "south", now), false},
		"from elsewhere": {moves, move("south", "west", now), false},
		"a later one":    {moves, move("east", "west", metav1.NewMicroTime(now.Add(time.Millisecond))), false},
	} {
		if same(tc.a, tc.b) != tc.same {
			t.Errorf("%s: the same is %t", name, !tc.same)
		}
	}
	for name, tc := range map[string]struct {
		lease   string
		claim   *v1alpha1.GroupClaim
		foreign bool
	}{
		"no claim":              {"mfg/ours", nil, false},
		"ours":                  {"mfg/ours", &v1alpha1.GroupClaim{Lease: "mfg/ours"}, false},
		"another's":             {"mfg/ours", &v1alpha1.GroupClaim{Lease: "mfg/theirs"}, true},
		"nobody's":              {"mfg/ours", &v1alpha1.GroupClaim{}, false},
		"we do not have a name": {"", &v1alpha1.GroupClaim{Lease: "mfg/theirs"}, false},
	} {
		l := &loop{m: &Loops{Options: Options{Lease: tc.lease}}}
		if got := l.isForeign(v1alpha1.MysqlFailoverGroupStatus{Claim: tc.claim}); got != tc.foreign {
			t.Errorf("%s: foreign is %t", name, got)
		}
	}
}
