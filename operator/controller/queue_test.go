// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// TestNewGroupsWait: groups under way come before new ones, however many there are, and each is queued by one of the two watches.
func TestNewGroupsWait(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	all := handler.WithLowPriorityWhenUnchanged(&handler.EnqueueRequestForObject{})
	created := func(name string, begun, atStart bool) {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Namespace, g.Name = "shop", name
		if begun {
			g.Finalizers = []string{v1alpha1.Finalizer}
		}
		e := event.CreateEvent{Object: g, IsInInitialList: atStart}
		if relevantGroup().Create(e) {
			all.Create(context.Background(), e, queue)
		}
		queueLast().Create(context.Background(), e, queue)
	}
	created("new", false, false)
	created("new-at-start", false, true)
	created("made-at-start", true, true)
	created("made", true, false)
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "under-way"}})
	bare := &v1alpha1.MysqlFailoverGroup{}
	marked := bare.DeepCopy()
	marked.Finalizers = []string{v1alpha1.Finalizer}
	if !relevantGroup().Update(event.UpdateEvent{ObjectOld: marked, ObjectNew: bare}) {
		t.Error("a group that lost its finalizer is not looked at")
	}
	var order []string
	for range 5 {
		r, _, _ := queue.GetWithPriority()
		order = append(order, r.Name)
		queue.Done(r)
	}
	if want := []string{"made", "under-way", "made-at-start", "new", "new-at-start"}; !slices.Equal(order, want) {
		t.Errorf("looked at in the order %v, want %v", order, want)
	}
}

// TestSettledGroupsTakeTurns: a few are looked at every minute, and however many there are, so many a second and no more.
func TestSettledGroupsTakeTurns(t *testing.T) {
	for _, groups := range []int{0, 1, 300} {
		if got := whenNothing(groups); got != scope.WhenSettled {
			t.Errorf("%d groups: after %v", groups, got)
		}
	}
	for range 100 {
		if got := whenNothing(1000); got < 200*time.Second || got > 250*time.Second {
			t.Fatalf("1000 groups: after %v", got)
		}
	}
}
