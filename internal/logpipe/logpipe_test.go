// SPDX-License-Identifier: Apache-2.0

package logpipe

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// I4: nobody reads the container's output, and the pipe is full. What logs must go on, because a fence comes after it.
func TestALogThatNobodyReadsHoldsNothingUpI4(t *testing.T) {
	r, w := io.Pipe() // blocks until it is read
	pipe := New(w)
	log := slog.New(slog.NewJSONHandler(pipe, nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 3 * logLines {
			log.Warn("fencing MySQL", "i", i)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a log line waits for a reader")
	}
	var read bytes.Buffer
	go func() { _, _ = io.Copy(&read, r) }()
	pipe.Close()
	_ = w.Close()
	_ = r.Close()
}

// What fits is written in order, what was dropped is counted, and the end waits for what is left.
func TestLogLinesAreWrittenInOrder(t *testing.T) {
	gate := &gatedWriter{open: make(chan struct{})}
	pipe := New(gate)
	for range logLines + 10 {
		if n, err := pipe.Write([]byte("line\n")); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	close(gate.open)
	_, _ = pipe.Write([]byte("last\n"))
	pipe.Close()
	text := gate.buf.String()
	if !strings.Contains(text, "log lines were dropped") || strings.Count(text, "line\n") < logLines {
		t.Errorf("%d lines, and:\n%.300s", strings.Count(text, "line\n"), text)
	}
}

type gatedWriter struct {
	open chan struct{}
	buf  bytes.Buffer
}

func (g *gatedWriter) Write(p []byte) (int, error) {
	<-g.open
	return g.buf.Write(p)
}
