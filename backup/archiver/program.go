// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// ExitEnded is the exit code after the signal to end. There is no other: a container that ends takes the readiness of the pod with it.
const ExitEnded = 0

const (
	// endWithin is how long the end of the process waits for what is under way. What is not done then is nothing: its file has no manifest.
	endWithin = 500 * time.Millisecond
	// pauseMin and pauseMax bound the pause after a failure; each is twice as long as the one before.
	pauseMin = time.Second
	pauseMax = 30 * time.Second
	// refusedPauseMax bounds it while the server refuses us: the kubelet brings a password that was replaced, and each try reads it.
	refusedPauseMax = 4 * time.Second
	// memoryShare of the container's limit is what the Go runtime is told to stay below.
	memoryShare = 0.8
)

// Program is one run of the archiver.
type Program struct {
	config Config
	log    *slog.Logger
	now    func() time.Time
	// archive is open while rounds use it; nil once it has to be opened again, since what opens it is replaced while the program runs.
	archive *archive.Archive
	server  server
	ask     neighbours
	// stateOf asks the server how it is.
	stateOf func(ctx context.Context) (serverState, error)
	// headOf reads what was executed before a log.
	headOf func(ctx context.Context, log string) (archive.Content, error)
	// readOf streams a log.
	readOf func(ctx context.Context, r reading) (read, error)
	// operator asks for the cutoff.
	operator func(ctx context.Context) (wire.Cutoff, error)
	board    *board
	nudged   chan struct{}
	// stuck is true if archiving itself failed in this round, wasStuck if it did in the one before: then nothing is well before something is archived.
	stuck, wasStuck bool
	// pruneEvery and sweepEvery are how often both are done.
	pruneEvery, sweepEvery time.Duration
	// rate bounds how fast a log is read while somebody waits for it, and rateBeside while nobody does, in bytes a second.
	rate, rateBeside int64
}

// New prepares a run. It asks nobody anything.
func New(c Config, log *slog.Logger) *Program {
	asker := client.New(nil)
	p := &Program{config: c, log: log, now: time.Now, server: server{c}, ask: asker, board: &board{}, nudged: make(chan struct{}, 1),
		pruneEvery: 5 * time.Minute, sweepEvery: 6 * time.Hour, rate: rateMax, rateBeside: rateBeside}
	p.stateOf, p.headOf, p.readOf = p.state, p.head, p.server.read
	p.operator = func(ctx context.Context) (wire.Cutoff, error) {
		return asker.Cutoff(ctx, c.OperatorURL, c.anchor, c.place.Namespace, c.place.Group)
	}
	p.board.status = wire.ArchiverStatus{State: wire.ArchiverStarting, Site: c.Site, StartedAt: p.now().UTC()}
	if c.MemoryBytes > 0 {
		debug.SetMemoryLimit(int64(float64(c.MemoryBytes) * memoryShare))
	}
	return p
}

// open opens the storage if it is not. The pauses of one that is away are short: there are other rounds.
func (p *Program) open(ctx context.Context) error {
	if p.archive != nil {
		return nil
	}
	a, err := archive.OpenWith(ctx, p.config.place, bucket.Patience{RequestPauseMax: 5 * time.Second, AbortTimeout: 5 * time.Second})
	if err == nil {
		p.archive = a
	}
	return err
}

// reopen has the storage opened again before the next round if what opens it may be why it failed: credentials and authorities are files, and
// people replace them.
func (p *Program) reopen(err error, w **work) {
	switch bucket.KindOf(err) { //nolint:exhaustive // the others have nothing to do with how it was opened
	case bucket.AccessDenied, bucket.UntrustedTLS, bucket.NoSuchBucket:
		(*w).end()
		*w = nil
		if p.archive != nil {
			_ = p.archive.Close() // it says nothing that the failure has not said
		}
		p.archive = nil
	}
}

