// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// pitrLoad is a load that goes on until it is stopped, and knows afterwards how many rows were acknowledged between any two moments.
type pitrLoad struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	db      *sql.DB
	writers []pitrWriter
	failed  atomic.Int64
}

// pitrWriter is one connection.
type pitrWriter struct {
	mu    sync.Mutex
	marks []commitMark
}

// commitMark is one row that was acknowledged.
type commitMark struct {
	at   time.Time
	took float32 // seconds
}

// startLoad has so many connections write rows that do not compress to the active site. With a pause of zero each sends its next row once the last
// one is acknowledged; else one is due after each pause.
func (p *pitrBench) startLoad(ctx context.Context, connections int, pause time.Duration) (*pitrLoad, error) {
	db, err := p.group.Dial(ctx, p.active)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(connections)
	db.SetMaxOpenConns(connections)
	ctx, cancel := context.WithCancel(ctx)
	l := &pitrLoad{cancel: cancel, db: db, writers: make([]pitrWriter, connections)}
	insert, err := db.PrepareContext(ctx, "INSERT INTO "+loadTable+" (payload) VALUES (?)")
	if err != nil {
		cancel()
		return nil, errors.Join(err, db.Close())
	}
	for i := range l.writers {
		l.running.Go(func() { l.write(ctx, &l.writers[i], insert, pause) })
	}
	return l, nil
}

func (l *pitrLoad) write(ctx context.Context, w *pitrWriter, insert *sql.Stmt, pause time.Duration) {
	payload := make([]byte, pitrRowBytes)
	for due := time.Now(); ctx.Err() == nil; due = due.Add(pause) {
		if pause > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(due)):
			}
		}
		_, _ = rand.Read(payload)
		sent := time.Now()
		if _, err := insert.ExecContext(ctx, payload); err != nil {
			if ctx.Err() == nil {
				l.failed.Add(1)
				time.Sleep(100 * time.Millisecond)
			}
			continue
		}
		now := time.Now()
		w.mu.Lock()
		w.marks = append(w.marks, commitMark{at: now, took: float32(now.Sub(sent).Seconds())})
		w.mu.Unlock()
	}
}

// between is how many rows a second were acknowledged between two moments, and how long one took at most, but for one in a hundred.
func (l *pitrLoad) between(from, until time.Time) (perSecond, p99 float64) {
	var took []float64
	for i := range l.writers {
		w := &l.writers[i]
		w.mu.Lock()
		for j := len(w.marks) - 1; j >= 0 && !w.marks[j].at.Before(from); j-- {
			if w.marks[j].at.Before(until) {
				took = append(took, float64(w.marks[j].took))
			}
		}
		w.mu.Unlock()
	}
	return round(float64(len(took)) / until.Sub(from).Seconds()), round(percentile(took, 99))
}

// stop ends the load, and says how many rows were refused or not answered. It may be called again.
func (l *pitrLoad) stop() int64 {
	l.cancel()
	l.running.Wait()
	_ = l.db.Close()
	return l.failed.Load()
}
