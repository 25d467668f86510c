// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// decided holds what must be true of a decision, given what the poll saw.
func (x *truth) decided(l *loop, s failover.Snapshot, d failover.Decision) {
	if d.Reason == "InvariantViolated" {
		x.w.fail("check", "%s", d.Message)
	}
	x.last, x.lastAt = d, x.w.now
	x.begins(s, d)
	if d.Verdict == failover.VerdictPromote {
		x.promotes(l, s, d)
	}
	if d.Topology == failover.TopologyHealthy && l.loaded {
		x.seesErrant(s)
	}
	for _, r := range d.Status.Records {
		x.record(r)
	}
	if t := d.Status.Transition; t != nil && s.Status.Transition == nil {
		x.told[t.From] = l.told[t.From] // the next operator goes on with it, and has not seen that itself
	}
	if d.Status.Epoch > s.Status.Epoch && len(d.Effects) > 0 && !d.Persist {
		x.w.fail("I2", "epoch %d has effects and is not persisted", d.Status.Epoch)
	}
}

// promotes holds I6, I7 and I1 of a decision to open a site in place of another.
func (x *truth) promotes(l *loop, s failover.Snapshot, d failover.Decision) {
	x.w.stats.promotions++
	target, _ := s.Site(d.Status.ActiveSite)
	forced := s.Policy.ForceTo == target.Name
	if forced && len(d.Status.Transition.Evidence) > 0 && strings.HasPrefix(d.Status.Transition.Evidence[0], "ordered by a person") {
		x.ordered[d.Status.Epoch] = true
	}
	if target.Role == v1alpha1.DROnly || target.Removed {
		x.w.fail("I6", "%s is promoted: role %q, removed %v", target.Name, target.Role, target.Removed)
	}
	if target.KeptFenced {
		x.w.fail("I29", "%s is promoted, and a person keeps it fenced", target.Name)
	}
	noted, first := l.cache.volumes[target.Name], d.Status.Transition.Kind == v1alpha1.FailoverBootstrap
	if p := x.w.podAt(x.w.siteOf(target.Name)); !first && !forced && (!target.Provisioned || p != nil && noted != "" && p.vol.id != noted && l.knowsVolume(target.Name)) {
		x.w.fail("I12", "%s is promoted on a volume that does not hold the group's data", target.Name)
	}
	if target.Busy != "" {
		x.w.fail("I10", "%s is promoted while it is cloned", target.Name)
	}
	x.besideOthers(l, s, target, !forced && !first)
	if t := d.Status.Transition; !forced && !first && t.From != t.To {
		x.rows(target)
	}
	x.budget(l, s, d, forced)
	if left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed); !left.IsEmpty() && !forced {
		x.w.fail("I8", "%s is promoted with %s in its relay log", target.Name, left)
	}
}

// besideOthers holds that nobody else is seen to accept writes, and, unless it was ordered, that the target lacks nothing of theirs.
func (x *truth) besideOthers(l *loop, s failover.Snapshot, target failover.Site, whole bool) {
	for _, site := range s.Sites {
		if site.Name == target.Name {
			continue
		}
		if site.Writable() && site.Busy == "" {
			x.w.fail("I1", "%s is promoted while %s is seen to accept writes", target.Name, site.Name)
		}
		if whole {
			x.lacks(l, target, site)
		}
	}
}

// knowsVolume is true if this operator has heard from the pod that runs for a site now.
func (l *loop) knowsVolume(site string) bool {
	if l.facts == nil {
		return false
	}
	p := l.r.w.podAt(l.r.w.siteOf(site))
	seen, _ := l.facts.snapshot.Site(site)
	return seen.Sidecar.Answered && seen.Sidecar.Report.PodUID == p.uid
}

// lacks holds I7: another site has nothing that a promoted one lacks, unless it was written off.
func (x *truth) lacks(l *loop, target, site failover.Site) {
	lacks := site.All().Subtract(target.All())
	if lacks.IsEmpty() || !site.MySQL.Direct || !site.Provisioned || site.OtherVolume || site.Busy != "" {
		return
	}
	if holds, seen := l.seen[site.Name]; !seen || x.errant(holds) {
		return
	}
	if good, waits := waitsToBeCompared(l.durable.Records, site.Name); waits {
		// What it alone has was written off when its successor was promoted, and is not known to be good (I10).
		lacks = lacks.Intersect(good)
	}
	if !lacks.IsEmpty() {
		x.w.fail("I7", "%s is promoted without %s, which %s has", target.Name, lacks, site.Name)
	}
}

