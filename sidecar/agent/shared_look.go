// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"sync"
	"unicode/utf8"

	"github.com/mysql-mfg/mfg/api/wire"
)

// glances lets all who ask for a report at once share one look at MySQL. There are two connections for looks, and one is for the
// loop: hundreds of strangers who ask for a report must not keep the loop, or the operator, from theirs.
type glances struct {
	mu   sync.Mutex
	busy bool
	next *glance
}

// glance is one look that began after everybody who waits for it had asked.
type glance struct {
	done    chan struct{}
	current bool
}

// join returns the look that begins next. Never the one under way: it may have begun before the fence that a report is to tell of.
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

// serve looks until nobody waits.
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

// Longest texts in a report: no message of MySQL's or of the kernel's is longer.
const maxReportText = 2 << 10

// bounded makes a report fit in what the operator reads. What is left out claims nothing.
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
