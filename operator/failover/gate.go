// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/gate"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// Gate is the promotion gate's answer about the transition under way, in words for people: may the target be opened now?
type Gate struct {
	Passed   bool
	Evidence []string
	// Blockers are the sites that may still vouch for the old active site; while there is one, waiting does not help.
	Blockers []string
	// Outlived says why waiting proves nothing about the old active site; empty if it does.
	Outlived string
	// Writer is a site other than the target that accepts writes right now.
	Writer string
	// ReadyAt is when the old active site's lease has run out, if nothing blocks.
	ReadyAt time.Time
}

// AskGate asks the promotion gate about the transition under way.
func AskGate(s Snapshot, m Memory) Gate {
	q := questionOf(s, m)
	return inWords(q, gate.Decide(q))
}

// questionOf builds the question for the gate. It is the only place that says which facts a proof rests on.
func questionOf(s Snapshot, m Memory) gate.Question {
	t := s.Status.Transition
	q := gate.Question{Now: s.Now, Epoch: s.Status.Epoch, Target: t.To, Ordered: s.Order.Accepted, Sites: make([]gate.Site, len(s.Sites))}
	for i, site := range s.Sites {
		q.Sites[i] = witness(s, m, site)
	}
	if t.Change() != facts.ChangeFirst {
		from, _ := s.Site(t.From)
		from.Name = t.From // the gate waits for its lease even if the site is not seen any more
		q.Old = witness(s, m, from)
	}
	return q
}

// witness is what the operator knows about a site, for the gate.
func witness(s Snapshot, m Memory, site Site) gate.Site {
	name, known, ack := site.Name, m.Of(site.Name), Ack{}
	if known.Ack != nil {
		ack = *known.Ack
	}
	return gate.Site{
		Name: name, Runs: site.Runs, Writes: site.Writes(),
		NeverActive: !site.Provisioned && (site.Role == v1alpha1.DROnly || site.Removed && !site.Pod.Exists),
		NeverRan:    site.NeverRan(), Unasked: memory.AskedByNobody(m, site), OtherVolume: site.OtherVolume,
		Pod: site.Pod.UID, PodEnded: site.Pod.Ended, OutOfService: site.Pod.OutOfService, Confirmed: known.Confirmed,
		Ack: ack, Acked: known.Ack != nil, ReadBack: known.FencedBySQL, Permitted: gate.Later(s.Permitted[name], s.OthersUntil()),
		Answered: gate.Later(s.Answered[name], s.OthersUntil()), GoneSince: known.GoneSince, EndedAt: m.Runs.EndedAt[name],
		Lease: memory.LongestLease(s, m, name), Outlived: known.Outlived, WritableAt: known.WritableAt, HeardUntil: known.HeardUntil,
	}
}

// inWords tells people what the gate says.
func inWords(q gate.Question, a gate.Answer) Gate {
	g := Gate{Passed: a.Proof != "", Blockers: a.Blockers, Writer: a.Writer, ReadyAt: a.ReadyAt}
	if a.Outlived {
		g.Outlived = memory.OutlivedWords(q.Old.Name)
	}
	if g.Passed {
		g.Evidence = []string{evidence(q, a, g.Outlived)}
	}
	return g
}

// evidence puts the proof into words for the failover record.
func evidence(q gate.Question, a gate.Answer, outlived string) string {
	x, blockers := q.Old.Name, strings.Join(a.Blockers, ", ")
	switch a.Proof {
	case gate.ProofReport:
		return fmt.Sprintf("sidecar of %s reported it fenced under epoch %d", x, a.Epoch)
	case gate.ProofReadBack:
		return fmt.Sprintf("read-only flags of %s read back by the operator", x)
	case gate.ProofPodEnded:
		return fmt.Sprintf("pod of %s has ended, told by a live kubelet", x)
	case gate.ProofOutOfService:
		return fmt.Sprintf("node of %s is tainted out-of-service", x)
	case gate.ProofLease:
		return fmt.Sprintf("lease of %s has run out; epoch %d acknowledged by %s", x, q.Epoch, strings.Join(a.Vouchers, ", "))
	case gate.ProofNobodyOpen:
		return "no other site can be open"
	case gate.ProofOrder:
	}
	switch {
	case x == "":
		return fmt.Sprintf("ordered by a person although %s may not be fenced", blockers)
	case blockers != "":
		return fmt.Sprintf("ordered by a person although %s may still vouch for %s", blockers, x)
	}
	return "ordered by a person although " + outlived
}
