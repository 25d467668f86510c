// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// oneGroup is a client that reads one group.
type oneGroup struct {
	client.Client
	group *v1alpha1.MysqlFailoverGroup
}

func (c oneGroup) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if group, ok := obj.(*v1alpha1.MysqlFailoverGroup); ok {
		c.group.DeepCopyInto(group)
	}
	return nil
}

// I1, I4: a loop that finds its group claimed by another release does nothing and answers nobody. When the group comes back to
// it, what the other one answered is not known to it.
func TestI4NothingIsAnsweredForAGroupOfAnotherRelease(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u"}}
	group.Status.Claim = &v1alpha1.GroupClaim{Lease: "a/mfg-operator"}
	push := &pushes{}
	l := testLoop(t, push, reader{group: group})
	l.m.Client, l.m.Lease = oneGroup{group: group}, "a/mfg-operator"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.m.running, l.m.loops[l.key] = ctx, l
	l.m.pulse.Beat(time.Now())
	l.authority.Set(statement("east", 3, false), nil, time.Now())
	ask := wire.Ask{Namespace: "shop", Group: "orders", Site: "east", Nonce: "n"}
	if _, err := l.m.Answer(ask); err != nil {
		t.Fatalf("its own group: %v", err)
	}
	l.loaded, l.started = true, time.Now().Add(-time.Hour)
	before := l.started

	group.Status.Claim.Lease = "b/mfg-operator"
	l.pass(t.Context())
	if _, err := l.m.Answer(ask); !errors.Is(err, wire.ErrUnknownGroup) || push.count != 0 || !l.loaded {
		t.Errorf("I4: it answers (%v), or pushes (%d)", err, push.count)
	}

	group.Status.Claim.Lease = "a/mfg-operator"
	l.m.Live = reader{err: errors.New("away")}
	l.pass(t.Context())
	if !l.started.After(before) || l.loaded {
		t.Errorf("I9: it counts leases from its own answers, although another release answered")
	}
}

// I2: no epoch is written over the claim of another release.
func TestI2NothingIsPersistedOverAnotherClaim(t *testing.T) {
	for name, c := range map[string]struct {
		own, claim string
		ours       bool
	}{
		"its own":          {"a/l", "a/l", true},
		"another's":        {"a/l", "b/l", false},
		"nobody's":         {"a/l", "", true},
		"without election": {"", "b/l", true},
	} {
		l := testLoop(t, &pushes{}, nil)
		l.m.Lease, l.durable = c.own, failover.Durable{Epoch: 3, ActiveSite: "east"}
		status := v1alpha1.MysqlFailoverGroupStatus{Epoch: 3, ActiveSite: "east"}
		if c.claim != "" {
			status.Claim = &v1alpha1.GroupClaim{Lease: c.claim}
		}
		if l.isOurs(status) != c.ours {
			t.Errorf("%s: ours is %t", name, !c.ours)
		}
	}
}

// I4: a forgotten loop counts as ended only once nothing of it runs.
func TestI4AForgottenLoopEndsBeforeItIsSaidToHave(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	m, key := l.m, types.NamespacedName{Namespace: "shop", Name: "orders"}
	if !m.Ended(key) {
		t.Error("there never was one")
	}
	m.loops[key] = l
	if m.Ended(key) {
		t.Error("it runs")
	}
	m.Forget(key)
	if m.Ended(key) {
		t.Error("it is in the middle of a pass")
	}
	delete(m.ending, l)
	if !m.Ended(key) || m.loop(key) != nil {
		t.Error("it has ended")
	}
}
