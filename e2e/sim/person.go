// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// A group that waits for a person has to say so, and what it says has to help: the person does it, and the group must come
// to rest then.

// explained is true if the group waits for a person, and says so.
func (w *world) explained(d failover.Decision) bool {
	if d.Reason == v1alpha1.ReasonAwaitingFenceProof {
		// The volume that acknowledged is gone, and so is what status knew; or it is that of a site that was to be the first one, had
		// no lease yet that could run out, and is gone before anybody was opened.
		t := w.api.group.durable.Transition
		first := d.Blocked() && w.truth.newest.vol == nil && t != nil && t.From == ""
		return (w.truth.restored || first) && w.anotherWitness()
	}
	if !d.Blocked() {
		return false
	}
	switch d.Reason {
	case v1alpha1.ReasonModeManual, v1alpha1.ReasonModeObserve:
		return w.policy.mode != v1alpha1.FailoverAuto
	case v1alpha1.ReasonLossBudget:
		return w.api.group.maxLost != nil
	case v1alpha1.ReasonSiteMayStillVouch:
		return w.anotherWitness()
	case v1alpha1.ReasonNoFitCandidate, v1alpha1.ReasonTargetLost, v1alpha1.ReasonMissingTransactions, v1alpha1.ReasonDrainTimeout:
		return w.needsPerson()
	case v1alpha1.ReasonRowsMissing:
		return w.lacksRows()
	default:
		return false
	}
}

// anotherWitness is true if a site is on another volume than the one that is noted: what was acknowledged on that one
// cannot be asked for any more, and only a person knows that it is gone.
func (w *world) anotherWitness() bool {
	for _, s := range w.sites {
		if noted := w.api.group.volumes[s.name]; noted != "" && noted != s.vol.id {
			return true
		}
	}
	return false
}

// needsPerson is true if somebody holds what only a person can write off, or nobody is left who is known to hold everything: of a
// site that was replaced and not compared with its successor the operator cannot know it (I10).
func (w *world) needsPerson() bool {
	whole := false
	for _, s := range w.sites {
		p := w.podAt(s)
		if p == nil {
			continue
		}
		held := p.vol.executed.union(p.vol.retrieved)
		if w.truth.errant(held) {
			return true // also on a site that left the spec: nobody may be opened silently without it (I7)
		}
		_, waits := waitsToBeCompared(w.api.group.durable.Records, s.name)
		whole = whole || !s.removed && !s.drOnly && !waits && w.api.group.provisioned[s.name] && held.contains(w.truth.acked)
	}
	return !whole
}

// What conditions tell a person to do.
var (
	orderNamed  = regexp.MustCompile(regexp.QuoteMeta(v1alpha1.AnnotationForceFailover) + `=(\w+)`)
	enlistNamed = regexp.MustCompile(`(?:put|make) (\w+) (?:back into spec.sites as )?a primary-candidate`)
)

// toldMost is how often a person does what the condition says: a site that was ordered may fail to open too.
const toldMost = 2

// obeys does what the condition says, if it names something. The group has as long as after the last fault then.
func (w *world) obeys(d failover.Decision) bool {
	order, enlist := orderNamed.FindStringSubmatch(d.Message), enlistNamed.FindStringSubmatch(d.Message)
	if order == nil && enlist == nil {
		w.count("nothing is named: " + string(d.Reason))
		return false
	}
	if order != nil && w.api.group.forceTo == order[1] || w.truth.obeyed == toldMost {
		w.fail("live", "what status tells a person was done, and does not help: %s %s %s: %s", d.Topology, d.Verdict, d.Reason, d.Message)
		return false
	}
	w.trace("a person does as status says: %s", d.Message)
	w.truth.obeyed++
	w.truth.healedAt = w.now
	if enlist != nil && (order == nil || w.seed%2 == 0) {
		w.count("enlisted as status says: " + string(d.Reason))
		s := w.siteOf(enlist[1])
		s.drOnly, s.removed = false, false
		return true
	}
	w.count("ordered as status says: " + string(d.Reason))
	w.api.change(func(o *object) { o.forceTo = order[1] })
	return true
}
