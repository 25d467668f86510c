// SPDX-License-Identifier: Apache-2.0

// Package gate decides whether a site may be opened in place of another (I1, I2, I4). It says no while any site may accept commits
// under an older epoch, now or later. It knows nothing of data, of roles and of words for people: see docs/failover.md.
//
// The theorem: the old active site no longer accepts commits if one witness speaks for one of its incarnations and every other one is
// shut, or if its lease has run out and no incarnation of any other site may renew it.
package gate

import (
	"slices"
	"time"
)

const (
	// leastMargin covers scheduling delay and the round trip of the last answer, however short the lease is.
	leastMargin = time.Second
	// hurry is by how much a time service makes this process's clock run faster at most: 1/hurry, chrony's limit (8.3 %).
	hurry = 12
	// drift is by how much two clocks differ that no time service changes, at most: 1/drift.
	drift = 2000
	// lastLook is how often the supervisor of mysqld looks at its deadline. If the sidecar hangs, mysqld ends that much later.
	lastLook = 50 * time.Millisecond
	// marginStep is what a margin is a multiple of: people read it.
	marginStep = 100 * time.Millisecond
)

// Margin is added to a lease and the fence's deadline, which lease is the sum of, before the lease counts as run out. A time service
// makes this process's clock run faster, and what may still accept commits counts by a clock that no time service changes. So after
// lease and Margin by this clock, at least lease and lastLook have passed by that one. 1.9 s with the defaults.
func Margin(lease time.Duration) time.Duration {
	counted := lease + lastLook
	counted += counted / hurry
	counted += counted / drift
	exact := counted - lease
	return max(leastMargin, (exact + marginStep - 1).Truncate(marginStep))
}

// OpenValidity is twice as long as a sidecar could still act on an answer that permits it to open. A sidecar
// refuses to open on an answer older than 2 s since it asked.
const OpenValidity = 4 * time.Second

// Question is: may Target be opened under Epoch, in place of Old?
type Question struct {
	Now   time.Time
	Epoch int64
	// Old is the site that the role moves from; without a name if no site is known to have had it.
	Old Site
	// Target is the site that is to be opened.
	Target string
	// Ordered is true if a person ordered this very target and accepted the loss.
	Ordered bool
	Sites   []Site
}

// Site is what is known about one site.
type Site struct {
	Name string
	// Runs are its incarnations that may be left.
	Runs Runs
	// Writes is true if it was seen to accept writes in this poll, and not because of work on it behind offline_mode.
	Writes bool
	// NeverActive is true if it cannot have been the active site: it never held data of this group, and could not be promoted.
	NeverActive bool
	// NeverRan is true if no pod of it has come to a node yet and no sidecar was started with it as a peer, Unasked if it may run and
	// would answer, but no sidecar asks it.
	NeverRan, Unasked bool
	// OtherVolume is true if it is on a volume other than the one that holds its data.
	OtherVolume bool
	// Pod is the one that is seen; PodEnded is true if Kubernetes proves that it never runs again, OutOfService if a person tainted
	// its node as down.
	Pod                    string
	PodEnded, OutOfService bool
	// Confirmed is the pod whose sidecar reported the volume that holds the site's data.
	Confirmed string

	// Ack is the best acknowledgement of an epoch by its sidecar, if Acked.
	Ack   Ack
	Acked bool
	// ReadBack is a fence that the operator carried out and read back itself; zero if there is none.
	ReadBack ReadBack
	// Permitted is when an operator may last have given it a statement on which it may open.
	Permitted time.Time

	// Answered is when the operator may last have answered it under an older epoch, GoneSince since when it cannot run, EndedAt when
	// one of its incarnations was last found to have ended: until these moments it may have been renewed, or have renewed another.
	Answered, GoneSince, EndedAt time.Time
	// Lease is how long it may stay open after it was answered, the fence's deadline included.
	Lease time.Duration
	// Outlived is true if it was seen to accept writes after its lease must have ended. WritableAt is when it last was, HeardUntil until
	// when its lease may last by its own word.
	Outlived               bool
	WritableAt, HeardUntil time.Time
}

// Ack is the acknowledgement of an epoch by a site's sidecar.
type Ack struct {
	Epoch int64
	// PodUID is the pod that acknowledged: it speaks for no other pod of the site that may still run.
	PodUID string
	// LastVouch is the latest moment at which that sidecar may have kept each other site's lease alive under an older
	// epoch, by the operator's clock.
	LastVouch map[string]time.Time
	// Fenced is true if the report was fence proof under the epoch.
	Fenced bool
}

// ReadBack is a fence that the operator carried out and read back itself.
type ReadBack struct {
	Epoch int64
	// At is when the fence was begun: the flags were read back later.
	At time.Time
	// PodUID is the pod whose MySQL was fenced.
	PodUID string
}

// Proof is what passed the gate.
type Proof string

// The proofs. The first four say that the old active site is fenced, and who says so.
const (
	ProofReport       Proof = "Report"       // its sidecar
	ProofReadBack     Proof = "ReadBack"     // the operator itself, by SQL
	ProofPodEnded     Proof = "PodEnded"     // a live kubelet
	ProofOutOfService Proof = "OutOfService" // a person who tainted the node
	ProofLease        Proof = "Lease"        // its lease has run out, and no site can renew it
	ProofNobodyOpen   Proof = "NobodyOpen"   // there was no old one, and no site can be open
	ProofOrder        Proof = "Order"        // none: a person ordered it all the same
)

