// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// askedFor ends the question of the client for the password.
const askedFor = "password: "

// mostAsked is how much a client may say before it asks for the password, in bytes. One that says more does not ask.
const mostAsked = 8 << 10

// typist is the keyboard of a client that asks for a password: it types that once the client has asked, by when the terminal does not
// echo any more, and hands over the person's keys after it. What the client shows of the typing is kept off the screen.
type typist struct {
	in       io.Reader
	out      io.Writer
	password io.Reader
	asked    chan struct{}
	once     sync.Once

	mu    sync.Mutex
	heard []byte // nil once what is shown is for the person
}

func newTypist(in io.Reader, out io.Writer, password string) *typist {
	return &typist{in: in, out: out, password: strings.NewReader(password + "\r"), asked: make(chan struct{}), heard: []byte{}}
}

// Read waits for the question, types the password, and then reads the person's keys.
func (t *typist) Read(p []byte) (int, error) {
	<-t.asked
	if n, err := t.password.Read(p); err == nil {
		return n, nil
	}
	return t.in.Read(p)
}

// close lets a Read go that still waits, where the client ended before it asked.
func (t *typist) close() { t.once.Do(func() { close(t.asked) }) }

// screen is where the client shows what it shows.
func (t *typist) screen() io.Writer { return typistScreen{t} }

type typistScreen struct{ t *typist }

// Write keeps the question and the line on which it is answered to itself, and shows what comes after them; all of it, if the client
// says something else instead.
func (s typistScreen) Write(p []byte) (int, error) {
	t := s.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard == nil {
		return t.out.Write(p)
	}
	t.heard = append(t.heard, p...)
	at := bytes.Index(t.heard, []byte(askedFor))
	if at < 0 {
		if len(t.heard) > mostAsked {
			return len(p), t.show(t.heard)
		}
		return len(p), nil
	}
	t.close()
	if end := bytes.IndexByte(t.heard[at:], '\n'); end >= 0 {
		return len(p), t.show(t.heard[at+end+1:])
	}
	return len(p), nil
}

// show ends the keeping back.
func (t *typist) show(rest []byte) error {
	t.heard = nil
	_, err := t.out.Write(rest)
	return err
}

// leave shows what was kept back of a client that ended without a question: it says why.
func (t *typist) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard != nil && !bytes.Contains(t.heard, []byte(askedFor)) {
		_ = t.show(t.heard)
	}
}
