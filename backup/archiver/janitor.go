// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// janitor does what nobody waits for: it makes one file of the segments of a sealed log, prunes, and sweeps. Nothing that it fails at keeps
// anything from being archived.
type janitor struct {
	w      *work
	nudged chan struct{}
	cancel context.CancelFunc
}

// sweepAge is how old data without a manifest must be: no upload takes as long.
const sweepAge = 24 * time.Hour

func startJanitor(w *work) *janitor {
	ctx, cancel := context.WithCancel(context.Background())
	j := &janitor{w: w, nudged: make(chan struct{}, 1), cancel: cancel}
	go j.run(ctx)
	j.nudge()
	return j
}

func (j *janitor) stop() { j.cancel() }

func (j *janitor) nudge() {
	select {
	case j.nudged <- struct{}{}:
	default:
	}
}

func (j *janitor) run(ctx context.Context) {
	tick := time.NewTicker(j.w.p.pruneEvery)
	defer tick.Stop()
	prune, swept := true, time.Time{}
	for {
		mine, done := j.w.p.whileMine(ctx, j.w.epoch)
		err := j.seal(mine)
		pruned := false
		if err == nil && prune {
			err = j.prune(mine)
			prune, pruned = false, true
		}
		if err == nil && j.w.p.now().Sub(swept) > j.w.p.sweepEvery {
			swept = j.w.p.now()
			_, err = j.w.archive.Sweep(mine, swept.Add(-sweepAge))
		}
		done()
		j.report(ctx, err, pruned)
		select {
		case <-ctx.Done():
			return
		case <-j.nudged:
		case <-tick.C:
			prune = true
		}
	}
}

// report logs what failed: it is tried again. What cannot be removed is told until a prune succeeds, and is no failure.
func (j *janitor) report(ctx context.Context, err error, pruned bool) {
	if ctx.Err() != nil || errors.Is(err, errTurnOver) || err == nil && !pruned {
		return
	}
	message := ""
	if err != nil {
		message = err.Error()
		if bucket.KindOf(err) != bucket.NoDeleteRight {
			j.w.p.log.Warn("what is not urgent failed; it is tried again", "reason", reasonOf(err), "error", err)
		}
	}
	j.w.p.board.set(func(s *wire.ArchiverStatus) { s.PruneMessage = message })
}

// seal makes one file of the segments of each log that the server writes no more. The segments go once it is there.
func (j *janitor) seal(ctx context.Context) error {
	st, same, err := j.sameServer(ctx)
	if err != nil || !same {
		return cause(ctx, err)
	}
	for _, log := range j.w.ledger.unsealed(st.Log) {
		err := j.w.whole(ctx, log, j.w.p.rateBeside)
		if errors.Is(err, errGone) {
			continue // purged: the segments hold all of it
		}
		if err != nil {
			return cause(ctx, err)
		}
		if err := j.removeSegments(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// sameServer asks the server how it is. same is false if it is another one, or its binary logs were reset: a log of one name has other transactions then, and
// nothing of it replaces what is archived. The round says so.
func (j *janitor) sameServer(ctx context.Context) (st serverState, same bool, err error) {
	had := j.w.ledger.executed() // first: what is archived meanwhile may be newer than the answer
	st, err = j.w.p.stateOf(ctx)
	return st, err == nil && st.UUID == j.w.uuid && st.Executed.Contains(had), err
}

func (j *janitor) removeSegments(ctx context.Context, log string) error {
	if !j.w.ledger.held(log).Sealed {
		return nil
	}
	for _, s := range j.w.ledger.segments(log) {
		if err := j.w.archive.Remove(ctx, s); err != nil {
			return err
		}
		j.w.ledger.drop(s)
	}
	return nil
}

// prune removes what no retained backup needs, on the operator's word of this moment.
func (j *janitor) prune(ctx context.Context) error {
	if err := j.w.stillOurs(ctx); err != nil {
		return cause(ctx, err)
	}
	cutoff := archive.Cutoff{} // nothing is pruned without the operator's word
	said, err := j.w.learn(ctx)
	if err == nil {
		cutoff, err = j.w.mayGo(ctx, said)
	}
	before := j.w.ledger.count()
	l, listErr := j.w.archive.List(ctx)
	if listErr != nil {
		return cause(ctx, listErr)
	}
	if mineErr := j.w.p.stillMine(ctx, j.w.epoch); mineErr != nil {
		return mineErr
	}
	l, mendErr := j.mend(ctx, l)
	if mendErr != nil {
		return cause(ctx, mendErr)
	}
	removed, pruneErr := j.w.archive.Prune(ctx, l, cutoff)
	j.w.p.board.set(func(s *wire.ArchiverStatus) { s.Pruned += int64(removed) })
	if removed > 0 || pruneErr != nil && bucket.KindOf(pruneErr) != bucket.NoDeleteRight { // a listing may be long without that right
		if l, listErr = j.w.archive.List(ctx); listErr != nil {
			return cause(ctx, listErr)
		}
	}
	j.w.takeIn(before, l)
	if pruneErr != nil {
		return cause(ctx, pruneErr)
	}
	return err
}

// mend has what is missing in our folder, or cannot be read there, archived once more.
func (j *janitor) mend(ctx context.Context, l archive.Listing) (archive.Listing, error) {
	if len(l.Missing)+len(l.Unreadable) == 0 {
		j.w.tellMissing(nil)
		j.w.tellUnreadable(nil)
		return l, nil
	}
	st, same, err := j.sameServer(ctx)
	if err != nil || !same {
		return l, err
	}
	l, removed, err := j.w.clear(ctx, l, st)
	if removed > 0 {
		j.w.again()
	}
	return l, err
}
