// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

const leaseA, leaseB = "mfg-a/mfg-operator", "mfg-b/mfg-operator"

// releases are two releases of the operator over one group, as two charts with overlapping watches.
type releases struct {
	*world
	a, b           *Reconciler
	loopsA, loopsB *fakeLoops
}

func twoReleases(t *testing.T) *releases {
	w := newWorld(t, scopetest.Group(), leaseObject("mfg-a"), leaseObject("mfg-b"))
	x := &releases{world: w, loopsA: &fakeLoops{}, loopsB: &fakeLoops{}}
	release := func(lease string, loops *fakeLoops) *Reconciler {
		o := w.r.Options
		o.Lease, o.Holder, o.Loops, o.Work = lease, "pod of "+lease, loops, work.New()
		return New(o)
	}
	x.a, x.b = release(leaseA, x.loopsA), release(leaseB, x.loopsB)
	return x
}

func leaseObject(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mfg-operator"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("pod"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Unix(1, 0))),
	}}
}

// renews is the leader of a release.
func (x *releases) renews(namespace string) {
	x.t.Helper()
	lease := &coordinationv1.Lease{}
	x.must(x.c.Get(x.ctx, client.ObjectKey{Namespace: namespace, Name: "mfg-operator"}, lease))
	lease.Spec.RenewTime = new(metav1.NewMicroTime(lease.Spec.RenewTime.Add(2 * time.Second)))
	x.must(x.c.Update(x.ctx, lease))
}

// passes lets a release's clock go on; what it read of Leases is old then.
func passes(r *Reconciler, d time.Duration) {
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	for name, seen := range r.leases.seen {
		seen.Since = seen.Since.Add(-d)
		r.leases.seen[name], r.leases.looked[name] = seen, r.leases.looked[name].Add(-max(d, lookAge))
	}
}

func (x *releases) reconciles(r *Reconciler) {
	x.t.Helper()
	x.r = r
	x.reconcile()
}

func (x *releases) claim() string {
	g := &v1alpha1.MysqlFailoverGroup{}
	x.must(x.c.Get(x.ctx, scopetest.Key, g))
	return leaseOfClaim(g)
}

// untouched is true if nothing at all was written.
func (x *releases) untouched(r *Reconciler) bool {
	x.t.Helper()
	before := x.writes
	x.reconciles(r)
	return x.writes == before
}

// TestI1OneReleaseActsOnAGroup: I1 rests on one process that signs for a group.
func TestI1OneReleaseActsOnAGroup(t *testing.T) {
	x := twoReleases(t)
	x.reconciles(x.a)
	if x.claim() != leaseA || x.loopsA.ensured == 0 {
		t.Fatalf("claimed under %q, loops %+v", x.claim(), x.loopsA)
	}
	var made appsv1.DeploymentList
	x.must(x.c.List(x.ctx, &made))
	if len(made.Items) == 0 {
		t.Error("the release that claimed it did nothing")
	}
	for range 3 {
		x.renews("mfg-a")
		passes(x.b, time.Minute)
		if !x.untouched(x.b) || x.loopsB.ensured > 0 || x.claim() != leaseA {
			t.Fatalf("the other release acts: loops %+v, claim %s", x.loopsB, x.claim())
		}
	}
	if events := x.said.Of(v1alpha1.ReasonGroupClaimedElsewhere); len(events) != 1 || !strings.Contains(events[0], leaseA) || x.loopsB.forgotten == 0 {
		t.Errorf("told %q, loops %+v", events, x.loopsB)
	}
	// In place: the same Lease, another pod. Nothing is written again.
	x.loopsA, x.a.Holder = &fakeLoops{}, "another pod"
	x.reconciles(x.a)
	if x.untouched(x.a); !x.untouched(x.a) {
		t.Error("an idle group is written to")
	}

	// Deleted, too, it is the other's.
	g := &v1alpha1.MysqlFailoverGroup{}
	x.must(x.c.Get(x.ctx, scopetest.Key, g))
	x.must(x.c.Delete(x.ctx, g))
	x.renews("mfg-a")
	if !x.untouched(x.b) {
		t.Error("the other release lets go of a group that is deleted")
	}
}

func TestI1ATakeOverNeedsALeaseThatIsNotRenewed(t *testing.T) {
	x := twoReleases(t)
	x.reconciles(x.a)
	x.reconciles(x.b)
	passes(x.b, 59*time.Second)
	if !x.untouched(x.b) {
		t.Error("taken over too soon")
	}
	passes(x.b, 2*time.Second)
	x.reconciles(x.b)
	if x.claim() != leaseB || x.loopsB.ensured == 0 || x.said.Count(v1alpha1.ReasonGroupTakenOver) != 1 {
		t.Errorf("not taken over: %s, loops %+v", x.claim(), x.loopsB)
	}
	// The first one comes back: it is not its group any more.
	x.renews("mfg-b")
	forgotten := x.loopsA.forgotten
	if !x.untouched(x.a) || x.loopsA.forgotten == forgotten {
		t.Error("both act")
	}
}

// TestI1TheHolderThatComesBackInTheMiddle has the release of the old claim renew its Lease while the new claim is written: it may
// have read the old one before.
func TestI1TheHolderThatComesBackInTheMiddle(t *testing.T) {
	x := twoReleases(t)
	x.reconciles(x.a)
	x.reconciles(x.b)
	passes(x.b, time.Hour)
	back := sync.OnceFunc(func() { x.renews("mfg-a") })
	x.b.Client = interceptor.NewClient(x.c.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			back()
			return c.SubResource(name).Patch(ctx, o, p, opts...)
		},
	})
	x.reconciles(x.b)
	if x.claim() != leaseA || x.loopsB.ensured > 0 {
		t.Errorf("both act: claim %s, loops %+v", x.claim(), x.loopsB)
	}
}

