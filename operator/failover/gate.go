// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Gate is the answer to: may the target be opened in place of the old active site now?
type Gate struct {
	Passed   bool
	Evidence []string
	// Blockers are the sites that may still vouch for the old active site; while there is one, waiting does not help.
	Blockers []string
	// Outlived says why time proves nothing of the old active site; empty if it does.
	Outlived string
	// Writer is a site other than the target that accepts writes right now.
	Writer string
	// ReadyAt is when the old active site's lease has run out, if nothing blocks.
	ReadyAt time.Time
}

// gate decides the promotion gate (design §2) for the transition under way.
//
// It passes on proof that the old active site accepts no commits under the present epoch, or once its lease has run
// out and nobody can renew it. Everything else answers no, because a second writer cannot be undone.
func gate(s Snapshot, m Memory) Gate {
	t := s.Status.Transition
	if writer := writableElsewhere(s, t.To); writer != "" {
		// I1: somebody accepts writes right now. It is being fenced; the next poll looks again.
		return Gate{Writer: writer}
	}
	if t.From == "" {
		return everySiteFenced(s, m)
	}
	if evidence := fenceProof(s, m, t.From); evidence != "" {
		return Gate{Passed: true, Evidence: []string{evidence}}
	}
	return leaseRunOut(s, m, t.From)
}

// everySiteFenced is the gate where no earlier active site is known: a new group, or a status that is older than what the
// sites have seen. Any candidate may be open then, so each must have acknowledged the new epoch fenced.
func everySiteFenced(s Snapshot, m Memory) Gate {
	var g Gate
	for _, site := range s.Sites {
		ack := m.Acks[site.Name]
		// It never held data of this group, so it never was active.
		never := !site.Provisioned && (site.Role == v1alpha1.DROnly || site.Removed && !site.Pod.Exists)
		if site.Name == s.Status.Transition.To && site.shutBut(site.Pod.UID) || ack.Epoch >= s.Status.Epoch && ack.Fenced && site.only(ack.PodUID) || site.gone() || never {
			continue
		}
		g.Blockers = append(g.Blockers, site.Name)
	}
	for _, x := range g.Blockers {
		// Any of them may be the active site that nobody knows of: by order too, the lease of each is waited for.
		g.ReadyAt = later(g.ReadyAt, leaseRunOut(s, m, x).ReadyAt)
	}
	switch {
	case len(g.Blockers) == 0:
		g.Passed, g.Evidence = true, []string{"no other site can be open"}
	case forced(s) && !s.Now.Before(g.ReadyAt):
		g.Passed = true
		g.Evidence = []string{fmt.Sprintf("ordered by a person although %s may not be fenced", strings.Join(g.Blockers, ", "))}
	}
	return g
}

func writableElsewhere(s Snapshot, target string) string {
	for _, site := range s.Sites {
		if site.Name != target && site.Writable() && site.Busy == "" {
			return site.Name
		}
	}
	return ""
}

// fenceProof names the proof that x accepts no commits under the present epoch or later, or "".
func fenceProof(s Snapshot, m Memory, x string) string {
	epoch := s.Status.Epoch
	site, known := s.Site(x)
	if ack := m.Acks[x]; ack.Epoch >= epoch && ack.Fenced && site.shutBut(ack.PodUID) {
		return fmt.Sprintf("sidecar of %s reported it fenced under epoch %d", x, ack.Epoch)
	}
	if fence, was := m.FencedBySQL[x]; was && fence.Epoch >= epoch && fence.PodUID == m.Confirmed[x] && site.shutBut(fence.PodUID) && !mayStillOpen(s, x, fence.At) {
		return fmt.Sprintf("read-only flags of %s read back by the operator", x)
	}
	if known && site.Pod.Ended && site.Pod.UID == m.Confirmed[x] && site.shutBut(site.Pod.UID) {
		return fmt.Sprintf("pod of %s has ended, told by a live kubelet", x)
	}
	if known && site.Pod.OutOfService && site.shutBut("") {
		return fmt.Sprintf("node of %s is tainted %s", x, "out-of-service")
	}
	return ""
}

// mayStillOpen is true if a sidecar could act, after a moment, on the last answer that permitted it to open: what was
// read back at that moment proves nothing then.
func mayStillOpen(s Snapshot, x string, at time.Time) bool {
	last := later(s.Permitted[x], s.LeaderSince)
	return at.Before(last.Add(OpenValidity))
}

// leaseRunOut decides by time. The lease of x counts from the last moment at which anybody may have answered it under
// an older epoch. Every other site must have acknowledged the present epoch durably, so that nobody can answer x with
// an older one from now on, or provably not run.
func leaseRunOut(s Snapshot, m Memory, x string) Gate {
	last := later(s.Answered[x], s.LeaderSince)
	var g Gate
	var vouchers []string
	for _, site := range s.Sites {
		if site.Name == x {
			continue
		}
		ack, acked := m.Acks[site.Name]
		switch {
		case acked && ack.Epoch >= s.Status.Epoch && site.only(ack.PodUID):
			last = later(last, ack.LastVouch[x])
			last = later(last, m.Runs.EndedAt[site.Name]) // until then another pod of it may have answered
			vouchers = append(vouchers, site.Name)
		case site.gone():
			last = later(last, m.GoneSince[site.Name])
		case askedByNobody(m, site):
		case !acked && site.neverRan():
			// A new site that waits for a node: a pod of it would have to be heard, and it of the epoch, before it could vouch.
		default:
			g.Blockers = append(g.Blockers, site.Name)
		}
	}
	slices.Sort(g.Blockers)
	g.ReadyAt = last.Add(longestLease(s, m, x) + LeaseMargin)
	g.Outlived = outlived(m, x, later(g.ReadyAt, m.HeardUntil[x].Add(LeaseMargin)))
	if s.Now.Before(g.ReadyAt) {
		return g // I4: also by order, the lease is waited for
	}
	switch {
	case len(g.Blockers) > 0 && forced(s):
		g.Passed = true
		g.Evidence = []string{fmt.Sprintf("ordered by a person although %s may still vouch for %s", strings.Join(g.Blockers, ", "), x)}
	case g.Outlived != "" && forced(s):
		g.Passed = true
		g.Evidence = []string{"ordered by a person although " + g.Outlived}
	case len(g.Blockers) == 0 && g.Outlived == "":
		g.Passed = true
		g.Evidence = []string{fmt.Sprintf("lease of %s has run out; epoch %d acknowledged by %s",
			x, s.Status.Epoch, strings.Join(vouchers, ", "))}
	}
	return g
}

// askedByNobody is true for a new site without data that no pod of another one was ever started with as a peer: it may run, and answer
// whoever asks, but nobody asks it (decision 0019). Status says so, and no more before the first such pod is made. Who is listed is fixed
// when a pod starts, and a site that is open was started before its failover began.
func askedByNobody(m Memory, site Site) bool {
	return site.Unlisted && !site.Provisioned && !m.Listed[site.Name]
}

// longestLease is how long x may stay open at most, the fence's deadline included. A spec with a shorter lease binds only
// a sidecar that heard of it: a pod that was started with a longer one and is cut off keeps that. Of a pod that was
// never seen the worst that any site was given is assumed.
func longestLease(s Snapshot, m Memory, x string) time.Duration {
	site, _ := s.Site(x)
	longest := max(s.Policy.LeaseTimeout+s.Policy.FenceTimeout, site.longestRun())
	if known := m.Lease[x]; known > 0 {
		return max(longest, known)
	}
	for _, lease := range m.Lease {
		longest = max(longest, lease)
	}
	return longest
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
