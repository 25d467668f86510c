// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"time"
)

// An incarnation of a site is a pod on a machine: a Run. What one run says is no word about another that has run and is not known
// to have ended, although both have the site's name and perhaps its volume: a lock on a volume belongs to one kernel. So a proof,
// or an acknowledgement, counts for a site only if no other run of it may be left (I1, I2, I4; decision 0018).

// Run is one incarnation of a site.
type Run struct {
	UID, Node string
	// Machine identifies the machine behind the node's name; empty if that is not known.
	Machine string
	// Volume is the name of the data volume that its sidecar reported; empty until then.
	Volume string
	// Lease is the lease and the fence's deadline that its sidecar was started with; zero when unknown.
	Lease time.Duration
	// Closed is true once the promotion gate has passed with it: it accepts no commits, and nothing lets it open. It may still vouch.
	Closed bool

	// What follows is seen, not kept. Idle is true while it is known not to run, although it may run later; Ended, once its kubelet said
	// that it never will; Elsewhere, if the pod runs on another machine by now.
	Idle, Ended, Elsewhere bool
}

// String tells people that the earlier pod may still run.
func (r Run) String() string {
	return fmt.Sprintf("an earlier pod of it, %s on node %s, may still run", r.UID, r.Node)
}

// Key tells runs of a site apart.
func (r Run) Key() string { return r.UID + " " + r.Machine }

// Runs are the incarnations of one site that may be left.
type Runs []Run

// Beside returns a run that may still run, other than the one of that pod.
func (all Runs) Beside(uid string) (Run, bool) {
	return all.another(uid, func(Run) bool { return true })
}

// WritesBeside returns a run that may still accept commits, other than the one of that pod.
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

// Only is true if what the pod says holds for the whole site.
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
