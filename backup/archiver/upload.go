// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const (
	// uploadTimeout bounds a small object, and for how long a large one may not come further: a storage that takes nothing is as good as away.
	uploadTimeout = 2 * time.Minute
	// See Program.
	rateMax    = 128 << 20
	rateBeside = 32 << 20
	// gathered is how much of the events goes on at a time.
	gathered = 64 << 10
)

// sealed archives a log that the server writes no more. archived is false if it was there already.
func (w *work) sealed(ctx context.Context, log string) (archived bool, err error) {
	held := w.ledger.held(log)
	if held.Sealed {
		return false, nil
	}
	switch file, free := w.fileFor(log, held.To); {
	case !free:
		w.p.log.Error("a binary log cannot be archived: manifests that cannot be read are in its place, and stay", "file", log)
		return false, nil
	case file.Sealed:
		return true, w.whole(ctx, log, w.p.rate)
	}
	// Its end first, which is what somebody may wait for. The janitor makes one file of it.
	ended, err := w.segment(ctx, log, held, time.Time{})
	w.janitor.nudge()
	if err == nil && !ended {
		// What another attempt wrote may end before the log does: the next round looks, and does not go past the log before it has all of it.
		err = failf(Other, "another attempt has archived what follows in binary log %s at %d; the rest of it comes next", log, held.To)
	}
	return true, err
}

// part is what follows in a log from a position on, and all is all of it.
func (w *work) part(log string, from int64) archive.LogManifest {
	m := w.folder()
	m.Log, m.From = log, from
	return m
}

func (w *work) all(log string) archive.LogManifest {
	m := w.part(log, 0)
	m.Sealed = true
	return m
}

// fileFor is what brings a sealed log into the archive that is there up to a position: the rest of it or, if it was never seen open, as after a takeover, all
// of it. It is the other one if a manifest that cannot be read is in the way and stays; free is false if one is in the way of both.
func (w *work) fileFor(log string, to int64) (m archive.LogManifest, free bool) {
	one, other := w.part(log, to), w.all(log)
	if to == 0 {
		one, other = other, one
	}
	if w.ledger.inTheWay(one) {
		return other, !w.ledger.inTheWay(other)
	}
	return one, true
}

// segment archives what is new in a log. again is true if the server went on to its next log meanwhile. seen is when the server was asked for
// the log's end; zero of a log that is sealed.
func (w *work) segment(ctx context.Context, log string, held archive.Held, seen time.Time) (again bool, err error) {
	return w.upload(ctx, upload{manifest: w.part(log, held.To), counter: archive.NewCounter(held.Previous.Union(held.Set), held.Checksums), rate: w.p.rate, seen: seen})
}

// whole archives a sealed log as one file.
func (w *work) whole(ctx context.Context, log string, rate int64) error {
	_, err := w.upload(ctx, upload{manifest: w.all(log), counter: archive.NewCounter(gtid.Set{}, false), rate: rate})
	return err
}

// upload is one file that goes up.
type upload struct {
	manifest archive.LogManifest
	counter  *archive.Counter
	rate     int64
	// seen is when the server was asked for the end of an open log; zero of one that is sealed, which must be read to its end.
	seen time.Time
}

// upload streams a part of a log into a file. ended is true if the server went on to its next log, and false of one that is sealed if another attempt was first.
func (w *work) upload(ctx context.Context, u upload) (ended bool, err error) {
	defer func() { err = w.counted(err) }()
	ctx, stalled := untilStalled(ctx)
	defer stalled.end()
	file, err := w.archive.Create(ctx, u.manifest, w.p.config.recipients)
	if err != nil {
		return false, cause(ctx, err)
	}
	defer file.Abort()
	// Events are small, and each call down there costs as much as hundreds of bytes.
	out := bufio.NewWriterSize(&throttled{to: file, rate: u.rate, ctx: ctx, moved: stalled.moved}, gathered)
	r, err := w.p.readOf(ctx, reading{log: u.manifest.Log, from: u.manifest.From, out: out, counter: u.counter})
	if err == nil {
		err = cause(ctx, out.Flush())
	}
	switch {
	case err != nil:
		return false, err
	case u.seen.IsZero() && !r.ended:
		return false, failf(LogUnreadable, "the server breaks off binary log %s at %d", u.manifest.Log, r.to)
	case file.Bytes() == 0:
		return r.ended, nil
	}
	content := u.counter.Content()
	content.SeenAt = u.seen
	if r.ended {
		content.SeenAt = seenAt(content, r.at, w.p.now())
	}
	stalled.moved()
	// I26: asked after the last byte was read, and before it counts.
	if err := w.mayWrite(ctx); err != nil {
		return false, err
	}
	l, err := file.Commit(ctx, content)
	if errors.Is(err, archive.ErrThere) {
		return r.ended && !u.seen.IsZero(), w.relist(ctx)
	}
	if err != nil {
		return false, cause(ctx, err)
	}
	w.ledger.add(l)
	w.p.board.set(func(s *wire.ArchiverStatus) {
		s.UploadsSucceeded++
		s.UploadedBytes += l.Object.Bytes
	})
	return r.ended, nil
}

// seenAt is until when a log is archived that the server writes no more: what it committed since is in its next log. Only the times of commits are the
// server's own. Those of events are the sessions', and anybody who may write may set them to anything (SET timestamp); they count only where there is no
// commit. Nothing is believed of the future, be it by them or by a clock that was wrong for a while: the archive would seem to reach as far.
func seenAt(c archive.Content, event, now time.Time) time.Time {
	at := event
	if c.LastCommit > 0 {
		at = time.UnixMicro(c.LastCommit)
	}
	if at.After(now) {
		return now
	}
	return at
}

// counted counts an upload that failed, unless it was ended.
func (w *work) counted(err error) error {
	if err != nil && !errors.Is(err, errTurnOver) && !errors.Is(err, context.Canceled) {
		w.p.board.set(func(s *wire.ArchiverStatus) { s.UploadsFailed++ })
	}
	return err
}

// relist takes in what is there now.
func (w *work) relist(ctx context.Context) error {
	before := w.ledger.count()
	l, err := w.archive.List(ctx)
	if err == nil {
		w.takeIn(before, l)
	}
	return err
}

// stall ends a context once nothing moved for uploadTimeout.
type stall struct {
	timer *time.Timer
	end   func()
}

func (s *stall) moved() { s.timer.Reset(uploadTimeout) }

func untilStalled(ctx context.Context) (context.Context, *stall) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(uploadTimeout, func() {
		cancel(failf(Reason(bucket.Unreachable), "the storage took nothing for %s", uploadTimeout))
	})
	return ctx, &stall{timer: timer, end: func() {
		timer.Stop()
		cancel(context.Canceled)
	}}
}

// throttled passes on no more than rate bytes in a second.
type throttled struct {
	to    io.Writer
	rate  int64
	ctx   context.Context //nolint:containedctx // that of the upload, which io.Writer cannot pass
	moved func()

	began time.Time
	bytes int64
}

// slice is how long a pause is at least: shorter ones are not worth it.
const slice = 20 * time.Millisecond

func (t *throttled) Write(p []byte) (int, error) {
	n, err := t.to.Write(p)
	t.moved()
	if t.began.IsZero() {
		t.began = time.Now()
	}
	t.bytes += int64(n)
	ahead := time.Duration(float64(t.bytes)/float64(t.rate)*float64(time.Second)) - time.Since(t.began)
	if err != nil || ahead < slice {
		return n, err
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-t.ctx.Done():
		return n, context.Cause(t.ctx)
	case <-timer.C:
		return n, nil
	}
}
