// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"sync"
	"unicode/utf8"

	"github.com/mysql-mfg/mfg/api/wire"
)

// glances lets all requests for a report at one time share one look at MySQL. There are two connections for looks, and one is for
// the loop: hundreds of strangers that ask for a report must not keep the loop or the operator from its look.
type glances struct {
	mu   sync.Mutex
	busy bool
	next *glance
}

// glance is one look that begins after all requests that wait for it.
type glance struct {
	done    chan struct{}
	current bool
}

// join returns the look that begins next, never the one under way: that may have begun before the fence that a report is about.
func (g *glances) join(spawn func(func()), look func() bool) *glance {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.next = &glance{done: make(chan struct{})}
	}
	if !g.busy {
		g.busy = true
		spawn(func() { g.serve(look) })
	}
	return g.next
}

// serve looks until no request waits.
func (g *glances) serve(look func() bool) {
	for {
		g.mu.Lock()
		now := g.next
		g.next, g.busy = nil, now != nil
		g.mu.Unlock()
		if now == nil {
			return
		}
		now.current = look()
		close(now.done)
	}
}

// maxReportText bounds each text in a report, in bytes: no message of MySQL or of the kernel is longer.
const maxReportText = 2 << 10

// bounded makes a report fit into what the operator reads. What it leaves out claims nothing.
func bounded(r wire.Report) wire.Report {
	r.Message = shortened(r.Message)
	if r.Keyring != nil {
		k := *r.Keyring
		k.Trouble = shortened(k.Trouble)
		r.Keyring = &k
	}
	if r.Certificate != nil {
		c := *r.Certificate
		c.Problem = shortened(c.Problem)
		r.Certificate = &c
	}
	if raw, err := json.Marshal(r); err != nil || len(raw) < wire.MaxReportBytes {
		return r
	}
	r.GTIDExecuted = wire.GTIDTooLong
	return r
}

// shortened cuts a text between two characters.
func shortened(text string) string {
	if len(text) <= maxReportText {
		return text
	}
	end := maxReportText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
