// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"time"
)

// An incarnation of a site is a pod on a machine: a Run. What one says is no word of another that has run and of which it is not
// known that it ended, although both have the name of the site and perhaps the same volume: a lock on that is one of a kernel. So a
// proof, and an acknowledgement, counts for a site only if no other run of it may be left (I1, I2, I4; decision 0018).

// Run is one incarnation of a site.
type Run struct {
	UID, Node string
	// Machine names what is behind the name of the node; empty if that is not known.
	Machine string
	// Volume is the name of the data volume that its sidecar reported; empty before.
	Volume string
	// Lease is the lease and the fence's deadline that its sidecar was started with; zero when unknown.
	Lease time.Duration
	// Closed is true once the promotion gate has passed with it: it accepts no commits, and nobody lets it open. It may still vouch.
	Closed bool

	// What follows is seen, not kept. Idle is true while it is known not to run, although it may run later; Ended, once its kubelet told
	// that it never will; Elsewhere, if the pod runs on another machine by now.
	Idle, Ended, Elsewhere bool
}

// String says of a run, for people, that it may be left.
func (r Run) String() string {
	return fmt.Sprintf("an earlier pod of it, %s on node %s, may still run", r.UID, r.Node)
}

// Key tells runs of a site apart.
func (r Run) Key() string { return r.UID + " " + r.Machine }

// Runs are the incarnations of one site that may be left.
type Runs []Run

// Beside is a run other than the one of that pod that may still run.
func (all Runs) Beside(uid string) (Run, bool) {
	return all.another(uid, func(Run) bool { return true })
}

// WritesBeside is a run other than the one of that pod that may still accept commits.
func (all Runs) WritesBeside(uid string) (Run, bool) {
	return all.another(uid, func(r Run) bool { return !r.Closed })
}

func (all Runs) another(uid string, counts func(Run) bool) (Run, bool) {
	i := slices.IndexFunc(all, func(r Run) bool { return (r.UID != uid || r.Elsewhere) && !r.Idle && counts(r) })
	if i < 0 {
		return Run{}, false
	}
	return all[i], true
}

// Only is true if what the pod said is said for the whole site.
func (all Runs) Only(uid string) bool {
	_, more := all.Beside(uid)
	return !more
}

// ShutBut is true if no run of the site but that pod's may accept commits.
func (all Runs) ShutBut(uid string) bool {
	_, more := all.WritesBeside(uid)
	return !more
}

// LongestLease is the longest lease of those that may accept commits.
func (all Runs) LongestLease() (longest time.Duration) {
	for _, r := range all {
		if !r.Closed && !r.Idle {
			longest = max(longest, r.Lease)
		}
	}
	return longest
}
