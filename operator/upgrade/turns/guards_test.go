// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/pace"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// deaf is an API server that takes no changes of Leases.
type deaf struct{ client.Client }

func (d deaf) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if _, is := obj.(*coordinationv1.Lease); is {
		return errors.New("no")
	}
	return d.Client.Update(ctx, obj, opts...)
}

// A turn that could not be written is nobody's: the next process would not know of it, and give it to another.
func TestATurnIsWrittenBeforeItIsHad(t *testing.T) {
	l := newLand(t, 2)
	k := l.keeper(l.c)
	k.Client = deaf{l.c}
	if err := k.Look(t.Context()); err == nil {
		t.Error("nothing was written, and nobody says so")
	}
	if now := having(k, 2); len(now) > 0 {
		t.Errorf("%v has a turn that was not written", now)
	}
	k.Client = l.c
	l.must(k.Look(t.Context()))
	if now := fmt.Sprint(having(k, 2)); now != "[g0]" {
		t.Errorf("%s has the turn", now)
	}
}

// rumour lists groups as they once were.
type rumour struct {
	client.Client
	list v1alpha1.MysqlFailoverGroupList
}

func (r rumour) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if into, is := list.(*v1alpha1.MysqlFailoverGroupList); is {
		r.list.DeepCopyInto(into)
		return nil
	}
	return r.Client.List(ctx, list, opts...)
}

// What the cache knows of the group that has the turn may be older than the turn, and must not end it.
func TestTheGroupThatHasTheTurnIsReadLive(t *testing.T) {
	l := newLand(t, 2)
	l.status("g0", false, "r2")
	before := rumour{Client: l.c}
	l.must(l.c.List(t.Context(), &before.list))
	l.status("g0", true, "r2")
	k := l.keeper(l.c)
	l.must(k.Look(t.Context()))
	k.Client = before
	for range 20 {
		l.now = l.now.Add(5 * time.Second)
		l.must(k.Look(t.Context()))
		if now := fmt.Sprint(having(k, 2)); now != "[g0]" {
			t.Fatalf("%s has the turn", now)
		}
	}
}

// A pod may be on its way when a group is pinned: the group keeps the turn for the pause. What ends is written before what begins: the turn ends in
// one look, and the next one begins in another.
func TestPinnedInItsTurn(t *testing.T) {
	l := newLand(t, 2)
	k := l.keeper(l.c)
	l.must(k.Look(t.Context()))
	g := &v1alpha1.MysqlFailoverGroup{}
	l.must(l.c.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "g0"}, g))
	g.Annotations = map[string]string{v1alpha1.AnnotationUpgradePin: "why"}
	l.must(l.c.Update(t.Context(), g))
	for _, want := range []string{"[g0]", "[g0]", "[]", "[g1]"} {
		l.must(k.Look(t.Context()))
		l.now = l.now.Add(k.Policy.Pause * 2 / 3)
		if now := fmt.Sprint(having(k, 2)); now != want {
			t.Errorf("%s has the turn, want %s", now, want)
		}
	}
}

// A turn begins only in the window, and goes on when it closes. The Lease says which window that is, and which version leads.
func TestWithinTheWindow(t *testing.T) {
	l := newLand(t, 2)
	window, err := pace.ParseWindow("13:00-14:00; 15:00-15:30")
	l.must(err)
	look := func() string {
		k := l.keeper(l.c)
		k.Policy.Window = window
		l.must(k.Look(t.Context()))
		return fmt.Sprint(having(k, 2))
	}
	for _, step := range []struct {
		after time.Duration
		done  bool
		want  string
	}{
		{0, false, "[]"}, {time.Hour, false, "[g0]"}, {2 * time.Hour, false, "[g0]"},
		{2*time.Hour + time.Minute, true, "[g0]"}, {2*time.Hour + 2*time.Minute, true, "[]"},
		{2*time.Hour + 3*time.Minute, true, "[]"}, {3 * time.Hour, true, "[g1]"},
	} {
		l.now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC).Add(step.after)
		if step.done {
			l.status("g0", false, "r2")
		}
		// Longer than it may take; that is another test's.
		lease := &coordinationv1.Lease{}
		if err := l.c.Get(t.Context(), leaseKey, lease); err == nil {
			delete(lease.Annotations, v1alpha1.AnnotationUpgradeStopped)
			l.must(l.c.Update(t.Context(), lease))
		}
		if now := look(); now != step.want {
			t.Errorf("after %s: %s has the turn, want %s", step.after, now, step.want)
		}
	}
	lease := l.lease()
	if a := lease.Annotations; a[v1alpha1.AnnotationUpgradeWindow] != "13:00-14:00; 15:00-15:30" || a[v1alpha1.AnnotationUpgradeRevision] != "r2" || a[v1alpha1.AnnotationUpgradePolicy] == "" {
		t.Errorf("the Lease tells %v", a)
	}
	// It is not written when nothing is new.
	version := lease.ResourceVersion
	look()
	if again := l.lease(); again.ResourceVersion != version {
		t.Error("the Lease is written at every look")
	}
}
