// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"sync"
)

// Runner runs long work outside the reconciles and the poll loops. It keeps no state: work that was cut off is derived again
// from what the servers say.
type Runner struct {
	mu      sync.Mutex
	base    context.Context
	running sync.WaitGroup
}

// NeedLeaderElection is true: two operators must never do such work at once.
func (p *Runner) NeedLeaderElection() bool { return true }

// Lead lets work run until ctx ends.
func (p *Runner) Lead(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = ctx
}

// Start lets work run until ctx ends, and waits for it.
func (p *Runner) Start(ctx context.Context) error {
	p.Lead(ctx)
	<-ctx.Done()
	p.running.Wait()
	return nil
}

// Begin runs do if admit lets it begin. The context of do ends when this process stops leading, or when the function that admit got is called.
func (p *Runner) Begin(admit func(context.CancelFunc) bool, do func(context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base == nil || p.base.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.base)
	if !admit(cancel) {
		cancel()
		return
	}
	p.running.Go(func() {
		defer cancel()
		do(ctx)
	})
}

// Wait waits for all running work.
func (p *Runner) Wait() { p.running.Wait() }