// budget holds G3: of what the old active site was ever seen to have, no more is lost than the spec allows. What that is, is
// taken from the servers' own histories at the looks that they answered, not from what the core remembers of them. What it accepted
// after the last look is not bounded, and not judged here.
func (x *truth) budget(l *loop, s failover.Snapshot, d failover.Decision, forced bool) {
	t := d.Status.Transition
	if s.Policy.MaxLost == nil || forced || t.Kind != v1alpha1.FailoverEmergency || t.From == t.To {
		return
	}
	target, from := x.w.podAt(x.w.siteOf(t.To)), x.w.siteOf(t.From)
	if t.FromExecuted.IsEmpty() {
		x.w.fail("G3", "%s is promoted although nobody knows what %s had; %d may be lost", t.To, t.From, *s.Policy.MaxLost)
	}
	if target == nil || from == nil || from.tampered {
		return
	}
	told := x.told[t.From].union(l.told[t.From])
	if lost := told.without(target.vol.executed); lost > *s.Policy.MaxLost {
		x.w.fail("G3", "%s is promoted without %d transactions that %s was seen to have; %d may be lost", t.To, lost, t.From, *s.Policy.MaxLost)
	}
	x.w.count("loss budget kept")
}

// begins holds G4: no emergency failover begins when the owner has forbidden it.
func (x *truth) begins(s failover.Snapshot, d failover.Decision) {
	t := d.Status.Transition
	if s.Status.Transition != nil || t == nil || t.Kind != v1alpha1.FailoverEmergency || t.From == t.To { // opened again, in another pod: no role moves
		return
	}
	switch {
	case s.Policy.Mode != v1alpha1.FailoverAuto:
		x.w.fail("G4", "a failover begins in mode %s", s.Policy.Mode)
	case s.Now.Before(s.Status.CooldownUntil):
		x.w.fail("G4", "a failover begins in the cooldown")
	case s.Now.Before(s.Policy.PausedUntil):
		x.w.fail("G4", "a failover begins while it is paused")
	}
}

// waitsToBeCompared is true for a site that was replaced as the active site and is left out until it was compared (I10), but
// for what its successor had when that was promoted.
func waitsToBeCompared(records []v1alpha1.FailoverRecord, site string) (gtid.Set, bool) {
	for _, r := range records {
		if r.To == site || r.From == site {
			good, err := gtid.Parse(r.ToExecuted)
			return good, err == nil && r.From == site && !r.LossExact
		}
	}
	return gtid.Set{}, false
}

// seesErrant counts how often a leader could have seen that a site is diverged.
func (x *truth) seesErrant(s failover.Snapshot) {
	for _, site := range s.Sites {
		own := x.w.siteOf(site.Name)
		p := x.w.podAt(own)
		switch {
		case p == nil || site.Name == s.Status.ActiveSite || !site.MySQL.Direct || !site.Provisioned || site.OtherVolume:
		case x.errant(p.vol.executed.union(p.vol.retrieved)):
			x.errantSeen[site.Name]++
		default:
			delete(x.errantSeen, site.Name)
		}
	}
}

// record holds G1: a loss that is called exact is the true one, and one that is not is never above it.
func (x *truth) record(r v1alpha1.FailoverRecord) {
	o, known := x.openings[r.Epoch]
	if !known || x.checked[r.Epoch] || r.From != o.from {
		return
	}
	from := x.w.siteOf(r.From)
	if x.newest.epoch < r.Epoch || from == nil || from.tampered {
		return
	}
	// Settled late, a loss is what the present active site lacks: a failover in between may have lost it, not this one.
	now := o.lost
	if x.newest.vol != nil {
		now = o.all.without(x.newest.vol.executed)
	}
	wrong := r.LostTransactions > max(o.lost, now) || r.LossExact && r.LostTransactions != o.lost && r.LostTransactions != now
	if wrong {
		x.w.fail("G1", "the record of epoch %d says %d transactions of %s lost (exact: %v); it were %d", r.Epoch, r.LostTransactions,
			r.From, r.LossExact, o.lost)
	}
	if r.LossExact {
		x.checked[r.Epoch] = true
		if r.From != r.To {
			x.w.count("loss exact")
		}
	}
}

// performs holds what must be true when an effect is carried out.
func (x *truth) performs(s failover.Snapshot, d failover.Decision, effect failover.Effect) {
	open, is := effect.(failover.Open)
	if !is {
		return
	}
	site, _ := s.Site(open.Site)
	if site.Role == v1alpha1.DROnly || site.Removed {
		x.w.fail("I6", "%s is asked to open: role %q, removed %v", open.Site, site.Role, site.Removed)
	}
	if site.KeptFenced {
		x.w.fail("I29", "%s is asked to open, and a person keeps it fenced", open.Site)
	}
	if open.Site != d.Status.ActiveSite || d.Status.Epoch > x.epoch {
		x.w.fail("I2", "%s is asked to open under epoch %d, active site %s, persisted %d", open.Site, d.Status.Epoch, d.Status.ActiveSite, x.epoch)
	}
}

// dropsRelayLog holds I8: what was received and not applied is not thrown away, unless the new source has it too.
func (x *truth) dropsRelayLog(m *mysqld, source string) {
	if m.vol.executed.contains(m.vol.retrieved) || x.w.api.group.forceTo == m.pod.site.name {
		return
	}
	if next := x.w.serverOf(source); next != nil && next.vol.executed.contains(m.vol.retrieved) || x.errant(m.vol.retrieved) {
		return
	}
	x.w.fail("I8", "%s throws away its relay log: it holds %v, of which %v is applied", m, m.vol.retrieved, m.vol.executed)
}

