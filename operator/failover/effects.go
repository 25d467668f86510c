// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Effect is one thing to do. The set is closed; each is bounded in time and may be repeated.
type Effect interface {
	fmt.Stringer
	effect()
}

// Announce pushes the present statement to every sidecar at once and waits for their reports within the fence's
// deadline, while the sites named in Fence are fenced by SQL too and Drain's relay log is applied. Nothing in it waits
// for anything else in it.
type Announce struct {
	Fence []string
	Drain string
}

// Drain stops the receiver of a site and waits until it has applied what it had received.
type Drain struct{ Site string }

// Detach ends a site's replication for good: STOP REPLICA, RESET REPLICA ALL. Only after its relay log was drained.
type Detach struct{ Site string }

// Select points the primary Service at a site.
type Select struct{ Site string }

// Open pushes the statement to the active site, whose sidecar then fetches a fresh one and opens writes.
type Open struct{ Site string }

// Follow makes a site replicate from another.
type Follow struct{ Site, Source string }

// Handover fences the old active site of a planned failover and waits for its report, while the primary Service and its
// endpoint move to the target. The target keeps receiving.
type Handover struct{ From, To string }

// Apply waits for a short time until a site has applied a set.
type Apply struct {
	Site string
	Set  gtid.Set
}

// Together returns the first of some effects, with those after it that may be carried out at the same time: replicas are attached together. No
// site is in two of them.
func Together(effects []Effect) []Effect {
	n := slices.IndexFunc(effects, func(e Effect) bool { _, follows := e.(Follow); return !follows })
	if n < 0 {
		return effects
	}
	return effects[:max(1, n)]
}

func (Handover) effect() {}
func (Apply) effect()    {}
func (Announce) effect() {}
func (Drain) effect()    {}
func (Detach) effect()   {}
func (Select) effect()   {}
func (Open) effect()     {}
func (Follow) effect()   {}

func (e Handover) String() string { return fmt.Sprintf("handover %s -> %s", e.From, e.To) }
func (e Apply) String() string    { return fmt.Sprintf("apply %s %s", e.Site, e.Set) }
func (e Announce) String() string { return fmt.Sprintf("announce fence=%v drain=%q", e.Fence, e.Drain) }
func (e Drain) String() string    { return "drain " + e.Site }
func (e Detach) String() string   { return "detach " + e.Site }
func (e Select) String() string   { return "select " + e.Site }
func (e Open) String() string     { return "open " + e.Site }
func (e Follow) String() string   { return fmt.Sprintf("follow %s -> %s", e.Site, e.Source) }