// Run archives until ctx ends, and returns within a second then, whatever is under way.
func (p *Program) Run(ctx context.Context) int {
	p.log.Info("archiving binary logs", "site", p.config.Site, "place", p.config.place.Location(), "interval", p.config.Interval().String())
	var all sync.WaitGroup
	all.Go(func() { p.rounds(ctx) })
	all.Go(func() { p.tellAlways(ctx) })
	all.Go(func() { watch(ctx, p.config.Server.BinlogIndex, p.nudge, p.log) })
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(endWithin):
	}
	return ExitEnded
}

// nudge has the next round begin at once.
func (p *Program) nudge() {
	select {
	case p.nudged <- struct{}{}:
	default:
	}
}

// tellAlways writes the status down.
func (p *Program) tellAlways(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	told := false
	for {
		err := p.board.write(p.config.StatusFile, p.now())
		if err != nil && !told {
			p.log.Error("the status cannot be written", "file", p.config.StatusFile, "error", err)
		}
		told = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// rounds goes on for ever: one round in each interval, sooner if a log was sealed, later after failures.
func (p *Program) rounds(ctx context.Context) {
	var w *work
	pause := time.Duration(0)
	for ctx.Err() == nil {
		began := p.now()
		state, err := p.round(ctx, &w)
		if ctx.Err() != nil {
			break
		}
		p.report(state, err)
		if err != nil {
			p.reopen(err, &w)
			pause = pauseAfter(pause, err)
			p.wait(ctx, pause, nil)
			continue
		}
		pause = 0
		p.wait(ctx, p.config.Interval()-p.now().Sub(began), p.nudged)
	}
	w.end()
}

// pauseAfter is the pause after a failure that comes after another pause; zero is none.
func pauseAfter(before time.Duration, err error) time.Duration {
	most := pauseMax
	if reasonOf(err) == string(ServerRefuses) {
		most = refusedPauseMax
	}
	return min(most, max(pauseMin, 2*before))
}

func (p *Program) wait(ctx context.Context, d time.Duration, nudged <-chan struct{}) {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-nudged:
	}
}

// report says how a round went, and logs what is different from the one before.
func (p *Program) report(state wire.ArchiverState, err error) {
	before := p.board.get()
	p.board.outcome(state, err, p.now())
	after := p.board.get()
	switch {
	case after.State == before.State && after.Reason == before.Reason:
	case err != nil:
		p.log.Error("the archive does not come further", "reason", after.Reason, "error", err)
	default:
		p.log.Info("the archiver continues", "state", string(after.State), "epoch", after.Epoch)
	}
}

// round does what there is to do now. It leaves in w what is worth remembering until the next one.
func (p *Program) round(ctx context.Context, w **work) (wire.ArchiverState, error) {
	p.wasStuck, p.stuck = p.stuck, false
	turn, err := p.turn(ctx)
	if err != nil {
		return wire.ArchiverFailing, err
	}
	if !turn.Active {
		(*w).end()
		*w = nil
		p.board.set(func(s *wire.ArchiverStatus) { s.Epoch, s.PendingBytes = 0, 0 })
		return wire.ArchiverStandby, nil
	}
	state, err := p.archiveIn(ctx, turn.Epoch, w)
	if errors.Is(err, errTurnOver) {
		(*w).end()
		*w = nil
		return wire.ArchiverStandby, nil
	}
	return state, err
}

// begins is true if it can be said at once that it archives: it stood by, or what failed was something else that works again.
func (p *Program) begins() bool {
	s := p.board.get().State
	return s != wire.ArchiverArchiving && (s != wire.ArchiverFailing || !p.wasStuck)
}

// archiveIn archives in an epoch of ours.
func (p *Program) archiveIn(ctx context.Context, epoch int64, w **work) (wire.ArchiverState, error) {
	mine, done := p.whileMine(ctx, epoch)
	defer done()
	if *w != nil && ((*w).epoch != epoch || (*w).stale.Load()) {
		(*w).end()
		*w = nil
	}
	if *w == nil {
		taken, err := p.takeOver(mine, epoch)
		if err != nil {
			return wire.ArchiverFailing, cause(mine, err)
		}
		*w = taken
	}
	return (*w).round(mine)
}
