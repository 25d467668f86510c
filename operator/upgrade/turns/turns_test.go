// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/upgrade"
)

var leaseKey = types.NamespacedName{Namespace: "mfg", Name: "mfg-upgrade"}

// land is a cluster with groups, its clock, and keepers of it.
type land struct {
	t   *testing.T
	c   client.Client
	now time.Time
}

func newLand(t *testing.T, groups int) *land {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := &land{t: t, now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.MysqlFailoverGroup{})
	for i := range groups {
		b = b.WithObjects(&v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("g%d", i)}})
	}
	l.c = b.Build()
	for i := range groups {
		l.status(fmt.Sprintf("g%d", i), true, "r2")
	}
	return l
}

// status is what the controller and the monitor say of a group.
func (l *land) status(name string, behind bool, revision string) {
	l.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	l.must(l.c.Get(l.t.Context(), types.NamespacedName{Namespace: "n", Name: name}, g))
	g.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: revision, Sites: []v1alpha1.UpgradeSite{{Name: "a", Behind: behind}, {Name: "b"}}}
	g.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse},
	}
	l.must(l.c.Status().Update(l.t.Context(), g))
}

func (l *land) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// keeper is one of a process that has just started.
func (l *land) keeper(c client.Client) *Keeper {
	return &Keeper{Revision: "r2", Wake: func(types.NamespacedName) {}, Options: Options{
		Client: c, Live: c, Lease: leaseKey, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return l.now },
		Policy: upgrade.Policy{Pause: 20 * time.Second, StopAfter: 10 * time.Minute},
	}}
}

// keeperOf is one that has looked.
func (l *land) keeperOf(t *testing.T) *Keeper {
	t.Helper()
	k := l.keeper(l.c)
	l.must(k.Look(t.Context()))
	return k
}

// having are the groups that may replace pods by what a keeper says.
func having(k *Keeper, groups int) (all []string) {
	for i := range groups {
		if name := fmt.Sprintf("g%d", i); k.Has(types.NamespacedName{Namespace: "n", Name: name}) {
			all = append(all, name)
		}
	}
	return all
}

func (l *land) lease() *coordinationv1.Lease {
	l.t.Helper()
	lease := &coordinationv1.Lease{}
	l.must(l.c.Get(l.t.Context(), leaseKey, lease))
	return lease
}

// Ten groups, and a new process at every step: it goes on where the one before was, and each group has its turn once, alone.
func TestARestartedOperatorGoesOn(t *testing.T) {
	l := newLand(t, 10)
	var order []string
	steps := 0
	for range 200 {
		l.now = l.now.Add(5 * time.Second)
		k := l.keeper(l.c)
		l.must(k.Look(t.Context()))
		now := having(k, 10)
		if len(now) > 1 {
			t.Fatalf("%v at a time", now)
		}
		if len(now) == 0 {
			continue
		}
		if len(order) == 0 || order[len(order)-1] != now[0] {
			order, steps = append(order, now[0]), 0
		}
		if steps++; steps == 3 {
			l.status(now[0], false, "r2")
		}
	}
	if got := fmt.Sprint(order); got != "[g0 g1 g2 g3 g4 g5 g6 g7 g8 g9]" {
		t.Errorf("turns %s", got)
	}
}

// stale answers reads of the Lease with what it was when the process stood still.
type stale struct {
	client.Client
	lease *coordinationv1.Lease
}

func (s stale) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if into, is := obj.(*coordinationv1.Lease); is {
		s.lease.DeepCopyInto(into)
		return nil
	}
	return s.Client.Get(ctx, key, obj, opts...)
}

// A process that stood still after it read that nobody has the turn does not give it to a second group.
func TestTwoOperatorsGiveOneTurn(t *testing.T) {
	l := newLand(t, 2)
	late := l.keeper(nil)
	l.must(l.c.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseKey.Namespace, Name: leaseKey.Name}}))
	old := stale{l.c, l.lease()}
	first := l.keeper(l.c)
	l.must(first.Look(t.Context()))
	// What the late one sees makes another group the first.
	l.status("g0", false, "r2")
	late.Client, late.Live = old, old
	if err := late.Look(t.Context()); err == nil {
		t.Error("it wrote over what it did not read")
	}
	if now := having(late, 2); len(now) > 0 {
		t.Errorf("%v has the turn, beside %v", now, having(first, 2))
	}
}

