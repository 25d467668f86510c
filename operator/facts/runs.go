// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/operator/gate"
)

// Run is one incarnation of a site: a pod on a machine.
type Run = gate.Run

// SeenRun is what Kubernetes shows of a pod that has a node.
type SeenRun struct {
	UID, Node, Machine string
	Lease              time.Duration
	// Started is false if its kubelet has not reported that its sidecar ever started; Ended is true if it reported that none of its
	// containers ever starts again.
	Started, Ended bool
}

// Node is what Kubernetes shows of the node that a run was on.
type Node struct {
	Machine string
	Ready   bool
	// OutOfService is true if a person tainted it as down, Gone if there is no such node.
	OutOfService, Gone bool
}

// Runs is what is remembered about runs between polls.
type Runs struct {
	Of map[string][]Run
	// Quiet is since when the pod of a run was gone and its node was in a state that soon leaves nothing of it, in an unbroken row
	// of polls; Over holds the runs that are known not to run by evidence other than a lock.
	Quiet map[string]time.Time
	Over  map[string]bool
	// EndedAt is when a run of a site was last found to have ended, other than by a lock: until then it may have vouched.
	EndedAt map[string]time.Time
}

// Kept is the durable part of the runs. It leaves out runs that are not known to have begun, which would cost a write for each pod that
// starts, and runs that have ended although their pod is still there: there may be very many evicted pods.
func (n Runs) Kept() map[string][]Run {
	var out map[string][]Run
	for site, all := range n.Of {
		for _, r := range all {
			if r.Ended || r.Idle && r.Volume == "" {
				continue
			}
			if out == nil {
				out = map[string][]Run{}
			}
			r.Idle, r.Elsewhere = false, false
			out[site] = append(out[site], r)
		}
	}
	return out
}

// Open marks all runs as not closed: what status says about them is from another time.
func (n Runs) Open() {
	for _, all := range n.Of {
		for i := range all {
			all[i].Closed = false
		}
	}
}

// Noted is true if status holds a pod as a run of the site, and as one that may be open: no other pod is let open. If that pod is gone
// when the next operator begins, the operator must know of it.
func (d Durable) Noted(site, uid string) bool {
	return slices.ContainsFunc(d.Runs[site], func(r Run) bool { return r.UID == uid && (!r.Closed || site != d.ActiveSite) })
}
