// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// work is what is done in one epoch of ours.
type work struct {
	p       *Program
	archive *archive.Archive
	epoch   int64
	uuid    string
	// ledger is what is in the archive.
	ledger *ledger
	// next is the log that is archived next: all before it are there.
	next string
	// gone is the log that the server last refused to send.
	gone string
	// told is when it was last told in the middle of a round how far the archive is.
	told time.Time
	// missed is how many files were missing when the archive was last listed.
	missed int
	// unreadable is how many objects could not be read then, and stayed.
	unreadable int
	// had is what the server had executed when it was asked last; compared is true once that was compared with the archive.
	had      gtid.Set
	compared bool
	// stale is set once something has to be archived again, or the place may be another group's: the epoch is taken over once more.
	stale atomic.Bool
	// owned is when the place was last known to be ours, in nanoseconds.
	owned atomic.Int64
	// janitor runs beside.
	janitor *janitor
}

// takeOver begins an epoch: whose the place is, what the epochs began with, what is there, and where to go on. Nothing that it does has to be
// undone if it fails.
func (p *Program) takeOver(ctx context.Context, epoch int64) (*work, error) {
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	if err := p.archive.Claim(ctx, p.config.GroupUID, p.now()); err != nil {
		return nil, err
	}
	st, err := p.stateOf(ctx)
	if err != nil {
		return nil, err
	}
	if st.ReadOnly {
		return nil, errTurnOver // not yet, or no more: the sidecar says so soon
	}
	l, err := p.archive.List(ctx)
	if err != nil {
		return nil, err
	}
	w := &work{p: p, archive: p.archive, epoch: epoch, uuid: st.UUID}
	if why := otherHistory(l, w.folder()); why != "" {
		return nil, failf(Reason(bucket.Foreign), "the archive in %s is that of another group: %s; two histories are never mixed: move or remove its folder archive, "+
			"or give the profile another prefix", p.archive.Location(), why)
	}
	if l, _, err = w.clear(ctx, l, st); err != nil {
		return nil, err
	}
	w.owned.Store(p.now().UnixNano()) // Claim says so
	w.ledger = newLedger(l, w.folder())
	cutoff, err := w.learn(ctx)
	if err != nil {
		// Archiving does not wait for the operator. Until the archive knows with what the epoch began, it takes what the logs themselves prove.
		p.log.Warn("what the epoch began with is not known yet", "epoch", epoch, "error", err)
	}
	if err := w.continues(st); err != nil {
		return nil, err
	}
	if w.next, err = w.begin(ctx, st, cutoff); err != nil {
		return nil, err
	}
	p.board.set(func(s *wire.ArchiverStatus) { s.Epoch, s.ServerUUID = epoch, st.UUID })
	p.log.Info("archiving in an epoch", "epoch", epoch, "from", w.next, "files", len(l.Logs))
	w.janitor = startJanitor(w)
	return w, nil
}

// otherHistory is what in the archive cannot be of the history that a folder belongs to (I26); empty if there is nothing. Epochs only grow, and each has one
// server. A group that was made again in the place of a lost one begins at the first once more: by its number, what the later ones of the other group
// do not know would pass for lost.
func otherHistory(l archive.Listing, ours archive.LogManifest) string {
	for _, e := range l.Epochs {
		if e.Epoch > ours.Epoch {
			return fmt.Sprintf("it knows epoch %d, and this group is in epoch %d", e.Epoch, ours.Epoch)
		}
	}
	for _, log := range slices.Concat(l.Logs, l.Missing) {
		if log.Epoch > ours.Epoch || log.Epoch == ours.Epoch && (log.Site != ours.Site || log.ServerUUID != ours.ServerUUID) {
			return fmt.Sprintf("it holds %s of server %s, and this is epoch %d of site %s, server %s", log.Name(), log.ServerUUID, ours.Epoch, ours.Site, ours.ServerUUID)
		}
	}
	return ""
}

// end ends what runs beside. It does not wait for it: what it uploads does not count any more.
func (w *work) end() {
	if w != nil && w.janitor != nil {
		w.janitor.stop()
	}
}

// folder is the one that this epoch's files go to.
func (w *work) folder() archive.LogManifest {
	return archive.LogManifest{Epoch: w.epoch, Site: w.p.config.Site, ServerUUID: w.uuid}
}

