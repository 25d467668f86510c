// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// Start fences what an earlier run left open, before it asks the operator or a peer (specification 1.5), and then guards
// MySQL until ctx ends. Call Serve only after it: a push needs an earlier look at MySQL, because a window may be open.
func (a *Agent) Start(ctx context.Context) {
	a.look(ctx)
	a.enforce()
	a.work.Go(func() { a.tick(ctx) })
	a.work.Go(func() { a.watch(ctx) })
	a.work.Go(func() { a.keepTime(ctx) })
	a.work.Go(func() { a.watchPrepared(ctx) })
}

// Stop fences what is open and waits for everything that Start began, whose ctx has ended. Requests may still be under way.
func (a *Agent) Stop() {
	a.update(fence.Leave)
	a.enforce()
	a.work.Wait()
}

// tick asks the operator and every peer at every peer check interval.
func (a *Agent) tick(ctx context.Context) {
	ticker := time.NewTicker(a.PeerCheck)
	defer ticker.Stop()
	for {
		a.ticked.Store(int64(a.Clock().Mono))
		// Reading the state takes the lock, so a stuck lock stops the heartbeat.
		if a.now(); ctx.Err() != nil {
			return
		}
		a.askAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// watch looks at MySQL often: within a second it fences again if someone lifted the fence, and opens again if mysqld came
// back.
func (a *Agent) watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		a.watched.Store(int64(a.Clock().Mono))
		a.look(ctx)
		switch d := a.enforce(); {
		case d.Do == fence.Ask && ctx.Err() == nil:
			a.work.Go(func() { a.askOperatorOnce(ctx) })
		case d.Do == fence.Release:
			a.release()
		case d.Do == fence.KeepOut:
			a.keepOut()
		case d.Do == fence.LetIn:
			a.letIn()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// keepTime fences at the very moment when the lease or the window ends, not at the next tick.
func (a *Agent) keepTime(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.alarm():
			a.enforce()
			// A ladder without proof is tried again at once, but not in a tight loop.
			pause(ctx, retryPause)
		case <-a.news:
		}
	}
}

// Open is true while this site accepts writes of clients because it was opened here.
func (a *Agent) Open() bool {
	s := a.now()
	return s.Open() && s.Seen().Writable
}

// Answers is true if MySQL answered the last look.
func (a *Agent) Answers() bool { return a.now().Seen().Answered }

// alarm fires when time alone changes the decision; it never fires if time does not.
func (a *Agent) alarm() <-chan time.Time {
	left, ok := fence.NextChange(a.now(), a.Clock())
	if !ok {
		return nil
	}
	return time.After(max(0, left))
}

// healthy is false if a loop hangs: then the kubelet restarts this container, and mysqld with it.
func (a *Agent) healthy() bool {
	now := int64(a.Clock().Mono)
	// The time until this shows, plus the 12 s that the kubelet then takes, should fit into the lease.
	limit := int64(max(a.Lease/4, a.PeerCheck+2*lookTimeout))
	// The watch also carries out fences, which have their own deadline.
	slack := int64(a.FenceTimeout + goneTimeout + lookTimeout)
	return now-a.ticked.Load() <= limit && now-a.watched.Load() <= limit+slack
}

// supervised is false if mysqld runs and its supervisor hangs. Then only this sidecar guards it, so the kubelet restarts the
// MySQL container: otherwise nothing would show the fault until the sidecar hangs too.
func (a *Agent) supervised() bool {
	now := a.Clock().Mono
	if a.Watchdog.Watched(now) || !a.now().Seen().Running {
		a.unsupervised.Store(0)
		return true
	}
	a.unsupervised.CompareAndSwap(0, int64(now))
	// A machine that is busy for a moment must not cost a restart of mysqld.
	return now-time.Duration(a.unsupervised.Load()) <= unsupervisedMost
}

// ready is true while MySQL answers SQL and is not being cloned.
func (a *Agent) ready() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.state.Seen()
	return seen.Answered && !seen.Cloning && a.Clock().Mono-a.looked <= 2*(watchInterval+lookTimeout)
}
