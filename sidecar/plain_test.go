// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// PlainClients is not what those tests are about.
func (f *fakeCertificateServer) PlainClients(context.Context) (int, error) { return 0, f.err }

// countingServer has so many clients without TLS.
type countingServer struct {
	fakeCertificateServer
	clients int
	err     error
}

func (c *countingServer) PlainClients(context.Context) (int, error) { return c.clients, c.err }

// TestQuietIsWhatWasSeen: only looks without a client, each soon after the one before, add up to a time without clients.
func TestQuietIsWhatWasSeen(t *testing.T) {
	start := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var p plainClients
	s := &countingServer{}
	for _, step := range []struct {
		why     string
		at      time.Duration
		clients int
		err     error
		quiet   time.Duration
		unknown bool
	}{
		{why: "the first look sees only what is", at: 0, quiet: 0},
		{why: "nobody since", at: 5 * time.Second, quiet: 5 * time.Second},
		{why: "the server does not answer", at: 10 * time.Second, err: errors.New("away"), unknown: true},
		{why: "it was away for a moment", at: 15 * time.Second, quiet: 15 * time.Second},
		{why: "one client", at: 20 * time.Second, clients: 1, quiet: 0},
		{why: "it is gone", at: 25 * time.Second, quiet: 5 * time.Second},
		{why: "nobody has looked for a minute", at: 85 * time.Second, quiet: 0},
		{why: "the clock was set back", at: 60 * time.Second, quiet: 0},
		{why: "and goes on", at: 65 * time.Second, quiet: 5 * time.Second},
	} {
		s.clients, s.err = step.clients, step.err
		got := p.look(t.Context(), s, start.Add(step.at))
		switch {
		case step.unknown:
			if got != nil {
				t.Errorf("%s: %+v", step.why, got)
			}
		case got == nil || got.Connections != step.clients || got.Quiet() != step.quiet:
			t.Errorf("%s: %+v, want %d clients and quiet for %s", step.why, got, step.clients, step.quiet)
		}
	}
}

// TestTheReportCountsClients: with each look, beside the certificate.
func TestTheReportCountsClients(t *testing.T) {
	s := &countingServer{clients: 3}
	c := &certificate{dir: t.TempDir(), server: s, now: time.Now, log: slog.New(slog.DiscardHandler)}
	c.step(t.Context())
	if got := c.Report().Plain; got == nil || got.Connections != 3 {
		t.Errorf("report %+v", got)
	}
	s.err = errors.New("away")
	c.step(t.Context())
	if got := c.Report().Plain; got != nil {
		t.Errorf("what is not known passes for known: %+v", got)
	}
}
