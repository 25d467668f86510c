// SPDX-License-Identifier: Apache-2.0

// Package journal is what a test writer remembers: every attempt to commit a row, with the time it took on the
// machine's monotonic clock. All nodes of the lab share one machine and so one such clock, which makes the times of
// different writers comparable. From several journals follows what the tests are about: whether two sites ever
// accepted commits at the same time, how long nobody could write, and which acknowledged rows are missing.
//
// The journal is a stream of JSON lines. It does no I/O beyond the reader and writer it is given.
package journal

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kind is what a line tells.
type Kind string

// The kinds of lines.
const (
	// KindStart is the first line: who writes, and both clocks at one moment.
	KindStart Kind = "start"
	// KindConn is a new connection of a worker and the server it reached.
	KindConn Kind = "conn"
	// KindAck is a row whose commit the server acknowledged.
	KindAck Kind = "ack"
	// KindUnknown is a row that was sent and whose outcome the writer never learned.
	KindUnknown Kind = "unknown"
	// KindState is the first refusal after something else: from then on the worker is refused for this reason. While it
	// lasts another one comes once a second, so that who reads along sees that the worker still tries.
	KindState Kind = "state"
	// KindLost is a session's write that was acknowledged, and of which nothing or something older was found later.
	KindLost Kind = "lost"
	// KindEnd is the last line; a journal without it is not whole.
	KindEnd Kind = "end"
)

// Entry is one line. Times are nanoseconds of CLOCK_MONOTONIC.
type Entry struct {
	Kind   Kind  `json:"k"`
	Worker int   `json:"w"`
	Seq    int64 `json:"n,omitempty"`
	Start  int64 `json:"s,omitempty"`
	At     int64 `json:"t"`

	// ID and Wall belong to the start line, Server, Host and Site to connections.
	ID     string    `json:"id,omitempty"`
	Wall   time.Time `json:"wall,omitempty,omitzero"`
	Server string    `json:"server,omitempty"`
	Host   string    `json:"host,omitempty"`
	Site   string    `json:"site,omitempty"`
	Reason string    `json:"e,omitempty"`

	// Totals of the end line, against which a reader checks that no line was lost on the way.
	Acked    int64            `json:"acked,omitempty"`
	Unknowns int64            `json:"unknowns,omitempty"`
	Losses   int64            `json:"losses,omitempty"`
	Refused  map[string]int64 `json:"refused,omitempty"`
}

// Writer writes entries and counts them. It is safe for use by many workers.
type Writer struct {
	mu      sync.Mutex
	out     *json.Encoder
	acked   int64
	unknown int64
	lost    int64
	refused map[string]int64
	states  map[int]told
	err     error
}

// told is the last refusal of a worker that got a line, and when.
type told struct {
	reason string
	at     time.Duration
}

// tellAgain is when a refusal that goes on gets another line.
const tellAgain = time.Second

// NewWriter starts a journal.
func NewWriter(out io.Writer, id string, at time.Duration, wall time.Time) *Writer {
	w := &Writer{out: json.NewEncoder(out), refused: map[string]int64{}, states: map[int]told{}}
	w.put(Entry{Kind: KindStart, ID: id, At: int64(at), Wall: wall})
	return w
}

// put keeps the first error: a writer that cannot remember must stop, and Err tells it so.
func (w *Writer) put(e Entry) {
	if err := w.out.Encode(e); err != nil && w.err == nil {
		w.err = fmt.Errorf("write journal: %w", err)
	}
}

// Err is the first error of writing.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Conn notes which server a worker reached.
func (w *Writer) Conn(worker int, at time.Duration, server Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(Entry{Kind: KindConn, Worker: worker, At: int64(at), Server: server.UUID, Host: server.Host, Site: server.Site})
}

// Ack notes an acknowledged row.
func (w *Writer) Ack(worker int, seq int64, start, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked++
	delete(w.states, worker)
	w.put(Entry{Kind: KindAck, Worker: worker, Seq: seq, Start: int64(start), At: int64(at)})
}

// Unknown notes a row that may or may not have been committed.
func (w *Writer) Unknown(worker int, seq int64, start, at time.Duration, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unknown++
	delete(w.states, worker)
	w.put(Entry{Kind: KindUnknown, Worker: worker, Seq: seq, Start: int64(start), At: int64(at), Reason: reason})
}

// Refused counts an attempt that certainly committed nothing. Of a row of equal refusals only the first gets a line, and
// then one in a second, because a writer at a fenced site is refused for minutes.
func (w *Writer) Refused(worker int, at time.Duration, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[reason]++
	if last := w.states[worker]; last.reason == reason && at < last.at+tellAgain {
		return
	}
	w.states[worker] = told{reason: reason, at: at}
	w.put(Entry{Kind: KindState, Worker: worker, At: int64(at), Reason: reason})
}

// Lost notes a write that was acknowledged and is not there any more, and what was found in its place.
func (w *Writer) Lost(worker int, seq int64, at time.Duration, found string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost++
	w.put(Entry{Kind: KindLost, Worker: worker, Seq: seq, At: int64(at), Reason: found})
}

// End closes the journal with its totals.
func (w *Writer) End(at time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(Entry{Kind: KindEnd, At: int64(at), Acked: w.acked, Unknowns: w.unknown, Losses: w.lost, Refused: w.refused})
	return w.err
}
