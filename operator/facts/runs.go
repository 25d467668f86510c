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
	// Started is false if its kubelet has not told that its sidecar ever started; Ended is true if it told that none of its containers
	// ever starts again.
	Started, Ended bool
}

// Node is what Kubernetes shows of the node that a run was on.
type Node struct {
	Machine string
	Ready   bool
	// OutOfService is true if a person tainted it as down, Gone if there is no such node any more.
	OutOfService, Gone bool
}

// Runs is what is remembered of them between polls.
type Runs struct {
	Of map[string][]Run
	// Quiet is since when the pod of a run was gone and its node was such that nothing can be left of it soon, in an unbroken row of
	// polls; Over holds those that are known not to run by other evidence than a lock.
	Quiet map[string]time.Time
	Over  map[string]bool
	// EndedAt is when a run of a site was last found to have ended, but by a lock: until then it may have vouched.
	EndedAt map[string]time.Time
}

// Kept is the durable part of the runs. One that is not known to have begun is not noted: it would cost a write for each pod that starts.
// Nor is one that has ended, of which the pod is still there: of evicted pods there may be very many.
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

// Open takes back of all runs that they are closed: what status says of them is of another time.
func (n Runs) Open() {
	for _, all := range n.Of {
		for i := range all {
			all[i].Closed = false
		}
	}
}

// Noted is true if a pod is the run of a site that status holds, and as one that may be open: nobody else is let open. Were it gone when
// the next operator begins, that would have to know of it.
func (d Durable) Noted(site, uid string) bool {
	return slices.ContainsFunc(d.Runs[site], func(r Run) bool { return r.UID == uid && (!r.Closed || site != d.ActiveSite) })
}
