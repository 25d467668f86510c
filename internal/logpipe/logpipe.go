// SPDX-License-Identifier: Apache-2.0

// Package logpipe keeps a log from holding a program up. The output of a container is a pipe: if its reader stops reading,
// a write to it waits, and a waiting log line must not delay a fence or a failover.
package logpipe

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	// logLines is how many lines may wait for the reader of the container's output.
	logLines = 1024
	// logFlush is how long the end of the program waits for them.
	logFlush = 500 * time.Millisecond
)

// Pipe passes lines to a writer that may block, and never blocks itself. It drops and counts lines that find no room.
type Pipe struct {
	out     io.Writer
	lines   chan []byte
	dropped atomic.Int64
	end     chan struct{}
	done    chan struct{}
}

// New begins to pass lines to out.
func New(out io.Writer) *Pipe {
	p := &Pipe{out: out, lines: make(chan []byte, logLines), end: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// Write takes a line. It always succeeds, because no code that logs may depend on it.
func (p *Pipe) Write(line []byte) (int, error) {
	select {
	case p.lines <- append([]byte(nil), line...):
	default:
		p.dropped.Add(1)
	}
	return len(line), nil
}

func (p *Pipe) run() {
	defer close(p.done)
	for {
		select {
		case line := <-p.lines:
			p.write(line)
			continue
		default:
		}
		select {
		case line := <-p.lines:
			p.write(line)
		case <-p.end:
			return
		}
	}
}

func (p *Pipe) write(line []byte) {
	if n := p.dropped.Swap(0); n > 0 {
		_, _ = fmt.Fprintf(p.out, "{\"level\":\"WARN\",\"msg\":\"log lines were dropped because no one read them\",\"lines\":%d}\n", n)
	}
	_, _ = p.out.Write(line)
}

// Close waits a short while for the lines that were written before. Goroutines that still run may continue to write, but
// those lines go nowhere.
func (p *Pipe) Close() {
	close(p.end)
	select {
	case <-p.done:
	case <-time.After(logFlush):
	}
}