// What an older version said of a group that has the turn does not end it, nor does what the cache has kept from before.
func TestATurnIsNotEndedByOldNews(t *testing.T) {
	l := newLand(t, 2)
	k := l.keeper(l.c)
	l.must(k.Look(t.Context()))
	l.status("g0", false, "r1")
	for range 20 {
		l.now = l.now.Add(5 * time.Second)
		l.must(k.Look(t.Context()))
	}
	if now := fmt.Sprint(having(k, 2)); now != "[g0]" {
		t.Errorf("%s has the turn", now)
	}
}

// A person pauses and resumes by the Lease; what has begun goes on.
func TestPausedOnTheLease(t *testing.T) {
	l := newLand(t, 2)
	k := l.keeper(l.c)
	l.must(k.Look(t.Context()))
	set := func(value string) {
		lease := l.lease()
		lease.Annotations[v1alpha1.AnnotationUpgradePaused] = value
		l.must(l.c.Update(t.Context(), lease))
	}
	set("2026-11-25T12:00:00Z")
	look := func() string {
		for range 10 {
			l.now = l.now.Add(5 * time.Second)
			l.must(k.Look(t.Context()))
		}
		return fmt.Sprint(having(k, 2))
	}
	if now := look(); now != "[g0]" {
		t.Errorf("%s has the turn while it goes on", now)
	}
	l.status("g0", false, "r2")
	if now := look(); now != "[]" {
		t.Errorf("%s has the turn while paused", now)
	}
	set("")
	if now := look(); now != "[g1]" {
		t.Errorf("%s has the turn after the pause", now)
	}
}

// A group that is deleted in its turn, and that a finalizer keeps, holds up no other.
func TestADeletedGroupHoldsUpNoOther(t *testing.T) {
	l := newLand(t, 2)
	g := &v1alpha1.MysqlFailoverGroup{}
	l.must(l.c.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "g0"}, g))
	g.Finalizers = []string{"example.com/kept"}
	l.must(l.c.Update(t.Context(), g))
	l.must(l.keeper(l.c).Look(t.Context()))
	if now := having(l.keeperOf(t), 2); !slices.Equal(now, []string{"g0"}) {
		t.Fatalf("%v has the turn", now)
	}
	l.must(l.c.Delete(t.Context(), g))
	for range 10 {
		l.now = l.now.Add(5 * time.Second)
		l.must(l.keeper(l.c).Look(t.Context()))
	}
	if now := having(l.keeperOf(t), 2); !slices.Equal(now, []string{"g1"}) {
		t.Errorf("%v has the turn, and g0 is being deleted", now)
	}
}

// A group that stays unhealthy stops the others, durably, until the annotation is taken off.
func TestStoppedOnTheLease(t *testing.T) {
	l := newLand(t, 2)
	l.must(l.keeper(l.c).Look(t.Context()))
	l.now = l.now.Add(11 * time.Minute)
	l.must(l.keeper(l.c).Look(t.Context()))
	if l.lease().Annotations[v1alpha1.AnnotationUpgradeStopped] == "" {
		t.Fatal("not stopped")
	}
	l.status("g0", false, "r2")
	look := func() string {
		k := l.keeper(l.c)
		for range 10 {
			l.now = l.now.Add(5 * time.Second)
			l.must(k.Look(t.Context()))
		}
		return fmt.Sprint(having(k, 2))
	}
	if now := look(); now != "[]" {
		t.Errorf("%s has the turn", now)
	}
	lease := l.lease()
	delete(lease.Annotations, v1alpha1.AnnotationUpgradeStopped)
	l.must(l.c.Update(t.Context(), lease))
	if now := look(); now != "[g1]" {
		t.Errorf("%s has the turn after a person resumed", now)
	}
}
