// SPDX-License-Identifier: Apache-2.0

// Package terminal runs a program on a terminal that nobody sits at, by tmux: it reads the screen as a person would, types
// keys, and records what the program draws.
package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// castVersion is the version of the format asciicast that is written: docs.asciinema.org/manual/asciicast/v2.
const castVersion = 2

// Header is the first line of a recording.
type Header struct {
	Version   int    `json:"version"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Timestamp int64  `json:"timestamp,omitempty"`
	Title     string `json:"title,omitempty"`
	// IdleTimeLimit shortens waits in which nothing is drawn, in seconds, when it is played.
	IdleTimeLimit float64           `json:"idle_time_limit,omitempty"`
	Env           map[string]string `json:"env,omitempty"`
}

// Codes of events.
const (
	Output = "o"
	Marker = "m"
)

// Event is one further line: when, what, and the bytes.
type Event struct {
	Seconds    float64
	Code, Data string
}

// UnmarshalJSON reads the three from a list, as the format has it.
func (e *Event) UnmarshalJSON(raw []byte) error {
	fields := []any{&e.Seconds, &e.Code, &e.Data}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	if len(fields) != 3 {
		return fmt.Errorf("read event: %d fields, want 3", len(fields))
	}
	return nil
}

// Cast writes a recording. It is safe for concurrent use; the first error stays.
type Cast struct {
	mu    sync.Mutex
	w     io.Writer
	began time.Time
	last  float64
	// rest is the beginning of a character whose other bytes are not read yet.
	rest []byte
	err  error
}

// NewCast writes the header.
func NewCast(w io.Writer, h Header, began time.Time) *Cast {
	h.Version, h.Timestamp = castVersion, began.Unix()
	c := &Cast{w: w, began: began}
	c.line(h)
	return c
}

// Output adds what a program wrote. Events are text, so a character that is not whole waits for the rest of it.
func (c *Cast) Output(at time.Time, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Concat(c.rest, data)
	whole := len(all) - unfinished(all)
	c.rest = bytes.Clone(all[whole:])
	if whole > 0 {
		c.event(at, Output, string(all[:whole]))
	}
}

// Mark adds a chapter, which players show on their time line.
func (c *Cast) Mark(at time.Time, label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.event(at, Marker, label)
}

// Err is what kept the recording from being whole.
func (c *Cast) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// event is called with the lock held. Times never go back, in whatever order the lock was taken.
func (c *Cast) event(at time.Time, code, data string) {
	c.last = max(c.last, at.Sub(c.began).Seconds())
	c.line([]any{math.Round(c.last*1e6) / 1e6, code, data})
}

func (c *Cast) line(v any) {
	if c.err != nil {
		return
	}
	e := json.NewEncoder(c.w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		c.err = fmt.Errorf("write recording: %w", err)
	}
}

// unfinished is how many bytes at the end begin a character that they do not complete.
func unfinished(data []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(data)); n++ {
		if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// ReadCast reads a recording and checks its form.
func ReadCast(r io.Reader) (Header, []Event, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	var h Header
	if !lines.Scan() {
		return h, nil, errors.Join(errors.New("read recording: it is empty"), lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
		return h, nil, fmt.Errorf("read header: %w", err)
	}
	if h.Version != castVersion || h.Width <= 0 || h.Height <= 0 {
		return h, nil, fmt.Errorf("read header: version %d, %dx%d", h.Version, h.Width, h.Height)
	}
	var events []Event
	for last := 0.0; lines.Scan(); {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return h, events, fmt.Errorf("line %d: %w", len(events)+2, err)
		}
		if e.Seconds < last {
			return h, events, fmt.Errorf("line %d: time goes back from %v to %v", len(events)+2, last, e.Seconds)
		}
		last, events = e.Seconds, append(events, e)
	}
	return h, events, lines.Err()
}