// Answer is the gate's answer. Without a Proof the gate is closed.
type Answer struct {
	Proof Proof
	// Epoch is the one that the sidecar of the old active site acknowledged, if that is the proof.
	Epoch int64
	// Vouchers are the sites whose acknowledgement keeps them from renewing the lease, if that is the proof.
	Vouchers []string
	// Writer is a site other than the target that accepts writes right now.
	Writer string
	// Blockers are the sites that may still vouch for the old active site; while there is one, waiting does not help. Without an old one
	// they are those that may be open.
	Blockers []string
	// Outlived is true if time proves nothing about the old active site.
	Outlived bool
	// ReadyAt is when its lease has run out, if nothing blocks.
	ReadyAt time.Time
}

// Decide answers the question. Without a proof it says no, because a second writer cannot be undone.
func Decide(q Question) Answer {
	if writer := Writer(q.Sites, q.Target); writer != "" {
		return Answer{Writer: writer} // I1: it is being fenced; the next poll looks again
	}
	if q.Old.Name == "" {
		return q.nobodyOpen()
	}
	if proof, epoch := q.Fenced(q.Old); proof != "" {
		return Answer{Proof: proof, Epoch: epoch}
	}
	return q.LeaseRunOut(q.Old)
}

// Writer names a site that accepts writes, other than the given one.
func Writer(sites []Site, but string) string {
	i := slices.IndexFunc(sites, func(x Site) bool { return x.Name != but && x.Writes })
	if i < 0 {
		return ""
	}
	return sites[i].Name
}

// Gone is true if Kubernetes proves that neither mysqld nor the sidecar of the site can run.
func (x Site) Gone() bool {
	return !x.OtherVolume && (x.PodEnded && x.Runs.Only(x.Pod) || x.OutOfService && x.Runs.Only(""))
}

// nobodyOpen is the gate if no old active site is known: in a new group, or if status is older than what the sites have seen. Any of
// them may be open then, so each must have acknowledged the epoch fenced.
func (q Question) nobodyOpen() Answer {
	var a Answer
	for _, x := range q.Sites {
		closed := x.Ack.Epoch >= q.Epoch && x.Ack.Fenced && x.Runs.Only(x.Ack.PodUID)
		if x.Name == q.Target && x.Runs.ShutBut(x.Pod) || closed || x.Gone() || x.NeverActive {
			continue
		}
		a.Blockers = append(a.Blockers, x.Name)
		// Any of them may be the active site that status does not know, so even an order waits for the lease of each.
		a.ReadyAt = Later(a.ReadyAt, q.LeaseRunOut(x).ReadyAt)
	}
	switch {
	case len(a.Blockers) == 0:
		a.Proof = ProofNobodyOpen
	case q.Ordered && !q.Now.Before(a.ReadyAt):
		a.Proof = ProofOrder
	}
	return a
}

// Fenced names the proof that a site accepts no commits under the epoch or later, and the epoch that its sidecar acknowledged; empty if
// there is none. A witness speaks for one incarnation, so every other one must be shut.
func (q Question) Fenced(x Site) (Proof, int64) {
	switch back := x.ReadBack; {
	case x.Ack.Fenced && x.Ack.Epoch >= q.Epoch && x.Runs.ShutBut(x.Ack.PodUID):
		return ProofReport, x.Ack.Epoch
	case !back.At.IsZero() && back.Epoch >= q.Epoch && back.PodUID == x.Confirmed && x.Runs.ShutBut(back.PodUID) && !x.mayStillOpen(back.At):
		return ProofReadBack, 0
	case x.PodEnded && x.Pod == x.Confirmed && x.Runs.ShutBut(x.Pod):
		return ProofPodEnded, 0
	case x.OutOfService && x.Runs.ShutBut(""):
		return ProofOutOfService, 0
	}
	return "", 0
}

// mayStillOpen is true if the sidecar could act, after the given moment, on the last answer that permitted it to
// open: then what was read back at that moment proves nothing.
func (x Site) mayStillOpen(at time.Time) bool { return at.Before(x.Permitted.Add(OpenValidity)) }

// LeaseRunOut decides by time. A site's lease counts from the last moment at which the operator or a peer may have answered it under an
// older epoch. Every other site must have acknowledged the epoch durably, so that it can never answer with an older one again, or must
// provably not run.
func (q Question) LeaseRunOut(old Site) Answer {
	last := old.Answered
	var a Answer
	for _, x := range q.Sites {
		if x.Name == old.Name {
			continue
		}
		switch {
		case x.Acked && x.Ack.Epoch >= q.Epoch && x.Runs.Only(x.Ack.PodUID):
			last = Later(last, x.Ack.LastVouch[old.Name])
			last = Later(last, x.EndedAt) // until then another pod of it may have answered
			a.Vouchers = append(a.Vouchers, x.Name)
		case x.Gone():
			last = Later(last, x.GoneSince)
		case x.Unasked:
		case !x.Acked && x.NeverRan:
			// A new site that waits for a node: before it could vouch, a pod of it would have to be heard, and to hear of the epoch.
		default:
			a.Blockers = append(a.Blockers, x.Name)
		}
	}
	slices.Sort(a.Blockers)
	a.ReadyAt = last.Add(old.Lease + Margin(old.Lease))
	a.Outlived = old.OutlivedBy(Later(a.ReadyAt, old.HeardUntil.Add(Margin(old.Lease))))
	switch {
	case q.Now.Before(a.ReadyAt):
		// I4: even an order waits for the lease.
	case len(a.Blockers) == 0 && !a.Outlived:
		a.Proof = ProofLease
	case q.Ordered:
		a.Proof = ProofOrder
	}
	return a
}

// OutlivedBy is true if time proves nothing about a site, because it was seen to accept writes after its lease must have ended. The times
// counted here begin with this operator or later, so an operator that restarts also looks at what the one before has noted.
func (x Site) OutlivedBy(leaseEnd time.Time) bool { return x.Outlived || x.WritableAt.After(leaseEnd) }

// Later is the later of two moments.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
