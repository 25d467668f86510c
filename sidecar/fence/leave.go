// SPDX-License-Identifier: Apache-2.0

package fence

// leaveGuards say why the end of MySQL should wait a moment. They only spare clients a wait: a pod that ends all the
// same is an ordinary failure. Each is safe alone and in any order.
var leaveGuards = []guard[Instant]{
	{StillOpen, "MySQL may accept commits", stillOpen},
	{StillNamed, "this site is the active site", stillNamed},
	{Held, "the active site is changing, and this site's data may be needed for it", changeUnderWay},
}

// MayLeave says whether MySQL can end without clients or other sites missing it. It is asked when the pod is about to
// end, so that the role moves away first. No reason means that it can.
func MayLeave(s State, now Instant) Refusal {
	return firstRefusal(leaveGuards, s, now)
}

// stillOpen: the end would cut sessions in the middle of their work. Writes in a window are not those of clients.
func stillOpen(s State, now Instant) bool { return s.exposed && !behindWindow(s, now) }

// stillNamed: closed or not, the operator is about to open it, or to move the role.
func stillNamed(s State, _ Instant) bool { return s.Names() }

// Leaving is true once the sidecar is ending.
func (s State) Leaving() bool { return s.leaving }

// changeUnderWay: until the hold ends, the new active site may still fetch from here what it lacks.
func changeUnderWay(s State, _ Instant) bool { return s.word.Epoch > 0 && s.word.Hold }
