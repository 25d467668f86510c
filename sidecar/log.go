// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	// logLines is how many lines may wait for whoever reads the container's output.
	logLines = 1024
	// logFlush is how long the end of the program waits for them.
	logFlush = 500 * time.Millisecond
)

// logPipe hands lines to a writer that may block, and never blocks itself: the output of a container is a pipe, and when
// its reader stands still, a log line must not stand before a fence. Lines that find no room are counted.
type logPipe struct {
	out     io.Writer
	lines   chan []byte
	dropped atomic.Int64
	end     chan struct{}
	done    chan struct{}
}

func newLogPipe(out io.Writer) *logPipe {
	p := &logPipe{out: out, lines: make(chan []byte, logLines), end: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// Write takes a line. It always succeeds, because nobody who logs may depend on it.
func (p *logPipe) Write(line []byte) (int, error) {
	select {
	case p.lines <- append([]byte(nil), line...):
	default:
		p.dropped.Add(1)
	}
	return len(line), nil
}

func (p *logPipe) run() {
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

func (p *logPipe) write(line []byte) {
	if n := p.dropped.Swap(0); n > 0 {
		_, _ = fmt.Fprintf(p.out, "{\"level\":\"WARN\",\"msg\":\"log lines were dropped because nobody read them\",\"lines\":%d}\n", n)
	}
	_, _ = p.out.Write(line)
}

// Close waits a short while until what was written before is out. Goroutines that still run may go on writing; nobody
// reads that any more.
func (p *logPipe) Close() {
	close(p.end)
	select {
	case <-p.done:
	case <-time.After(logFlush):
	}
}
