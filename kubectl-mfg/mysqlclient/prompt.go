// SPDX-License-Identifier: Apache-2.0

package mysqlclient

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

const (
	// prompt is how the client asks for a password.
	prompt = "Enter password: "
	// promptWait is how long the client may take to ask. After that a person types: perhaps the client does not ask at all.
	promptWait = 10 * time.Second
	// hiddenBytes bounds how much of the answer to a password is hidden.
	hiddenBytes = 1 << 10
)

// answering types the password when the client asks for it, and only then: so it is in no command line, no environment and no
// file. Without a password it changes nothing.
func answering(ctx context.Context, e pods.Execution, password string) pods.Execution {
	if password == "" {
		return e
	}
	a := &answer{ctx: ctx, in: e.In, out: e.Out, password: password, asked: make(chan struct{}), wait: promptWait}
	e.In, e.Out = a, answerScreen{a}
	return e
}

// answer sits between a terminal and the client until the password is typed.
type answer struct {
	ctx      context.Context //nolint:containedctx // a Read has none of its own, and ends with the command
	in       io.Reader
	out      io.Writer
	password string
	wait     time.Duration

	mu    sync.Mutex
	asked chan struct{}
	state state
	// seen is the end of the client's output, as long as the prompt; hidden counts the bytes not shown.
	seen   []byte
	hidden int
	// typed is the part of the password that is still to be typed.
	typed *strings.Reader
}

// state of an answer.
type state int

const (
	waiting state = iota // for the prompt
	hiding               // the password is being typed; the terminal may still echo it
	open                 // everything passes
)

// Read types the password once the client has asked, then what the person types.
func (a *answer) Read(p []byte) (int, error) {
	if a.typed == nil {
		a.typed = strings.NewReader("")
		select {
		case <-a.asked:
			a.typed = strings.NewReader(a.password + "\n")
		case <-time.After(a.wait):
			a.giveUp()
		case <-a.ctx.Done():
			return 0, io.EOF
		}
	}
	if a.typed.Len() > 0 {
		return a.typed.Read(p)
	}
	return a.in.Read(p)
}

// giveUp leaves a late prompt to the person, who then types.
func (a *answer) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == waiting {
		a.state = open
		return
	}
	a.typed = strings.NewReader(a.password + "\n") // the prompt came just now
}

// answerScreen is what the client writes to.
type answerScreen struct{ a *answer }

// Write shows all except the echo of the typed password. The client turns the echo off only after it has asked, so the
// terminal may still show the password; it ends with the line.
func (s answerScreen) Write(p []byte) (int, error) {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	if shown := s.a.show(p); len(shown) > 0 {
		if _, err := s.a.out.Write(shown); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (a *answer) show(p []byte) []byte {
	switch a.state {
	case waiting:
		a.seen = append(a.seen, p...)
		a.seen = a.seen[max(0, len(a.seen)-len(prompt)):]
		if string(a.seen) != prompt {
			return p
		}
		a.state = hiding
		close(a.asked)
		return p
	case hiding:
		end := bytes.IndexByte(p, '\n')
		if a.hidden += len(p); end < 0 && a.hidden < hiddenBytes {
			return nil
		}
		a.state = open
		return append([]byte("\r\n"), p[end+1:]...)
	case open:
	}
	return p
}