// attached holds I10: a site that is known to be diverged is never attached, nor one that accepts writes.
func (x *truth) attached(m *mysqld, source string) {
	s := m.pod.site
	if m.accepts() && !m.tampered {
		x.w.fail("I10", "%s accepts writes and is made a replica of %s", m, source)
	}
	held := m.vol.executed.union(m.vol.retrieved)
	if x.newest.site != s.name && x.errant(held) && (x.errantSeen[s.name] >= errantKnown || x.unsettled(s, m.vol)) {
		x.w.fail("I10", "%s is attached to %s with transactions that are known to be written off: it holds %v", m, source, held)
	}
}

// cloneWouldDestroy holds that a clone never throws away what exists nowhere else.
func (x *truth) cloneWouldDestroy(m, donor *mysqld) bool {
	held := m.vol.executed.union(m.vol.retrieved)
	if own := m.vol.server; m.tampered {
		held[own] = min(held[own], m.vol.handFrom) // what a person with SUPER commits at this very moment is theirs: docs/internals/fence.md
	}
	if !donor.vol.executed.contains(held) && m.vol.clone != cloneFailed {
		x.w.fail("G5", "%s is cloned from %s and holds %v", m, donor, held)
		return true
	}
	return false
}

// cloned: what was there is gone, and the supervisor makes it another server. A run has so many servers only: when there is none
// left, one that would hand out no number again stays what it was.
func (x *truth) cloned(m *mysqld) {
	delete(x.errantSeen, m.pod.site.name)
	v, w := m.vol, x.w
	if w.servers == maxServers {
		w.over = w.over || v.executed[v.server] < x.given[v.server]
		return
	}
	w.order = append(w.order, w.servers)
	v.server = w.servers
	w.servers++
}

// atRest holds liveness: once all faults are over, the group comes to rest within settleFor. It returns true when it has.
func (w *world) atRest() bool {
	why := w.restless()
	if why == "" {
		if w.truth.restSince == 0 {
			w.truth.restSince = w.now
		}
		return w.now-w.truth.restSince > 3*time.Second
	}
	w.truth.restSince = 0
	d := w.truth.last
	if d.Blocked() && d.Reason == v1alpha1.ReasonCooldown && w.now < faultsFor+cooldownMost {
		w.truth.healedAt = w.now // it goes on when that ends
	}
	settleFor := settleFor
	if w.unknownVolume() && w.now < faultsFor+memory.RunsKept+settleFor {
		w.truth.healedAt = w.now // the same
	}
	if w.moved {
		settleFor += memory.RunsKept // until then a pod that is gone may be left
	}
	if w.now < w.truth.healedAt+settleFor {
		return false
	}
	if w.explained(d) {
		if w.obeys(d) {
			return false
		}
		w.count("at rest: " + string(d.Reason))
		return true
	}
	w.fail("live", "not at rest %s after the last fault: %s; %s %s %s: %s", settleFor, why, d.Topology, d.Verdict, d.Reason, d.Message)
	return true
}

// unknownVolume is true if the operator knows of a pod that was gone before its sidecar told which volume it has: no successor's lock
// proves that such a one has ended.
func (w *world) unknownVolume() bool {
	for _, runs := range w.api.group.durable.Runs {
		for _, r := range runs {
			exists := slices.ContainsFunc(w.api.pods, func(p *pod) bool { return p.uid == r.UID })
			if r.Volume == "" && !exists {
				return true
			}
		}
	}
	return false
}

// restless is why the group is not at rest: exactly one site is open, the one that status names, and every site that holds
// the group's data and has not diverged follows it.
func (w *world) restless() string {
	durable := w.api.group.durable
	active := w.siteOf(durable.ActiveSite)
	switch {
	case durable.Transition != nil:
		return "a transition is under way"
	case active == nil:
		return "no active site"
	}
	p := w.podAt(active)
	if p == nil || !p.mysqld.running() || !p.mysqld.accepts() {
		return active.name + " is not open"
	}
	for _, s := range w.sites {
		if s == active || s.removed {
			continue
		}
		r := w.podAt(s)
		_, diverged := w.api.group.errant[s.name]
		switch {
		case diverged:
		case r == nil || !r.mysqld.running() || !r.mysqld.serving:
			return s.name + " has no server"
		case !w.api.group.provisioned[s.name] && !p.vol.executed.contains(r.vol.executed.union(r.vol.retrieved)):
			// A clone would destroy what nobody else has: the controller says so (CloneRefused), and waits for a person.
		case w.truth.errant(r.vol.executed.union(r.vol.retrieved)):
			return s.name + " holds errant transactions and is not called diverged"
		case !w.api.group.provisioned[s.name]:
			return s.name + " is not provisioned"
		case r.vol.source != active.name || r.mysqld.connected != p.mysqld || !r.mysqld.applier:
			return s.name + " does not follow " + active.name
		}
	}
	return ""
}
