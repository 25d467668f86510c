// SPDX-License-Identifier: Apache-2.0

// Package load writes rows into MySQL, one per transaction, and journals the outcome of every single one. It must
// never count a commit twice or call one acknowledged that was not, so it speaks to the driver's connections directly:
// the pool of database/sql retries by itself.
package load

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// Config says what to write where.
type Config struct {
	// Address tells where to connect; it is asked before every connection because pods come back elsewhere.
	Address func() (string, error)
	// Connect opens a connection to an address.
	Connect func(ctx context.Context, address string) (Conn, error)

	// Site is the only site that this writer may write to, "" for any.
	Site string
	// Concurrency is the number of workers, each with a connection of its own.
	Concurrency int
	// Rate is how many rows all workers together commit a second while they are accepted, RefusedRate how many they
	// try while they are refused.
	Rate, RefusedRate float64
	// Retry, if set, is the step between two attempts to find a server that accepts rows, for all workers together (see
	// gate). Without it every worker tries for itself, every 20 to 50 ms.
	Retry time.Duration
	// Finish, if set, is done once all workers have ended, before the journal is closed.
	Finish func() error
}

// Conn is one connection to a server.
type Conn interface {
	Server() journal.Server
	// Insert commits one row. A Refusal as its error means for certain that nothing was committed.
	// It is bounded by the connection's own timeouts and by nothing else: an insert that is under way when the run
	// ends is still to be learned of.
	Insert(row Row) error
	Close() error
}

// Row is one row to insert.
type Row struct {
	Worker int
	Seq    int64
	Site   string
}

// Refusal is a server's word that it committed nothing.
type Refusal struct {
	Reason string
	// Gone is true if the connection is of no more use.
	Gone bool
}

func (r Refusal) Error() string { return "refused: " + r.Reason }

// Now is the machine's monotonic clock.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("read monotonic clock: %v", err)) // every Linux has it
	}
	return time.Duration(ts.Nano())
}

// Run writes until the context ends, then lets every insert under way come to its end, so that no outcome is left
// open without need.
func Run(ctx context.Context, cfg Config, j *journal.Writer) error {
	var wg sync.WaitGroup
	var shared *gate
	if cfg.Retry > 0 {
		shared = newGate(cfg.Retry)
	}
	for n := range cfg.Concurrency {
		w := &worker{n: n, cfg: cfg, journal: j, gate: shared}
		wg.Go(func() { w.run(ctx) })
	}
	wg.Wait()
	if err := j.Err(); err != nil {
		return err
	}
	if cfg.Finish != nil {
		if err := cfg.Finish(); err != nil {
			return err
		}
	}
	return j.End(Now())
}

type worker struct {
	n       int
	cfg     Config
	journal *journal.Writer
	gate    *gate // nil: every worker for itself
	conn    Conn
	seq     int64
}

func (w *worker) run(ctx context.Context) {
	defer w.disconnect()
	accepted := pace(w.cfg.Rate, w.cfg.Concurrency)
	refused := max(accepted, pace(w.cfg.RefusedRate, w.cfg.Concurrency))
	// The workers share the time between them, so that together they look more often than any one of them.
	sleep(ctx, time.Duration(w.n)*accepted/time.Duration(max(w.cfg.Concurrency, 1)))
	next := time.Now()
	for ctx.Err() == nil && w.journal.Err() == nil {
		began := time.Now()
		acked := w.try(ctx)
		switch {
		case acked:
			// By the clock and not by the pause: the rate holds however long a commit takes. A worker that fell behind
			// makes up for one row and not for all that it missed.
			if next = next.Add(accepted); time.Since(next) > accepted {
				next = time.Now().Add(-accepted)
			}
			sleep(ctx, time.Until(next))
			continue
		case w.conn != nil:
			sleep(ctx, refused-time.Since(began))
		case w.gate == nil:
			// Again at once, or nearly so: how soon a client gets through is what is measured.
			sleep(ctx, 20*time.Millisecond+rand.N(30*time.Millisecond))
		}
		next = time.Now()
	}
}

// try sends one row, over a new connection if there is none, and tells whether it was acknowledged.
func (w *worker) try(ctx context.Context) bool {
	held := false
	if w.conn == nil {
		if w.gate != nil {
			held = w.gate.enter(ctx)
		}
		w.connect(ctx)
	}
	acked := w.conn != nil && w.insert()
	if w.gate != nil {
		w.gate.leave(ctx, held, acked)
	}
	return acked
}

func (w *worker) connect(ctx context.Context) {
	address, err := w.cfg.Address()
	if err != nil {
		w.journal.Refused(w.n, Now(), "no address")
		return
	}
	conn, err := w.cfg.Connect(ctx, address)
	if err != nil {
		if ctx.Err() == nil {
			w.journal.Refused(w.n, Now(), reason(err))
		}
		return
	}
	if w.cfg.Site != "" && conn.Server().Site != w.cfg.Site {
		// An address can pass to another pod. This writer vouches for one site only.
		_ = conn.Close()
		w.journal.Refused(w.n, Now(), "other site")
		return
	}
	w.conn = conn
	w.journal.Conn(w.n, Now(), conn.Server())
}

// insert tries one row and tells whether it was acknowledged.
func (w *worker) insert() bool {
	w.seq++
	row := Row{Worker: w.n, Seq: w.seq, Site: w.conn.Server().Site}
	start := Now()
	err := w.conn.Insert(row)
	end := Now()
	if sender, ok := w.conn.(Sender); ok {
		start = max(start, sender.Sent())
	}
	var refusal Refusal
	switch {
	case err == nil:
		w.journal.Ack(w.n, row.Seq, start, end)
		return true
	case errors.As(err, &refusal):
		w.journal.Refused(w.n, end, refusal.Reason)
		// A pool behind the primary Service would look for a better server; a direct writer has only this one.
		if refusal.Gone || w.cfg.Site == "" {
			w.disconnect()
		}
	default:
		w.journal.Unknown(w.n, row.Seq, start, end, reason(err))
		w.disconnect()
	}
	return false
}

func (w *worker) disconnect() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// pace is the time between two attempts of one worker.
func pace(rate float64, workers int) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(workers) / rate * float64(time.Second))
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func reason(err error) string {
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal.Reason
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, unix.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return "unreachable"
	case errors.Is(err, driver.ErrBadConn):
		return "connection lost"
	case isTimeout(err):
		return "timeout"
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
