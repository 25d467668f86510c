// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// applyTimeout bounds how long one look waits until a target has applied everything.
const applyTimeout = 500 * time.Millisecond

// handover fences the old active site of a planned failover and waits for nothing else. The rest runs beside the loop:
// the statement to the others, and the Service, whose endpoint takes about as long to move as the role does.
func (l *loop) handover(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, e failover.Handover) error {
	signed, err := l.authority.Sign(time.Now())
	if err != nil {
		return err
	}
	longest, cancel := context.WithTimeout(ctx, s.Policy.FenceTimeout+time.Second)
	var from, all sync.WaitGroup
	for site, pod := range l.cluster().Newest(ctx, group) {
		switch {
		case pod.Status.PodIP == "":
		case site == e.From:
			h := handing{e, group, pod, signed, l.at(group, e.To)}
			from.Go(func() { l.fenceAndApply(longest, h) })
		default:
			all.Go(func() { _, _ = l.m.Push.PushActiveSite(longest, sidecarAddr(pod), wire.ActiveSite{Statement: signed}) })
		}
	}
	l.movePrimary(ctx, group, e.To)
	l.m.done.Go(func() {
		defer cancel()
		from.Wait()
		all.Wait()
	})
	fenced := make(chan struct{})
	l.m.done.Go(func() {
		from.Wait()
		close(fenced)
	})
	select {
	case <-fenced:
	case <-time.After(announceTimeout):
	}
	return nil
}

// move moves the primary Service to the target of a planned failover, beside the loop.
type move struct {
	to   string
	stop context.CancelFunc
	done chan struct{}
}

// movePrimary points the Service at the target, unless a move to it is under way.
func (l *loop) movePrimary(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, to string) {
	if l.move != nil && l.move.to == to {
		select {
		case <-l.move.done:
		default:
			return // with a slow API server every pass would add another
		}
	}
	ctx, stop := context.WithTimeout(ctx, apiTimeout)
	m := &move{to: to, stop: stop, done: make(chan struct{})}
	l.move = m
	l.m.done.Go(func() {
		defer close(m.done)
		defer stop()
		_ = l.selectPrimary(ctx, group, selector(group.Name, to, ""))
	})
}

// recall ends a move of the Service to any site but the one that should have it now, and returns true if there was one.
// Then the cache shows the Service from before that move, so the Service must be written whatever the cache says.
func (l *loop) recall(site string) bool {
	m := l.move
	if m == nil || m.to == site {
		return false
	}
	m.stop()
	<-m.done
	l.move = nil
	return true
}

// handing is the old active site of a handover, and the statement that ends its role.
type handing struct {
	failover.Handover
	group  *v1alpha1.MysqlFailoverGroup
	pod    *corev1.Pod
	signed wire.Signed
	target doer
}

// fenceAndApply fences the old active site and lets the target apply all that it holds. Its finding is only a head
// start: the next pass looks again, and decides on that look alone.
func (l *loop) fenceAndApply(ctx context.Context, h handing) {
	r, err := l.client.askReport(ctx, h.group, asking{h.pod, h.From, h.signed})
	if err != nil || !r.Answered || !r.FencedUnder(l.authority.Statement().Epoch) {
		return
	}
	set, err := gtid.Parse(r.GTIDExecuted)
	if err != nil {
		return
	}
	_ = h.target(ctx, func(ctx context.Context, db *mysql.DB) error {
		_, err := db.WaitApplied(ctx, set, applyTimeout)
		return err
	})
}

// detachBeside starts to end the replication of the target of a planned failover while the loop persists the passed gate,
// and returns a wait for it. It is the one effect that need not wait for the write: the source is fenced and the target
// has applied all of it, so there is nothing more to receive. A target that is not opened after all is attached again
// like any replica.
func (l *loop) detachBeside(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, d failover.Decision) (wait func()) {
	if d.Verdict != failover.VerdictPromote || d.Status.Transition.Kind != v1alpha1.FailoverPlanned {
		return func() {}
	}
	var one sync.WaitGroup
	for _, effect := range d.Effects {
		if e, is := effect.(failover.Detach); is && e.Site != d.Status.Transition.From {
			one.Go(func() {
				if err := l.onSite(ctx, group, e.Site, func(ctx context.Context, db *mysql.DB) error { return db.DropReplication(ctx) }); err != nil {
					l.log.Debug("detach beside the write", "site", e.Site, "error", err) // the effect in its turn tries again and reports
				}
			})
		}
	}
	return one.Wait
}
