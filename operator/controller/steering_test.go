// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/follow"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// intercept puts functions between the controller and its API server.
func (w *world) intercept(f interceptor.Funcs) {
	w.t.Helper()
	inner, ok := w.c.(client.WithWatch)
	if !ok {
		w.t.Fatalf("%T cannot be intercepted", w.c)
	}
	c := interceptor.NewClient(inner, f)
	w.r.Client, w.r.Live, w.r.base.Client, w.r.base.Live = c, c, c, c
	w.r.apply = apply.NewApplier(c, c)
	w.r.apply.Restored = w.r.tellRestored
	w.r.follow = follow.New(w.r.base, w.r.apply, w.r.Limits)
}

// open lets the poll loop see the active site open under an epoch.
func (w *world) open(site string, epoch int64) {
	w.t.Helper()
	w.monitorStatus(site, epoch)
	w.facts.Open(site)
	w.facts.Mu.Lock()
	defer w.facts.Mu.Unlock()
	w.facts.G.Epoch = epoch
	if w.facts.G.Sites == nil {
		w.facts.G.Sites = map[string]scope.SiteFacts{}
	}
}

// steeredWorld is a running group with both followers, each site on its own node and with an address.
func steeredWorld(t *testing.T, edits ...scopetest.Option) *world {
	t.Helper()
	w := runningWorld(t)
	for _, name := range []string{"node-a", "node-b", "node-c", "node-d"} {
		w.must(w.c.Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.DNS = &v1alpha1.DNSSpec{Name: "db.example.org", TTLSeconds: 20}
		g.Spec.Taints = &v1alpha1.TaintsSpec{Enabled: true}
		for i := range g.Spec.Sites {
			g.Spec.Sites[i].ExternalAddress = g.Spec.Sites[i].Name + ".example.org"
		}
		for _, edit := range edits {
			edit(g)
		}
	})
	w.reconcile()
	w.settle("a", "b", "c")
	return w
}

// steer reconciles until both followers had their say: the first time only notes that they will.
func (w *world) steer() time.Duration {
	w.t.Helper()
	w.reconcile()
	return w.reconcile()
}

// Without either feature nothing is asked of the API server, and no condition is there.
func TestNothingToSteer(t *testing.T) {
	w := runningWorld(t)
	w.intercept(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if obj.GetObjectKind().GroupVersionKind().Kind == "DNSEndpoint" {
				t.Error("a DNSEndpoint is read")
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.NodeList); ok {
				t.Error("nodes are listed")
			}
			return c.List(ctx, list, opts...)
		},
	})
	w.open("a", 1)
	w.steer()
	for _, kind := range []string{v1alpha1.ConditionDNSReady, v1alpha1.ConditionTaintsReady} {
		if c := w.condition(kind); c.Type != "" {
			t.Errorf("condition %+v", c)
		}
	}
}

// A write that was done must be found again after a crash, so the condition is there before it.
func TestConditionComesBeforeTheFirstEffect(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	for _, kind := range []string{v1alpha1.ConditionDNSReady, v1alpha1.ConditionTaintsReady} {
		if c := w.condition(kind); c.Status != metav1.ConditionUnknown {
			t.Errorf("condition %+v", c)
		}
	}
	if w.endpoint() != nil || len(w.taints("node-b")) > 0 {
		t.Error("effects before the condition was written")
	}
}

