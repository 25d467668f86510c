// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/fence"
)

const (
	// preparedInterval is how often the agent looks for prepared XA transactions on a site that is not open. An XA COMMIT that comes
	// sooner after the applier has prepared its transaction is not refused.
	preparedInterval = 50 * time.Millisecond
	// keepOutTimeout bounds one try to keep clients out. It waits for no lock of theirs.
	keepOutTimeout = time.Second
)

// watchPrepared keeps clients out while an XA transaction is prepared on a site that is not open.
func (a *Agent) watchPrepared(ctx context.Context) {
	if a.Prepared == nil {
		return
	}
	for ctx.Err() == nil {
		pause(ctx, preparedInterval)
		if s := a.now(); s.Exposed() || !s.Seen().Answered {
			continue // the active site may have them, and a fence looks for them
		}
		bound, cancel := context.WithTimeout(ctx, lookTimeout)
		n, err := a.Prepared(bound)
		cancel()
		if s := a.now(); err != nil || n == 0 && s.Prepared() == 0 {
			continue // an unknown count changes nothing: the door stays as it is
		}
		a.update(func(s fence.State) fence.State { return fence.SawPrepared(s, n, a.Clock()) })
		if fence.Decide(a.now(), a.Clock()).Do == fence.KeepOut {
			a.keepOut()
		}
	}
}

// keepOut keeps clients out of a read-only MySQL. If it fails, the agent tries again after the next look.
func (a *Agent) keepOut() {
	if !a.keepingOut.CompareAndSwap(false, true) {
		return // every push would add another
	}
	defer a.keepingOut.Store(false)
	a.right <- struct{}{}
	defer func() { <-a.right }()
	var d fence.Decision
	a.update(func(s fence.State) fence.State {
		if d = fence.Decide(s, a.Clock()); d.Do == fence.KeepOut {
			return fence.Fencing(s)
		}
		return s
	})
	if d.Do != fence.KeepOut {
		return // MySQL or the decision changed while this goroutine waited for the right
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepOutTimeout)
	defer cancel()
	err := a.Changer.KeepOut(ctx, d.Why == fence.AboutToOpen)
	a.update(func(s fence.State) fence.State { return fence.KeptOut(s, err == nil) })
	state := "kept out until this site is open"
	if d.Why == fence.PreparedXA {
		state = "kept out: a prepared XA transaction could be committed here; end it with XA COMMIT or XA ROLLBACK on the active site"
	}
	if err != nil {
		state = "not kept out: " + err.Error()
	}
	if a.changed("readers", state) {
		a.Log.Info("readers are " + state)
	}
}

// letIn lifts offline_mode on an open site, where a statement of keepOut came late. If it fails, the agent tries again after the next look.
func (a *Agent) letIn() {
	a.right <- struct{}{}
	defer func() { <-a.right }()
	due := false
	a.update(func(s fence.State) fence.State {
		if due = fence.Decide(s, a.Clock()).Do == fence.LetIn; due {
			return fence.Fencing(s)
		}
		return s
	})
	if !due {
		return // it has to be fenced by now, or was opened again
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepOutTimeout)
	defer cancel()
	err := a.Changer.SetOfflineMode(ctx, false)
	a.update(func(s fence.State) fence.State { return fence.LetClientsIn(s, err == nil) })
	a.Log.Warn("clients were kept out of an open site by a statement that came late", "lifted", err == nil, "error", err)
}
