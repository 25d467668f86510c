// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// open opens writes on the operator's answer w if the boot rule allows it, and otherwise says why not. It runs once at a
// time, because the data volume holds the mark of only one opening.
func (a *Agent) open(ctx context.Context, w fence.Word) fence.Refusal {
	select {
	case a.opening <- struct{}{}:
	case <-ctx.Done():
		return fence.Refusal{Reason: fence.TooOld, Message: "MySQL was being opened"}
	}
	defer func() { <-a.opening }()
	refusal := a.tryOpen(ctx, w)
	// News that came in meanwhile may call for a fence, or the opening may have failed half way.
	a.enforce()
	a.unmark()
	return refusal
}

// tryOpen marks the opening on the data volume before it takes the right to change MySQL for it: a volume that hangs must
// not delay a fence. So it asks the boot rule twice: whether there is anything to mark, and right before the SQL.
func (a *Agent) tryOpen(ctx context.Context, w fence.Word) fence.Refusal {
	var process string
	refusal := a.withRight(ctx, func() fence.Refusal {
		return a.mayOpen(ctx, w, func(s fence.State) (fence.State, fence.Refusal) {
			process = s.Seen().Process
			return s, fence.Refusal{}
		})
	})
	if refusal.Reason != "" {
		return refusal
	}
	a.marked = true // also if it fails: part of it may be there
	if err := a.Volume.MarkOpening(process); err != nil {
		// I1: if this run ended during the opening, the next one would take a read-only MySQL for fenced.
		return fence.Refusal{Reason: fence.OpeningNotMarked, Message: "mark the opening on the data volume: " + err.Error()}
	}
	return a.withRight(ctx, func() fence.Refusal {
		refusal := a.mayOpen(ctx, w, func(s fence.State) (fence.State, fence.Refusal) {
			if !covers(process, s.Seen().Process) {
				// The mark names a mysqld that has ended, so it would prove to the next run that nothing is pending. The next answer tries again.
				return s, fence.Refusal{Reason: fence.MysqldRestarted, Message: "mysqld restarted while the opening was marked"}
			}
			return fence.Opening(s), fence.Refusal{}
		})
		if refusal.Reason != "" {
			return refusal
		}
		return a.openWrites(w)
	})
}

// withRight calls do while it holds the right to change MySQL.
func (a *Agent) withRight(ctx context.Context, do func() fence.Refusal) fence.Refusal {
	select {
	case a.right <- struct{}{}:
	case <-ctx.Done():
		return fence.Refusal{Reason: fence.TooOld, Message: "MySQL was being changed"}
	}
	defer func() { <-a.right }()
	return do()
}

// mayOpen asks the boot rule on a fresh look at MySQL. If it allows the opening, mayOpen calls then under the same lock: no
// statement can be adopted between the decision and the opening without a later fence seeing it.
func (a *Agent) mayOpen(ctx context.Context, w fence.Word, then func(fence.State) (fence.State, fence.Refusal)) fence.Refusal {
	if a.Keyring != nil {
		if why := a.Keyring.Unescrowed(); why != "" {
			// I16: commits acknowledged now would be lost with this pod. Closed is safe; the next answer tries again.
			return fence.Refusal{Reason: fence.KeyringNotEscrowed, Message: why}
		}
	}
	a.look(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	refusal := fence.MayOpen(a.state, w, a.Clock())
	if refusal.Reason == "" {
		var next fence.State
		next, refusal = then(a.state)
		a.become(next)
	}
	return refusal
}

// covers is true if every process that runs is among the marked ones, or if the mark names none.
func covers(marked, now string) bool {
	known := strings.Fields(marked)
	return len(known) == 0 || !slices.ContainsFunc(strings.Fields(now), func(p string) bool { return !slices.Contains(known, p) })
}

// openWrites opens; the caller holds the right to change MySQL, and the state says that it is being opened.
func (a *Agent) openWrites(w fence.Word) fence.Refusal {
	a.Log.Info("opening writes", "epoch", w.Statement.Epoch)
	// The caller's ctx does not bound it: an opening, once begun, must end in a known state.
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	err := a.Changer.OpenWrites(ctx)
	outcome := outcomeOf(err)
	a.update(func(s fence.State) fence.State { return fence.Opened(s, outcome) })
	a.metrics.openings.WithLabelValues(string(outcome)).Inc()
	if err != nil {
		a.Log.Error("writes were not opened", "epoch", w.Statement.Epoch, "outcome", outcome, "error", err)
		return fence.Refusal{Reason: fence.Reason(outcome), Message: "open writes: " + err.Error()}
	}
	a.changed("opening", "")
	a.Log.Info("writes are open", "epoch", w.Statement.Epoch)
	return fence.Refusal{}
}

// unmark removes the mark of the opening once no statement of it can be under way: it was answered, or its mysqld has
// ended. A mark that stays is safe but has a cost: the next run kills that mysqld if it still runs.
func (a *Agent) unmark() {
	if !a.marked || a.now().Unsure() {
		return
	}
	if err := a.Volume.UnmarkOpening(); err != nil {
		a.Log.Warn("the mark of an opening stays on the data volume; if the sidecar restarts, it ends this mysqld", "error", err)
		return
	}
	a.marked = false
}

// outcomeOf says what an error of OpenWrites leaves behind: Unsure if a statement may still be under way.
func outcomeOf(err error) fence.Outcome {
	dial, isNet := errors.AsType[*net.OpError](err)
	_, isTimeout := errors.AsType[net.Error](err)
	switch {
	case err == nil:
		return fence.Done
	case errors.Is(err, mysql.ErrReplicaConfigured), isNet && dial.Op == "dial":
		return fence.Refused
	case isTimeout, errors.Is(err, context.Canceled),
		errors.Is(err, driver.ErrBadConn), errors.Is(err, mysqldriver.ErrInvalidConn),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fence.Unsure
	default:
		// The server refused a statement, or answered all of them and the read-back was wrong.
		return fence.Failed
	}
}
