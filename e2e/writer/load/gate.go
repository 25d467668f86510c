// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"sync"
	"time"
)

// probers is how many workers look for a server at the same time while there is none. Two, so that one whose packets
// vanish does not hold up the news that the other gets.
const probers = 2

// gate keeps the workers of a writer from besieging a server that refuses them: on a small machine a handshake of every
// worker every few milliseconds would slow down the very promotion that they wait for. While the last attempt failed
// only the probers try, each a step after its last failure; the first row that is accepted lets everybody in at once.
// So a worker waits for a step of one prober and for nothing else.
type gate struct {
	step  time.Duration
	turns chan struct{}

	mu   sync.Mutex
	open bool
}

func newGate(step time.Duration) *gate {
	return &gate{step: step, turns: make(chan struct{}, probers), open: true}
}

// enter waits until the worker may try to connect, and tells whether it holds a prober's turn.
func (g *gate) enter(ctx context.Context) bool {
	if g.isOpen() {
		return false
	}
	select {
	case g.turns <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if g.isOpen() {
		<-g.turns
		return false
	}
	return true
}

// leave takes what came of the try that followed enter: true if a row was accepted.
func (g *gate) leave(ctx context.Context, held, accepted bool) {
	g.set(accepted)
	if !held {
		return
	}
	if !accepted {
		sleep(ctx, g.step)
	}
	<-g.turns
}

func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = open
}
