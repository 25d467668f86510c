// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

const (
	// killReserve: the SQL rungs of the ladder leave 1/killReserve of the fence timeout for SIGKILL.
	killReserve = 8
	// retryPause is between two tries of a rung that failed at once.
	retryPause = 100 * time.Millisecond
	// goneTimeout is how long mysqld may take to disappear after SIGKILL. It commits nothing meanwhile: no thread of a
	// killed process runs its program again. Only the proof has to wait.
	goneTimeout = 3 * time.Second
	gonePoll    = 20 * time.Millisecond
)

// look looks at MySQL. It returns false if the look overlapped a change of MySQL and therefore proves nothing.
func (a *Agent) look(ctx context.Context) bool {
	change := a.now().Change()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, lookErr := a.Processes.Look()
	status, err := a.MySQL.Status(ctx)
	facts := fence.Facts{Process: found.ID, Answered: err == nil}
	if err == nil {
		facts.SuperReadOnly, facts.Writable, facts.Offline = status.SuperReadOnly, status.Writable(), status.OfflineMode
		facts.Replicates, facts.Cloning = status.Channels > 0 || status.Replica != nil, status.Cloning
	}
	facts.Watched = a.Watchdog.Watched(a.Clock().Mono)
	facts.Running = found.Running() || facts.Answered || lookErr != nil || a.Processes.Locked()
	a.mu.Lock()
	next, taken := fence.Observe(a.state, facts, change)
	if taken {
		a.become(next)
		a.status, a.looked = status, a.Clock().Mono
		if facts.Answered || !a.silent {
			a.silent, a.silentSince = !facts.Answered, a.looked
		}
	}
	a.mu.Unlock()
	a.wake()
	if taken && a.changed("mysql", describe(facts)) {
		log := a.Log.With("mysql", describe(facts))
		if err = errors.Join(err, lookErr); err != nil {
			log = log.With("error", err)
		}
		log.Info("MySQL is in another state, checking its fence")
	}
	return taken
}

func describe(f fence.Facts) string {
	switch {
	case !f.Running:
		return "not running"
	case !f.Answered:
		return "silent"
	case f.Cloning:
		return "cloning"
	case f.Offline && !f.SuperReadOnly:
		return "writable behind offline_mode"
	case f.Offline:
		return "read-only, offline"
	case f.SuperReadOnly:
		return "read-only"
	default:
		return "writable"
	}
}

// enforce fences MySQL if it has to be fenced now, and returns what else to do. Every caller that learned something new
// calls it. It returns after the fence, even if another goroutine carried that out.
func (a *Agent) enforce() fence.Decision {
	if d := fence.Decide(a.now(), a.Clock()); d.Do != fence.Fence {
		return d
	}
	a.right <- struct{}{}
	defer func() { <-a.right }()
	// Another goroutine may have fenced while this one waited for the right.
	d := fence.Decide(a.now(), a.Clock())
	if d.Do == fence.Fence {
		a.fence(d)
		d = fence.Decide(a.now(), a.Clock())
	}
	return d
}

// release fences once more a MySQL that is read-only already: that lets readers in unless a prepared XA transaction could
// still be committed. It never kills, because this MySQL accepts no commits.
func (a *Agent) release() {
	a.right <- struct{}{}
	defer func() { <-a.right }()
	if fence.Decide(a.now(), a.Clock()).Do != fence.Release {
		return // another goroutine changed MySQL while this one waited for the right
	}
	a.update(fence.Fencing)
	ctx, cancel := context.WithTimeout(context.Background(), a.FenceTimeout)
	defer cancel()
	result, err := a.fenceBySQL(ctx)
	a.update(func(s fence.State) fence.State { return fence.Fenced(s, fence.LastFence{}, err == nil) })
	state := "let in"
	if result.PreparedXA > 0 {
		state = "kept out: a prepared XA transaction could be committed; end it with XA COMMIT or XA ROLLBACK on the active site"
	}
	if err != nil {
		state = "kept out: " + err.Error()
	}
	if a.changed("readers", state) {
		a.Log.Info("readers are "+state, "preparedXA", result.PreparedXA)
	}
}

