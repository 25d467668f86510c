// SPDX-License-Identifier: Apache-2.0

// Package probe finds out whether a client could write to the open site beside this sidecar, by writing as one. It runs beside
// everything else, and nothing waits for it: the sidecar only reports what it finds, and decides nothing by it.
package probe

import (
	"context"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

const (
	// interval is how often the probe writes, timeout how long one write may take before it counts as failed.
	interval = 2 * time.Second
	timeout  = 2 * time.Second
	// closedInterval is how often the probe tries the volume of a site that is not open: a site that takes over needs one that takes writes.
	closedInterval = 10 * time.Second
)

// MySQL is the server, through the port of the clients.
type MySQL interface {
	ProbeWrite(ctx context.Context) error
}

// Volume is the data volume.
type Volume interface {
	// Try writes a little to the volume and waits until it is on disk. It may hang for as long as the volume does.
	Try() error
}

// Agent tries to write. Its fields are set before Run.
type Agent struct {
	MySQL  MySQL
	Volume Volume
	// Open is true while the site is open.
	Open func() bool
	// Unable is called when the probe's account or one of its rights is missing; it may be nil.
	Unable func()
	Log    *slog.Logger

	// trying is closed once the last try on the volume has ended, tried is its result, and before that of the try before it. Only the
	// loop touches them, and tried only once trying is closed.
	trying        chan struct{}
	tried, before error

	mu    sync.Mutex
	known bool
	last  result
	since time.Time
	at    time.Time
	// volumeKnown is true while closed counts: the last try on the volume of a site that is not open.
	volumeKnown bool
	closed      result
	closedAt    time.Time
	// failsSince is when the first of the tries ended that fail in a row, on the volume of a site that is not open; zero if the last did not fail.
	failsSince time.Time
}

// result is the result of one probe.
type result struct {
	outcome wire.WriteOutcome
	reason  string
	errno   int
	took    time.Duration
}

// Run tries to write for as long as the site is open, until ctx ends. It tries one write at a time: it cuts off one that
// hangs, and counts it as failed.
func (a *Agent) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if a.Open() {
			a.take(ctx, a.probe(ctx))
		} else {
			a.forget()
			a.tryClosed(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Report is what the probes found; nil while the site is not open, or before the first probe has ended.
func (a *Agent) Report() *wire.WriteProbe {
	if !a.Open() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		return nil
	}
	return &wire.WriteProbe{
		Outcome: a.last.outcome, Reason: a.last.reason, Errno: a.last.errno, ForMillis: time.Since(a.since).Milliseconds(),
		TookMillis: a.last.took.Milliseconds(), AgeMillis: time.Since(a.at).Milliseconds(),
	}
}

// tryClosed tries the volume of a site that is not open, now and then. It asks MySQL nothing.
func (a *Agent) tryClosed(ctx context.Context) {
	a.mu.Lock()
	// A try that failed is followed by the next at once: whether it was one slow write or a broken volume decides who may take over.
	due := !a.volumeKnown || a.closed.outcome == wire.WriteFails || time.Since(a.closedAt) >= closedInterval
	a.mu.Unlock()
	if !due {
		return
	}
	wait, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a.tryVolume()
	r := judgeVolume(a.volume(wait, true))
	if ctx.Err() != nil || a.Open() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.outcome != wire.WriteFails:
		a.failsSince = time.Time{}
	case a.failsSince.IsZero():
		a.failsSince = time.Now()
	}
	a.volumeKnown, a.closed, a.closedAt = true, r, time.Now()
}

// VolumeReport is the result of the last try on the volume of a site that is not open; nil while it is open, or before the first.
func (a *Agent) VolumeReport() *wire.VolumeProbe {
	if a.Open() {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.volumeKnown {
		return nil
	}
	p := &wire.VolumeProbe{Outcome: a.closed.outcome, Reason: a.closed.reason, AgeMillis: time.Since(a.closedAt).Milliseconds()}
	if !a.failsSince.IsZero() {
		p.ForMillis = time.Since(a.failsSince).Milliseconds()
	}
	return p
}

// judgeVolume says what a try on the volume alone means.
func judgeVolume(stalled bool, err error) result {
	switch {
	case isFull(err):
		return result{outcome: wire.WriteFails, reason: wire.WriteDiskFull}
	case isBroken(err):
		return result{outcome: wire.WriteFails, reason: wire.WriteDiskFailed}
	case stalled:
		return result{outcome: wire.WriteFails, reason: wire.WriteDiskStalled}
	case err != nil:
		return result{outcome: wire.WriteUnknown, reason: wire.WriteProbeUnable}
	}
	return result{outcome: wire.WriteDone}
}

// probe writes once, to MySQL and to its volume side by side.
func (a *Agent) probe(ctx context.Context) result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	a.tryVolume()
	err := a.MySQL.ProbeWrite(ctx)
	took := time.Since(began)
	stalled, disk := a.volume(ctx, err != nil)
	r := judge(err, stalled, disk)
	r.took = took
	return r
}

// tryVolume begins a try on the volume, unless the last one still hangs: a thread that waits for a disk cannot be stopped.
func (a *Agent) tryVolume() {
	if a.trying != nil {
		select {
		case <-a.trying:
			a.before = a.tried
		default:
			return
		}
	}
	done := make(chan struct{})
	a.trying = done
	go func() {
		defer close(done)
		a.tried = a.Volume.Try()
	}()
}

// volume is the result of the try on the volume; of the one before, while it is not over. It waits for the try only if the
// write failed: a disk that is merely slow, and on which clients commit, is no concern of the probe.
func (a *Agent) volume(ctx context.Context, wait bool) (stalled bool, err error) {
	if wait {
		select {
		case <-a.trying:
		case <-ctx.Done():
		}
	}
	select {
	case <-a.trying:
		return false, a.tried
	default:
		return true, a.before
	}
}

// judge says what a probe means. It reports a volume that takes no more writes even if MySQL still finds room: MySQL makes
// its logs beforehand, and the next client would wait.
func judge(err error, stalled bool, disk error) result {
	failure, errno := mysql.ProbeFailure(""), 0
	if err != nil {
		failure, errno = mysql.ProbeFailureOf(err)
	}
	failed := func(reason string) result { return result{outcome: wire.WriteFails, reason: reason, errno: errno} }
	switch {
	case isFull(disk):
		return failed(wire.WriteDiskFull)
	case isBroken(disk):
		return failed(wire.WriteDiskFailed)
	case err == nil:
		return result{outcome: wire.WriteDone}
	case failure == mysql.ProbeUnable:
		return result{outcome: wire.WriteUnknown, reason: wire.WriteProbeUnable, errno: errno}
	case stalled && follows[failure]:
		return failed(wire.WriteDiskStalled)
	}
	return failed(string(failure))
}

// follows are the failures that a hanging volume causes: the write gets no answer, or waits for the row that the one before still
// holds in its commit, or finds all connections taken by clients whose commits hang.
var follows = map[mysql.ProbeFailure]bool{mysql.ProbeNoAnswer: true, mysql.ProbeLocked: true, mysql.ProbeTooManyConnections: true}

func isFull(err error) bool { return isErrno(err, syscall.ENOSPC, syscall.EDQUOT) }

func isBroken(err error) bool { return isErrno(err, syscall.EIO, syscall.EROFS) }

// take keeps a result, unless the site was closed meanwhile: then the result means nothing.
func (a *Agent) take(ctx context.Context, r result) {
	if ctx.Err() != nil || !a.Open() {
		a.forget()
		return
	}
	now := time.Now()
	a.mu.Lock()
	changed := !a.known || a.last.outcome != r.outcome
	told := changed || a.last.reason != r.reason
	first := !a.known
	if changed {
		// The first probe with this outcome had it already when it began.
		a.since = now.Add(-r.took)
	}
	a.known, a.last, a.at, a.volumeKnown, a.failsSince = true, r, now, false, time.Time{}
	a.mu.Unlock()
	switch {
	case !told || first && r.outcome == wire.WriteDone:
	case r.outcome == wire.WriteDone:
		a.Log.Info("clients can write again", "took", r.took.String())
	case r.outcome == wire.WriteFails:
		a.Log.Warn("the write probe fails: clients cannot write", "reason", r.reason, "errno", r.errno, "took", r.took.String())
	default:
		a.Log.Warn("whether clients can write is not known: the account of the write probe, or a right of it, is missing; it is made when the pod is next replaced",
			"errno", r.errno)
	}
	if told && r.outcome == wire.WriteUnknown && a.Unable != nil {
		a.Unable()
	}
}

// forget is for a site that is not open: earlier results do not count for the next opening.
func (a *Agent) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = false
}
