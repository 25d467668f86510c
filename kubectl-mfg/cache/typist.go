// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// askedFor is the end of the client's question for the password.
	askedFor = "password: "
	// mostAsked is how much a client may say before it asks for the password, in bytes, and askWithin how long it may take. A client
	// that goes beyond either does not ask: the person sees what it says, and types.
	mostAsked = 8 << 10
	askWithin = 10 * time.Second
	// whereIs asks a terminal where its cursor is. That is how the client finds the width of a terminal without a known size:
	// at the left edge first, then at the right one.
	whereIs = "\x1b[6n"
)

// edges are the answers to whereIs, of a terminal with 80 columns.
var edges = []string{"\x1b[1;1R", "\x1b[1;80R"}

// typist is the keyboard of a client that asks for a password: it types that once the client has asked, when the terminal no longer
// echoes, and then passes on the person's keys. The screen does not show what the client shows of the typing.
type typist struct {
	in       io.Reader
	out      io.Writer
	password string
	// typed is what the typist types for the person; closed once the person types.
	typed chan string
	rest  string
	timer *time.Timer

	mu       sync.Mutex
	heard    []byte // what the client said but the screen did not show
	hidden   bool   // what it says is kept off the screen
	answered int    // of edges
	asked    bool
	over     bool // the person types
}

func newTypist(in io.Reader, out io.Writer, password string) *typist {
	t := &typist{in: in, out: out, password: password + "\r", typed: make(chan string, len(edges)+1), hidden: true}
	t.timer = time.AfterFunc(askWithin, t.giveUp)
	return t
}

// Read returns what is typed: by the typist first, then by the person.
func (t *typist) Read(p []byte) (int, error) {
	if t.rest == "" {
		t.rest = <-t.typed // "" once it is closed
	}
	if t.rest == "" {
		return t.in.Read(p)
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Write takes what the client shows. It holds back the question and the line of its answer, and shows what comes after them; if the
// client says something else instead, it shows all of it.
func (t *typist) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hidden {
		return t.out.Write(p)
	}
	t.heard = append(t.heard, p...)
	if !t.asked {
		t.hear()
	}
	if !t.asked {
		if len(t.heard) > mostAsked {
			return len(p), t.show()
		}
		return len(p), nil
	}
	_, after, ended := bytes.Cut(t.heard, []byte("\n"))
	if !ended {
		t.heard = nil
		return len(p), nil
	}
	t.heard = after
	return len(p), t.show()
}

// hear answers what the client asks the terminal, and types the password once it asks for that.
func (t *typist) hear() {
	before, after, asked := bytes.Cut(t.heard, []byte(askedFor))
	for n := bytes.Count(before, []byte(whereIs)); t.answered < min(n, len(edges)); t.answered++ {
		t.typed <- edges[t.answered]
	}
	if asked && !t.over {
		t.asked, t.heard = true, after
		t.typed <- t.password
		t.handOver()
	}
}

// handOver lets the person type.
func (t *typist) handOver() {
	if !t.over {
		t.over = true
		t.timer.Stop()
		close(t.typed)
	}
}

// show stops holding back.
func (t *typist) show() error {
	t.handOver()
	t.hidden = false
	_, err := t.out.Write(t.heard)
	t.heard = nil
	return err
}

// giveUp shows what was held back of a client that does not ask, or has ended: it says why.
func (t *typist) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hidden {
		_ = t.show()
	}
}