// TestI1TwoFirstClaims: of two that read a group without a claim one is refused.
func TestI1TwoFirstClaims(t *testing.T) {
	x := twoReleases(t)
	other := sync.OnceFunc(func() { x.reconciles(x.b); x.r = x.a })
	x.a.Client = interceptor.NewClient(x.c.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			other()
			return c.SubResource(name).Patch(ctx, o, p, opts...)
		},
	})
	x.reconciles(x.a)
	if x.claim() != leaseB || x.loopsA.ensured > 0 || x.loopsB.ensured == 0 {
		t.Errorf("claim %s, loops %+v and %+v", x.claim(), x.loopsA, x.loopsB)
	}
}

// TestI1NotToKnowIsNoRight: an API server that does not tell of the Lease, or refuses to, leaves the group to its holder.
func TestI1NotToKnowIsNoRight(t *testing.T) {
	x := twoReleases(t)
	x.reconciles(x.a)
	x.reconciles(x.b)
	passes(x.b, time.Hour)
	x.b.Live = interceptor.NewClient(x.c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*coordinationv1.Lease); is {
				return errors.New("forbidden")
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	g := &v1alpha1.MysqlFailoverGroup{}
	x.must(x.c.Get(x.ctx, scopetest.Key, g))
	if mine, _, err := x.b.claimed(x.ctx, g); mine || err == nil {
		t.Errorf("it operates the group: %v", err)
	}
	if x.claim() != leaseA {
		t.Error("it claimed the group")
	}
}

// TestI4AGroupIsHandedOverWhenNothingAnswersForIt: who comes next counts the leases of sites from its own start.
func TestI4AGroupIsHandedOverWhenNothingAnswersForIt(t *testing.T) {
	x := twoReleases(t)
	x.reconciles(x.a)
	g := &v1alpha1.MysqlFailoverGroup{}
	x.must(x.c.Get(x.ctx, scopetest.Key, g))
	g.Annotations = map[string]string{v1alpha1.AnnotationOperatedBy: leaseB}
	x.must(x.c.Update(x.ctx, g))

	x.r = x.a
	if again := x.reconcile(); again > scope.WhenWaiting {
		t.Errorf("it looks for the heir after %s", again)
	}
	if x.claim() != leaseA || x.said.Count(v1alpha1.ReasonHandOverWaits) != 1 {
		t.Error("given to a release of which no life was seen")
	}
	x.renews("mfg-b")
	passes(x.a, 2*time.Second)
	x.loopsA.ending = true
	if x.reconciles(x.a); x.claim() != leaseA || x.loopsA.forgotten == 0 {
		t.Errorf("handed over while its loop runs, or the loop is not ended: %+v", x.loopsA)
	}
	if x.reconciles(x.b); x.loopsB.ensured > 0 {
		t.Error("the heir began before it was handed over")
	}
	x.loopsA.ending = false
	x.reconciles(x.a)
	if x.claim() != leaseB {
		t.Fatal("not handed over")
	}
	ensured := x.loopsA.ensured
	x.reconciles(x.b)
	x.reconciles(x.a)
	if x.loopsB.ensured == 0 || x.loopsA.ensured > ensured {
		t.Errorf("loops %+v and %+v", x.loopsA, x.loopsB)
	}
}

// A user with edit rights on a group can change the annotation without end. The operator must not keep every value in memory.
func TestLeasesThatPeopleNameAreForgotten(t *testing.T) {
	x := twoReleases(t)
	x.reconciles(x.a)
	wants := func(lease string) {
		g := &v1alpha1.MysqlFailoverGroup{}
		x.must(x.c.Get(x.ctx, scopetest.Key, g))
		g.Annotations = map[string]string{v1alpha1.AnnotationOperatedBy: lease}
		x.must(x.c.Update(x.ctx, g))
		x.reconciles(x.a)
	}
	for i, text := range []string{strings.Repeat("x", 1<<17), "/", "a/", "/b", "a/b/c", "A/mfg-operator", "a/mfg-operator ", "kube-system/kube-scheduler"} {
		wants(text)
		if len(x.a.leases.seen) > 0 || x.claim() != leaseA {
			t.Errorf("%.20q is looked for, or the group is given away", text)
		}
		if x.said.Count(v1alpha1.ReasonHandOverWaits) != i+1 {
			t.Errorf("%.20q: nobody is told", text)
		}
	}
	for i := range 50 {
		wants(fmt.Sprintf("mfg-%d/mfg-operator", i))
	}
	if len(x.a.leases.seen) != 50 {
		t.Fatalf("%d Leases are known: this test shows nothing", len(x.a.leases.seen))
	}
	passes(x.a, looksKept)
	before := x.a.leases.seen["mfg-7/mfg-operator"]
	if now, err := x.a.leases.look(x.ctx, x.c, "mfg-7/mfg-operator", lookAge); err != nil || now.Since != before.Since {
		t.Errorf("a look begins again at the Lease that is looked at: %+v, before %+v: %v", now, before, err)
	}
	passes(x.a, looksKept)
	wants(leaseB)
	if len(x.a.leases.seen) != 1 || len(x.a.leases.looked) != 1 {
		t.Errorf("%d Leases stay in memory", len(x.a.leases.seen))
	}
}
