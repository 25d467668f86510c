// SPDX-License-Identifier: Apache-2.0

// Package session is the witness of the cache store: sessions that are written, read back, and looked for again after every change of
// the server. Each worker is one session of Slots keys; a key's value is the number of the write, which only grows. A key that is gone,
// or older than what was acknowledged, is lost, and told once.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/e2e/resp"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// Slots is how many keys a session has: at 25 writes a second, what it wrote in the last ten seconds.
const Slots = 256

// Store is the cache behind an address.
type Store struct {
	Dialer resp.Dialer
	// Writer names this writer in the keys.
	Writer string
	// Lost hears of each key that is lost.
	Lost func(worker int, seq int64, found string)

	mu    sync.Mutex
	acked map[int]*[Slots]int64
}

// Connect opens a connection and asks who is there.
func (s *Store) Connect(ctx context.Context, address string) (load.Conn, error) {
	client, err := s.Dialer.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, classify(err)
	}
	server, err := identify(client)
	if err != nil {
		return nil, errors.Join(classify(err), client.Close())
	}
	return &conn{store: s, client: client, server: server}, nil
}

// identify names a server by its process, which a change of roles does not change.
func identify(client *resp.Client) (journal.Server, error) {
	v, err := client.Do("INFO")
	if err != nil {
		return journal.Server{}, err
	}
	f := resp.Section(v.Text)
	run := cmp.Or(f["run_id"], f["lab_run_id"]) // the stand-in for Dragonfly has only the second
	if run == "" {
		run = f["master_replid"]
	}
	if run == "" {
		return journal.Server{}, errors.New("INFO names no run_id")
	}
	return journal.Server{UUID: run, Host: f["role"], Site: run[:min(8, len(run))]}, nil
}

// key is where a session keeps one of its values.
func (s *Store) key(worker, slot int) string {
	return "session:" + s.Writer + ":" + strconv.Itoa(worker) + ":" + strconv.Itoa(slot)
}

// known is what was acknowledged to a worker. Only that worker uses it.
func (s *Store) known(worker int) *[Slots]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acked == nil {
		s.acked = map[int]*[Slots]int64{}
	}
	if s.acked[worker] == nil {
		s.acked[worker] = &[Slots]int64{}
	}
	return s.acked[worker]
}

// missing are the indexes of the slots that hold less than what was acknowledged.
func (s *Store) missing(worker int, slots []int, values []resp.Value) []int {
	known := s.known(worker)
	var at []int
	for i, slot := range slots {
		// One that is newer was sent, and its answer got lost.
		if number(values[i]) < known[slot] {
			at = append(at, i)
		}
	}
	return at
}

func number(v resp.Value) int64 {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		return 0 // nothing, or nothing of ours
	}
	return n
}

// read looks whether a session is still there.
func (s *Store) read(client *resp.Client, worker int, slots []int) error {
	args := []string{"MGET"}
	for _, slot := range slots {
		args = append(args, s.key(worker, slot))
	}
	v, err := client.Do(args...)
	if err != nil {
		return err
	}
	if len(v.Items) != len(slots) {
		return fmt.Errorf("MGET answers %d values for %d keys", len(v.Items), len(slots))
	}
	lost := s.missing(worker, slots, v.Items)
	if len(lost) == 0 {
		return nil
	}
	// A replica may be on its way to what the master has. Only a master without it has lost it.
	server, err := identify(client)
	if err != nil {
		return err
	}
	if server.Host != "master" {
		return resp.Error("READONLY this is a replica")
	}
	known := s.known(worker)
	for _, i := range lost {
		found := "nothing"
		if !v.Items[i].Null {
			found = fmt.Sprintf("%.20q", v.Items[i].Text)
		}
		s.Lost(worker, known[slots[i]], found)
		known[slots[i]] = number(v.Items[i])
	}
	return nil
}

// Check looks for all sessions at the end, and returns how many there are.
func (s *Store) Check(ctx context.Context, address string) (int, error) {
	client, err := s.Dialer.Dial(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	s.mu.Lock()
	workers := len(s.acked)
	s.mu.Unlock()
	for worker := range workers {
		if err := s.read(client, worker, all()); err != nil {
			return 0, err
		}
	}
	return workers, nil
}

func all() []int {
	slots := make([]int, Slots)
	for i := range slots {
		slots[i] = i
	}
	return slots
}

// conn is one connection of one worker.
type conn struct {
	store  *Store
	client *resp.Client
	server journal.Server
	// looked is true once the session was looked for on this connection, last the slot that was written last.
	looked bool
	last   int
	sent   time.Duration
}

func (c *conn) Server() journal.Server { return c.server }

// Sent is when the last write was sent: what comes before it on this connection only reads.
func (c *conn) Sent() time.Duration { return c.sent }

func (c *conn) Close() error { return c.client.Close() }

// Insert looks for what was written before and writes the next value.
func (c *conn) Insert(row load.Row) error {
	slots := []int{c.last}
	if !c.looked {
		slots = all()
	}
	if err := c.store.read(c.client, row.Worker, slots); err != nil {
		// Nothing was written, whatever became of the reading.
		return load.Refusal{Reason: reason(err), Gone: true}
	}
	c.looked = true
	c.last = int(row.Seq % Slots)
	c.sent = load.Now()
	if _, err := c.client.Do("SET", c.store.key(row.Worker, c.last), strconv.FormatInt(row.Seq, 10)); err != nil {
		return classify(err)
	}
	c.store.known(row.Worker)[c.last] = row.Seq
	return nil
}

// refusals are errors with which a server says that it wrote nothing.
var refusals = []string{"READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "OOM", "NOAUTH", "WRONGPASS", "NOPERM", "MISCONF", "REDIRECT", "BUSY"}

// classify makes a refusal of what certainly wrote nothing. A client that is refused connects again: the address may lead elsewhere.
func classify(err error) error {
	var told resp.Error
	if errors.As(err, &told) && slices.Contains(refusals, told.Code()) {
		return load.Refusal{Reason: told.Code(), Gone: true}
	}
	return err
}

func reason(err error) string {
	var told resp.Error
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &told):
		return told.Code()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection lost"
	}
	return err.Error()
}
