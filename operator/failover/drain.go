// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// DrainedOf says what the change under way waits for until its target has applied and fetched what it can; false if it has.
func DrainedOf(s Snapshot, m Memory) (wait Decision, waits bool) {
	target, _ := s.Site(s.Status.Transition.To)
	return drained(s, Decision{Memory: m}, target)
}

// drained waits until the target receives no more, has applied all it received, and has fetched what other reachable
// sites have. Detaching it earlier would throw away what had arrived.
func drained(s Snapshot, d Decision, target Site) (Decision, bool) {
	lacks, where := lineage.Missing(s, d.Memory, target)
	if late(s, d.Memory.DrainSince) {
		// What only the relay log of a broken applier has cannot be fetched from any site. It has had its time: a candidate that is
		// otherwise whole is opened; what is left behind is counted and reported, and stays where it is (I7, I8, decision 0012).
		lacks, where = lineage.Obtainable(s, d.Memory, target)
	}
	left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed)
	if s.Order.Accepted {
		lacks = gtid.Set{} // a person accepted this; the site still applies what it has received itself
	}
	receiving := target.MySQL.ReplicaHost != "" && !target.MySQL.ReceiverStopped
	if lacks.IsEmpty() && left.IsEmpty() && !receiving {
		return d, false
	}
	if left.IsEmpty() && !lacks.IsEmpty() && d.Memory.Of(where).Unsettled {
		// No site may fetch it: what was written off would come along with what is good (I10).
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonMissingTransactions, "%s lacks %s, which only %s has, together with what may have been written off; bring back %s; %s",
			target.Name, lacks, where, s.Status.Transition.From, promotion.HowToOrder(target.Name)).then(Announce{Fence: fenceTargets(s.Status.Transition)}), true
	}
	effects, reason := []Effect{Drain{Site: target.Name}}, v1alpha1.ReasonDrainingRelayLog
	message := fmt.Sprintf("%s has %s left to apply", target.Name, gtid.Transactions(left.Count()))
	if left.IsEmpty() && !lacks.IsEmpty() && (!receiving || target.MySQL.ReplicaOf == where) {
		// Only with an empty relay log that receives nothing more: changing the source would throw away what is in it (I8).
		effects, reason = []Effect{Follow{Site: target.Name, Source: where}}, v1alpha1.ReasonMissingTransactions
		if source, _ := s.Site(where); source.MySQL.ReplicaHost != "" {
			effects = append([]Effect{Drain{Site: where}}, effects...)
		}
		message = fmt.Sprintf("%s lacks %s and fetches it from %s", target.Name, lacks, where)
	}
	d = d.then(Announce{Fence: fenceTargets(s.Status.Transition)}).then(effects...).within(s.Policy.PollInterval / 8)
	if late(s, d.Memory.DrainSince) && s.Order.Accepted && !receiving {
		return d, false // a person ordered it, and what is left cannot be applied
	}
	if next, found := unbroken(s, d.Memory, target); found && late(s, d.Memory.DrainSince) {
		return d.retarget(s, next, v1alpha1.ReasonTargetLost).say(TopologyTransition, VerdictFailover, v1alpha1.ReasonTargetLost,
			"%s cannot apply what it has received (%s); %s takes its place", target.Name, target.MySQL.SQLError, next), true
	}
	if late(s, d.Memory.DrainSince) {
		// To continue would lose what is known to exist; a person may order that, the operator does not do it.
		return d.say(TopologyTransition, VerdictBlocked, v1alpha1.ReasonDrainTimeout, "%s, for longer than drainTimeout %s; %s",
			message, s.Policy.DrainTimeout, promotion.HowToOrder(target.Name)), true
	}
	return d.say(TopologyTransition, VerdictWait, reason, "%s", message), true
}

// unbroken names the candidate that takes the place of a target whose applier is broken, if there is one.
func unbroken(s Snapshot, m Memory, target Site) (string, bool) {
	t := s.Status.Transition
	if !lineage.BrokenApplier(target) || !t.Replaces() {
		return "", false // the first active site holds all that any site held (I7); a site that is opened again has no source
	}
	for _, c := range promotion.Rank(s, m) {
		if c.Unfit.By == "" && c.Site.Name != t.To && !lineage.BrokenApplier(c.Site) {
			return c.Site.Name, true
		}
	}
	return "", false
}

// late is true once a step of a transition took longer than drainTimeout.
func late(s Snapshot, since time.Time) bool {
	return !since.IsZero() && s.Now.Sub(since) > s.Policy.DrainTimeout
}

// knownOf is what the old active site is known to have had: at the last look that it answered, even if the failover had begun by
// then, and what it gave to a site that cannot apply it.
func knownOf(t *Transition, s Snapshot, m Memory, target Site) gtid.Set {
	if t.Change() == facts.ChangeFirst {
		return t.FromExecuted // there was none
	}
	behind, _ := lineage.LeftBehind(s, m, target)
	if t.FromExecuted.IsEmpty() && m.Of(t.From).Executed.IsEmpty() {
		return gtid.Set{} // not known; a part of it would pass for the whole
	}
	return t.FromExecuted.Union(m.Of(t.From).Executed).Union(behind)
}