// Nothing follows a site that may still be fenced, and what is not known for this epoch is not believed.
func TestOnlyAnOpenSiteIsFollowed(t *testing.T) {
	tests := map[string]func(w *world){
		"not open": func(w *world) {
			w.open("b", 2)
			w.facts.Mu.Lock()
			defer w.facts.Mu.Unlock()
			w.facts.G.Open = false
		},
		"open in an older epoch": func(w *world) {
			w.open("b", 2)
			w.monitorStatus("b", 3)
		},
		"facts about another site": func(w *world) { w.open("a", 2); w.monitorStatus("b", 2) },
		"the role is moving": func(w *world) {
			w.open("b", 2)
			g := w.group()
			g.Status.Transition = &v1alpha1.Transition{From: "a", To: "b"}
			w.must(w.c.Status().Update(w.ctx, g))
		},
		"facts are missing": func(w *world) { w.open("b", 2); w.r.Facts = &scopetest.Facts{} },
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := steeredWorld(t)
			w.open("a", 1)
			w.steer()
			tc(w)
			g := w.group()
			g.Status.ActiveSiteSince = &metav1.Time{Time: time.Now()}
			w.must(w.c.Status().Update(w.ctx, g))
			if again := w.steer(); again > time.Second {
				t.Errorf("looked at again after %s", again)
			}
			if got := targetsOf(w.endpoint()); !cmp.Equal(got, []string{"a.example.org"}) {
				t.Errorf("the name points to %v", got)
			}
			if len(w.taints("node-a")) > 0 || len(w.taints("node-b")) != 1 {
				t.Errorf("taints a %v, b %v", w.taints("node-a"), w.taints("node-b"))
			}
			if c := w.condition(v1alpha1.ConditionDNSReady); c.Status != metav1.ConditionTrue {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

// A site that does not open for long is not looked at every second.
func TestNoHurryForASiteThatStaysClosed(t *testing.T) {
	w := steeredWorld(t)
	w.monitorStatus("b", 2)
	g := w.group()
	g.Status.ActiveSiteSince = &metav1.Time{Time: time.Now().Add(-2 * time.Minute)}
	w.must(w.c.Status().Update(w.ctx, g))
	if again := w.steer(); again <= time.Second {
		t.Errorf("looked at again after %s", again)
	}
}

// A restart of the active site in place is no reason to look at the group every second: nothing has to be switched.
func TestNoHurryWhenNothingIsToSwitch(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	w.steer()
	w.facts.Open("")
	if again := w.steer(); again <= time.Second {
		t.Errorf("looked at again after %s", again)
	}
}

// None of the followers can delay a promotion: the poll loop does not know them (layout_test.go keeps the two shells
// apart), and when their APIs hang, the watch loop itself goes on within a bound, with all other phases.
func TestHungFollowersHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := steeredWorld(t)
		w.open("a", 1)
		w.intercept(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if k, ok := o.(interface{ GetKind() string }); ok && k.GetKind() == "DNSEndpoint" {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.Apply(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if _, ok := o.(*corev1.Node); ok {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.Patch(ctx, o, p, opts...)
			},
		})
		before := w.deployments()
		w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "77"} })
		began := time.Now()
		w.reconcile()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the reconcile took %s", took)
		}
		if cmp.Equal(before, w.deployments()) {
			t.Error("the update did not begin")
		}
		for _, kind := range []string{v1alpha1.ConditionDNSReady, v1alpha1.ConditionTaintsReady} {
			if c := w.condition(kind); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonWriteFailed {
				t.Errorf("condition %+v", c)
			}
		}
		began = time.Now()
		w.reconcile()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it was tried again at once, for %s", took)
		}
	})
}

// What fails is tried again and told once; then it is well again.
func TestFailedFollowerRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := steeredWorld(t)
		w.open("a", 1)
		broken := true
		w.intercept(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if k, ok := o.(interface{ GetKind() string }); ok && k.GetKind() == "DNSEndpoint" && broken {
					return errors.New("the webhook is away")
				}
				return c.Apply(ctx, o, opts...)
			},
		})
		for range 6 {
			again, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
			w.must(err)
			time.Sleep(again.RequeueAfter)
		}
		if got := w.said.Count(v1alpha1.ReasonDNSFailed); got != 1 {
			t.Errorf("%d events", got)
		}
		if c := w.condition(v1alpha1.ConditionTaintsReady); c.Status != metav1.ConditionTrue {
			t.Errorf("the other follower: %+v", c)
		}
		broken = false
		time.Sleep(2 * time.Minute)
		w.reconcile()
		if c := w.condition(v1alpha1.ConditionDNSReady); c.Status != metav1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
	})
}