// state asks the server on a connection of its own, within a bound.
func (p *Program) state(ctx context.Context) (serverState, error) {
	ctx, cancel := context.WithTimeout(ctx, silenceMax)
	defer cancel()
	conn, err := p.server.connect(ctx)
	if err != nil {
		return serverState{}, err
	}
	defer conn.close()
	return conn.state()
}

// learn asks the operator, and writes down what each epoch began with. What the archive has of an epoch stays.
func (w *work) learn(ctx context.Context) (wire.Cutoff, error) {
	c, err := w.p.cutoff(ctx)
	if err != nil {
		return wire.Cutoff{}, err
	}
	for _, e := range slices.Backward(c.Epochs) { // they come newest first
		if w.ledger.knows(e.Epoch) {
			continue
		}
		epoch := epochOf(e)
		if err := w.archive.PutEpoch(ctx, epoch); err != nil {
			return wire.Cutoff{}, err
		}
		w.ledger.mu.Lock()
		w.ledger.epochs = append(slices.Clip(w.ledger.epochs), epoch)
		w.ledger.mu.Unlock()
	}
	if !w.ledger.knows(w.epoch) {
		return c, failf(Other, "the operator does not say yet what epoch %d began with", w.epoch)
	}
	return c, nil
}

// mayGo is what the archive understands of the operator's word; the zero value prunes nothing. The operator does not know sets that are too long for
// the status of a backup: they are in the storage.
func (w *work) mayGo(ctx context.Context, c wire.Cutoff) (archive.Cutoff, error) {
	out := cutoffOf(c)
	if out.At.IsZero() || len(c.Backups) == 0 {
		return out, nil
	}
	held, err := w.archive.Holds(ctx, c.Backups)
	if err != nil {
		return archive.Cutoff{}, fmt.Errorf("what the backups hold that are kept is not known, and so not what may be pruned: %w", err)
	}
	out.Set = held
	return out, nil
}

// begin finds the log to begin with: the first that holds anything that is not archived.
func (w *work) begin(ctx context.Context, st serverState, said wire.Cutoff) (string, error) {
	l := w.ledger.listing()
	cutoff := archive.Cutoff{}
	if len(l.Logs) == 0 && l.Pruned == nil {
		var err error
		if cutoff, err = w.mayGo(ctx, said); err != nil {
			// Archiving does not wait for it: without it, the archive begins with the first log of the server.
			w.p.log.Warn("the oldest backup is not known yet", "error", err)
		}
	}
	if !cutoff.At.IsZero() {
		// A new archive begins with the oldest backup, as far as that is of the server's history.
		cutoff.Set = cutoff.Set.Intersect(st.Executed)
		pruned := archive.NextPruned(l, cutoff)
		if err := w.archive.PutPruned(ctx, pruned); err != nil {
			return "", err
		}
		w.ledger.mu.Lock()
		w.ledger.pruned = &pruned
		w.ledger.mu.Unlock()
		l = w.ledger.listing()
	}
	covered := archive.Covered(archive.History(l))
	var logs []archive.ServerLog
	// From the newest back, until everything before a log is covered: a server may have very many.
	for _, name := range slices.Backward(st.Logs) {
		head, err := w.p.headOf(ctx, name)
		if err != nil {
			return "", err
		}
		logs = append(logs, archive.ServerLog{Name: name, Previous: head.Previous})
		if covered.Contains(head.Previous) {
			break
		}
	}
	if len(logs) == 0 {
		return "", failf(ServerRefuses, "the server has no binary log")
	}
	slices.Reverse(logs)
	return logs[archive.Resume(logs, covered)].Name, nil
}

// head reads what was executed before a log.
func (p *Program) head(ctx context.Context, log string) (archive.Content, error) {
	ctx, cancel := context.WithTimeout(ctx, silenceMax)
	defer cancel()
	counter := archive.NewCounter(archive.Content{}.Previous, false)
	_, err := p.server.read(ctx, reading{log: log, counter: counter, head: true})
	return counter.Content(), err
}

