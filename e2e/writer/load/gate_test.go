// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// outage is a server that refuses everybody from one moment to another.
type outage struct {
	began    time.Time
	from, to time.Duration

	mu    sync.Mutex
	tries int
}

func (o *outage) away() bool {
	since := time.Since(o.began)
	return since >= o.from && since < o.to
}

func (o *outage) connect(context.Context, string) (Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away() {
		o.tries++
		return nil, Refusal{Reason: "3032", Gone: true}
	}
	return outageConn{o}, nil
}

type outageConn struct{ *outage }

func (c outageConn) Server() journal.Server { return journal.Server{Site: "east"} }
func (c outageConn) Close() error           { return nil }

func (c outageConn) Insert(Row) error {
	if c.away() {
		return errors.New("connection lost")
	}
	return nil
}

// through writes through an outage and returns when rows were acknowledged, by worker, and how often the server was asked
// in vain.
func through(t *testing.T, retry time.Duration) (acks map[int][]time.Duration, tries int) {
	t.Helper()
	acks = map[int][]time.Duration{}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := &outage{began: time.Now(), from: time.Second, to: 2 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		clock := journal.NewWriter(&out, "w", 0, began)
		err := Run(ctx, Config{
			Address: func() (string, error) { return "here", nil }, Connect: o.connect,
			Concurrency: 8, Rate: 200, Retry: retry,
		}, clock)
		if err != nil {
			t.Error(err)
		}
		tries = o.tries
		j, err := journal.Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range j.Commits {
			acks[c.Worker] = append(acks[c.Worker], c.Ack)
		}
	})
	return acks, tries
}

// The pause that a writer sees is that of the server, give or take a step, and not its own back-off.
func TestGateLetsEverybodyInAtOnce(t *testing.T) {
	acks, tries := through(t, 10*time.Millisecond)
	if len(acks) != 8 {
		t.Fatalf("%d workers got rows acknowledged, want 8", len(acks))
	}
	// The journal's clock is not that of the bubble, so what counts is how many attempts were made and that all came back.
	if tries < 100 || tries > 230 {
		t.Errorf("%d attempts in a second, want those of %d probers every 10 ms", tries, probers)
	}
	for n, all := range acks {
		if len(all) < 48 || len(all) > 54 {
			t.Errorf("worker %d got %d rows acknowledged in two seconds of 25 a second", n, len(all))
		}
	}
}

func TestGateLeavesNobodyBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(10 * time.Millisecond)
		g.set(false)
		ctx, cancel := context.WithCancel(t.Context())
		for range probers {
			if !g.enter(ctx) {
				t.Fatal("a prober found no turn")
			}
		}
		waited := make(chan bool)
		go func() { waited <- g.enter(ctx) }()
		synctest.Wait()
		select {
		case <-waited:
			t.Fatal("a third prober tries at the same time")
		default:
		}
		g.leave(ctx, true, true)
		if <-waited {
			t.Error("the gate is open, and a worker still holds a turn")
		}
		cancel()
		g.leave(ctx, true, false)
		if len(g.turns) != 0 {
			t.Errorf("%d turns are still taken", len(g.turns))
		}
	})
}