// fence climbs the ladder; the caller holds the right to change MySQL.
func (a *Agent) fence(d fence.Decision) {
	state := a.now()
	log := a.Log.With("cause", d.Cause, "reason", d.Why, "epoch", state.Newest().Epoch, "activeSite", state.Newest().ActiveSite)
	log.Warn("fencing MySQL")
	a.update(fence.Fencing)
	began := a.Clock().Mono
	stage, err := a.climb(d.Kill, state.Seen().Process)
	took := a.Clock().Mono - began
	last := fence.LastFence{Cause: d.Cause, Stage: stage}
	a.update(func(s fence.State) fence.State { return fence.Fenced(s, last, err == nil) })
	if err != nil {
		a.metrics.failures.WithLabelValues(string(d.Cause)).Inc()
		log.Error("MySQL is not proven to be fenced; trying again", "took", took.String(), "error", err)
		return
	}
	a.metrics.fenced(last, took)
	log.Warn("MySQL is fenced", "stage", stage, "took", took.String())
}

// climb goes up the ladder: SQL until shortly before the fence timeout, then SIGKILL. A nil error means that the fence is
// proven. process is the mysqld that may be open; once it is gone there is nothing to fence, because mysqld starts fenced.
func (a *Agent) climb(kill bool, process string) (wire.FenceStage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.FenceTimeout-a.FenceTimeout/killReserve)
	defer cancel()
	var err error
	for !kill && ctx.Err() == nil {
		if a.gone(process) {
			return wire.FenceNone, nil
		}
		var result mysql.FenceResult
		if result, err = a.fenceBySQL(ctx); err == nil {
			return wire.FenceStage(result.Stage), nil
		}
		pause(ctx, retryPause)
	}
	return a.kill(process, err)
}

// kill is the last rung. If SQL did not fence in time, the end of the process does; a commit that is stuck on its disk
// dies with it.
func (a *Agent) kill(process string, sqlErr error) (wire.FenceStage, error) {
	target, err := a.Processes.Look()
	if process == "" {
		// It is not known which mysqld may be open, so all of them are killed.
		process = target.ID
	}
	if target = target.among(process); err == nil && target.Running() {
		a.Log.Warn("killing mysqld", "process", target.ID, "error", sqlErr)
		err = a.Processes.Kill(target)
	}
	ctx, cancel := context.WithTimeout(context.Background(), goneTimeout)
	defer cancel()
	for !a.gone(process) {
		if ctx.Err() != nil {
			return "", errors.Join(errors.New("mysqld did not end"), err, sqlErr)
		}
		pause(ctx, gonePoll)
	}
	return wire.FenceKillServer, nil
}

// fenceBySQL does not trust the driver to keep the deadline: SIGKILL must not wait for it.
func (a *Agent) fenceBySQL(ctx context.Context) (mysql.FenceResult, error) {
	type answer struct {
		result mysql.FenceResult
		err    error
	}
	done := make(chan answer, 1)
	a.work.Go(func() {
		result, err := a.Changer.Fence(ctx, mysql.FenceOptions{LockWait: time.Second})
		done <- answer{result, err}
	})
	select {
	case got := <-done:
		return got.result, got.err
	case <-ctx.Done():
		return mysql.FenceResult{}, ctx.Err()
	}
}

// gone is true if the mysqld that was seen no longer exists: then it commits nothing, now or later. If none was ever
// seen, it is true only if no mysqld is seen now and no process holds the datadir.
func (a *Agent) gone(process string) bool {
	now, err := a.Processes.Look()
	if err != nil || now.among(process).Running() || (process == "" && now.Running()) {
		return false
	}
	return now.Running() || !a.Processes.Locked()
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