// round archives all that there is now.
func (w *work) round(ctx context.Context) (wire.ArchiverState, error) {
	for {
		seen := w.p.now()
		st, err := w.p.stateOf(ctx)
		if err != nil {
			return wire.ArchiverFailing, cause(ctx, err)
		}
		if st.ReadOnly {
			return wire.ArchiverStandby, errTurnOver
		}
		if err := w.continues(st); err != nil {
			return wire.ArchiverFailing, err
		}
		if w.p.begins() {
			w.onward(st)
		}
		again, err := w.catchUp(ctx, st, seen)
		w.p.stuck = err != nil
		w.tell(st)
		if err != nil {
			if !errors.Is(err, errGone) || w.gone == w.next || ctx.Err() != nil {
				return wire.ArchiverFailing, cause(ctx, err)
			}
			// The logs are listed again: what was purged shows as a gap. What is there all the same is a failure the next time.
			w.gone, again = w.next, true
		}
		if !again {
			return wire.ArchiverArchiving, nil
		}
	}
}

// catchUp archives one log after the other, up to where the server was. again is true if it went on meanwhile.
func (w *work) catchUp(ctx context.Context, st serverState, seen time.Time) (again bool, err error) {
	at, err := w.place(st)
	if err != nil {
		return false, err
	}
	for _, log := range st.Logs[at : len(st.Logs)-1] {
		archived, err := w.sealed(ctx, log)
		if err != nil {
			return false, err
		}
		w.next = st.Logs[slices.Index(st.Logs, log)+1]
		if archived {
			w.onward(st)
		}
	}
	held := w.ledger.held(st.Log)
	if st.Position > held.To && w.ledger.inTheWay(w.part(st.Log, held.To)) {
		return false, failf(Reason(bucket.NoDeleteRight), "what follows in binary log %s cannot be archived before the server has ended that log: a manifest that cannot be read is in its "+
			"place at %d, and stays; allow the credentials to delete, or remove that object", st.Log, held.To)
	}
	if st.Position < held.To {
		return false, failf(LogsReset, "binary log %s ends at %d, and %d of it are archived: the server's binary logs were reset; %s", st.Log, st.Position, held.To,
			resetRemedy)
	}
	if st.Position == held.To {
		return false, w.beat(ctx, st, seen)
	}
	return w.segment(ctx, st.Log, held, seen)
}

// place is where the next log is among those of the server. One that is gone was purged before it was archived: the next one goes on, and says
// by its own beginning what is missing.
func (w *work) place(st serverState) (int, error) {
	want := archive.Number(w.next)
	if archive.Number(st.Log) < want {
		return 0, failf(LogsReset, "the server writes binary log %s, and %s was next: its binary logs were reset; %s", st.Log, w.next, resetRemedy)
	}
	for i, log := range st.Logs {
		if archive.Number(log) >= want {
			if log != w.next {
				w.p.log.Error("binary logs were purged before they were archived", "wanted", w.next, "first", log)
				w.next = log
			}
			return i, nil
		}
	}
	return len(st.Logs) - 1, nil
}

// beat says that nothing was written beyond what is archived.
func (w *work) beat(ctx context.Context, st serverState, seen time.Time) error {
	h := archive.Heartbeat{Epoch: w.epoch, Site: w.p.config.Site, ServerUUID: w.uuid, At: seen, GTIDExecuted: st.Executed.String()}
	if err := w.mayWrite(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	if err := w.archive.PutHeartbeat(ctx, h); err != nil {
		return err
	}
	w.ledger.beat(h)
	return nil
}

// tellEvery is how often it is told how far the archive is while there is much to archive.
const tellEvery = 5 * time.Second

// onward says in the middle of a round that the archive grows: a round may take hours, and what was said before is of before.
func (w *work) onward(st serverState) {
	now := w.p.now()
	if w.p.board.get().State == wire.ArchiverArchiving && now.Sub(w.told) < tellEvery {
		return
	}
	w.told = now
	w.tell(st)
	w.p.report(wire.ArchiverArchiving, nil)
}

// tell puts down how far it came.
func (w *work) tell(st serverState) {
	l := w.ledger.listing()
	w.p.board.tell(l, archive.History(l))
	pending := int64(0)
	for i, log := range st.Logs {
		if archive.Number(log) < archive.Number(w.next) {
			continue
		}
		if held := w.ledger.held(log); !held.Sealed {
			pending += max(0, st.Bytes[i]-held.To)
		}
	}
	held := w.ledger.held(st.Log)
	w.p.board.set(func(s *wire.ArchiverStatus) { s.Log, s.Position, s.PendingBytes = st.Log, held.To, pending })
}
