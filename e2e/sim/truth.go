// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/sidecar/fence"
	"github.com/mysql-mfg/mfg/sidecar/watchdog"
)

// truth is what really is, on the model's own time, and what must hold of it: docs/internals/invariants.md.
type truth struct {
	w *world
	// epoch is the greatest that was ever persisted, sites who was named under each.
	epoch int64
	sites map[int64]string
	// newest is the server that was opened last, under the greatest epoch.
	newest opened
	// acked is what clients were told is committed and was not lost in a failover that said so.
	acked history
	// given is how many numbers each server has handed out.
	given history
	// off are transactions that were written off in a failover, or that somebody wrote behind the operator's back.
	off      [maxServers][]span
	openings map[int64]opening
	// completed are the epochs under which a change of the active site was seen to its end.
	completed map[int64]bool
	// past is what was persisted at rest, for a backup; restored says that status went back to one.
	past     []failover.Durable
	standing int64
	restored bool
	// changes is what each epoch began.
	changes map[int64]failover.Transition
	checked map[int64]bool
	// errantSeen counts in how many healthy polls of a leader a site was seen with transactions that were written off.
	errantSeen map[string]int
	// told is what each site that was replaced was seen to have when that began.
	told     map[string]history
	healedAt time.Duration
	// obeyed is how many orders were given because status told so.
	obeyed    int
	restAt    time.Duration
	restSince time.Duration
	// ordered are the epochs under which a person accepted that a site that may still vouch is not waited for.
	ordered map[int64]bool
	last    failover.Decision
	lastAt  time.Duration
}

type opened struct {
	epoch int64
	m     *mysqld
	site  string
	vol   *volume
}

// opening is a change of the open site as it really was.
type opening struct {
	from string
	vol  *volume
	all  history
	lost int64
}

// span is transactions low+1 to high of one server.
type span struct{ low, high int32 }

// graceAfterThaw is the gap that docs/guarantees.md names: a machine that stood still finishes what it was about to do,
// until the supervisor of mysqld, which stood still with it, has looked at its deadline.
const graceAfterThaw = 2 * watchdog.Interval

func (x *truth) excused(m *mysqld) bool {
	return m.tampered || m.host.thawed > 0 && x.w.now-m.host.thawed < graceAfterThaw
}

// unguarded is true while the sidecar beside a server is dead or stands still, or has only just begun: it cannot have
// fenced by itself what somebody else opened. Who may write never depends on it.
func (x *truth) unguarded(m *mysqld) bool {
	s := m.pod.sidecar
	return s == nil || s.dead || s.frozen || x.w.now-s.guardedSince < time.Second
}

// writers holds I1 and I2: nobody but the server that was opened last accepts commits.
func (x *truth) writers() {
	for _, s := range x.w.sites {
		for _, p := range s.pods {
			m := p.mysqld
			if m == nil || !m.accepts() || m == x.newest.m || x.excused(m) || x.ordered[x.newest.epoch] {
				continue
			}
			if m.openEpoch == x.newest.epoch {
				x.w.fail("I1", "%s and %s accept commits under epoch %d", m, x.newest.m, m.openEpoch)
			}
			x.w.fail("I2", "%s accepts commits under epoch %d although %s was opened under epoch %d", m, m.openEpoch, x.newest.site, x.newest.epoch)
		}
	}
}

// leases holds I4: a server does not stay open for longer than its lease and the fence after its last good exchange.
func (x *truth) leases() {
	w := x.w
	for _, s := range w.sites {
		for _, p := range s.pods {
			if p.mysqld.running() {
				x.looseEnds(p.mysqld)
			}
		}
	}
	m := x.newest.m
	if m == nil || !m.accepts() || x.excused(m) {
		return
	}
	lease, told := m.pod.lease, time.Duration(0)
	if s := m.pod.sidecar; s.told > 0 && s.told < lease {
		lease, told = s.told, s.toldAt // it binds from when it was heard; the gate waits for what the pod was started with
	}
	// Before the gate can pass: on a clock that is faster by as much as these are, and counts from the exchange itself.
	most := failover.LeaseEnd(lease + w.policy.fenceTimeout)
	if since := max(m.goodAt, told-lease); w.now-since > most-most/100 {
		w.fail("I4", "%s accepts commits %s after its last exchange", m, w.now-since)
	}
}

// looseEnds holds I3: a server that is not read-only, and was not opened by right, is closed soon; and one that goes on
// under a later epoch follows it directly (I2).
func (x *truth) looseEnds(m *mysqld) {
	s, w := m.pod.sidecar, x.w
	if s == nil || s.dead || s.frozen || !s.serving || m.frozen || m.doomed || !m.serving || m.cloning && m.offline || m.slow > 0 || m.stuck > w.now || x.unguarded(m) {
		m.loose = 0
		return
	}
	_, window := s.state.Newest().WindowFor(m.pod.site.name, s.wall())
	right := m == x.newest.m && !m.tampered && m.openEpoch > 0
	if x.ordered[x.newest.epoch] && !m.tampered && m.openEpoch > 0 {
		m.loose = 0 // a person accepted that a site that may still be told that it is active is not waited for
		return
	}
	behind := right && s.state.Newest().Epoch > m.openEpoch
	if m.superReadOnly || window && m.offline || right && !behind {
		m.loose = 0
		return
	}
	if m.loose == 0 {
		m.loose = w.now
	}
	if w.now-m.loose < looseFor && (m.offline || w.now-m.loose < looseFor/2) {
		return
	}
	if behind {
		w.fail("I2", "%s goes on under epoch %d and knows %d", m, m.openEpoch, s.state.Newest().Epoch)
	}
	w.fail("I3", "%s is not read-only for %s, and was not opened", m, w.now-m.loose)
}

// looseFor is longer than a look, a ladder to its end, and another one.
const looseFor = 10 * time.Second

// born: a transaction is on the disk.
func (x *truth) born(v *volume, tampered bool) {
	n := v.executed[v.server]
	x.given[v.server] = max(x.given[v.server], n)
	if v == x.newest.vol {
		return
	}
	x.off[v.server] = append(x.off[v.server], span{n - 1, n})
	if tampered {
		return
	}
	// It was on its way when the machine stood still: it is lost like the others.
	for epoch, o := range x.openings {
		if o.vol == v {
			o.lost++
			x.openings[epoch] = o
		}
	}
}

// committed: a client was told so.
func (x *truth) committed(m *mysqld) {
	if m.tampered {
		return
	}
	x.w.stats.commits++
	if m != x.newest.m && (x.excused(m) || x.ordered[x.newest.epoch]) {
		x.w.count("commits in the gaps that are documented")
		return
	}
	x.acked[m.vol.server] = m.vol.executed[m.vol.server]
	if m != x.newest.m {
		x.w.fail("I2", "%s committed under epoch %d although %s was opened under epoch %d", m, m.openEpoch, x.newest.site, x.newest.epoch)
	}
}

// errant is true if a history holds transactions that were written off, or that nobody may have.
func (x *truth) errant(h history) bool {
	for server, spans := range x.off {
		for _, s := range spans {
			if h[server] > s.low {
				return true
			}
		}
	}
	return false
}

// opening holds I3, when writes are about to be opened on a word.
func (x *truth) opening(s *sidecar, w fence.Word) {
	x.escrowed(s)
	st := w.Statement
	switch {
	case w.Origin != fence.Operator || st.Nonce != w.Nonce:
		x.w.fail("I3", "%s opens on what it did not ask for", s.pod)
	case st.Namespace != namespace || st.Group != group || st.ActiveSite != s.pod.site.name:
		x.w.fail("I3", "%s opens on a statement for %s/%s/%s", s.pod, st.Namespace, st.Group, st.ActiveSite)
	case st.Hold:
		x.w.fail("I3", "%s opens although the statement holds", s.pod)
	case st.Epoch < s.heardEpoch || st.Epoch < s.pod.vol.acked:
		x.w.fail("I3", "%s opens under epoch %d and has seen %d", s.pod, st.Epoch, max(s.heardEpoch, s.pod.vol.acked))
	case s.mono()-w.SentAt >= 2*time.Second:
		x.w.fail("I3", "%s opens on an answer that is %s old", s.pod, s.mono()-w.SentAt)
	case s.pod.vol.kept.Statement.Epoch < st.Epoch:
		x.w.fail("I5", "%s opens under epoch %d before it is on its volume", s.pod, st.Epoch)
	case s.left:
		x.w.fail("I4", "%s opens while its sidecar ends", s.pod)
	}
	if m := s.pod.mysqld; m != nil && m.cloning {
		x.w.fail("I10", "%s opens while it is cloned", s.pod)
	}
}

// opened: a server accepts commits from here on.
func (x *truth) opened(m *mysqld, epoch int64) {
	w, s := x.w, m.pod.site
	d := w.api.group.durable
	tr := d.Transition
	forced := w.api.group.forceTo == s.name || tr != nil && tr.Kind == v1alpha1.FailoverForced || x.last.Status.Transition != nil && x.last.Status.Transition.Kind == v1alpha1.FailoverForced
	before := x.newest
	switch {
	case epoch < before.epoch:
		w.fail("I2", "%s opens under epoch %d after %s did under %d", m, epoch, before.site, before.epoch)
	case epoch == before.epoch && before.site != s.name && before.m != nil:
		w.fail("I1", "%s and %s open under epoch %d", m, before.site, epoch)
	case s.drOnly:
		w.fail("I6", "%s is dr-only and opens", m)
	}
	if t, changed := x.changes[epoch]; changed && epoch > before.epoch && t.Step == v1alpha1.TransitionOpening &&
		!w.sets.of(m.vol.executed).set.Contains(t.ToExecuted) {
		w.fail("G2", "%s is opened without all that it had when the gate was passed: it holds %v", m, m.vol.executed)
	}
	x.unsafe(m, forced)
	x.compare(m, epoch, forced)
	for server := range x.acked {
		x.acked[server] = min(x.acked[server], m.vol.executed[server])
		x.off[server] = dropSpans(x.off[server], m.vol.executed[server])
	}
	m.tampered = false
	x.newest = opened{epoch: epoch, m: m, site: s.name, vol: m.vol}
	delete(x.errantSeen, s.name)
	w.stats.openings++
	w.trace("%s is open under epoch %d, holds %v", m, epoch, m.vol.executed)
}

// unsafe holds I10, I8 of what is opened.
func (x *truth) unsafe(m *mysqld, forced bool) {
	s := m.pod.site
	if forced {
		return
	}
	if x.errant(m.vol.executed) && (x.errantSeen[s.name] >= errantKnown || x.unsettled(s, m.vol)) {
		x.w.fail("I10", "%s is opened with transactions that are known to be written off: it holds %v", m, m.vol.executed)
	}
	if m.vol.source != "" {
		x.w.fail("I10", "%s is opened while it replicates from %s", m, m.vol.source)
	}
}

// errantKnown is in how many healthy polls a site must have been seen before it has to be known as diverged.
const errantKnown = 4

// unsettled is true if the last record that names a site says that it was replaced, and either what it alone held is not
// known, or that it did hold something.
func (x *truth) unsettled(s *site, v *volume) bool {
	for _, r := range x.w.api.group.durable.Records {
		if r.To == s.name {
			return false
		}
		if !x.completed[r.Epoch] {
			continue // nobody saw the one that took its place open: it may take the role back
		}
		if r.From == s.name {
			same := r.FromServerUUID == "" || r.FromServerUUID == uuidOf(v.server)
			return same && (!r.LossExact || r.LostTransactions > 0)
		}
	}
	return false
}

// compare holds what is lost by a change of the open site against what may be lost.
func (x *truth) compare(m *mysqld, epoch int64, forced bool) {
	before := x.newest
	lost := x.acked.without(m.vol.executed)
	if before.vol == nil {
		return
	}
	tr, changed := x.changes[epoch]
	all := before.vol.executed.union(before.vol.retrieved)
	o := opening{from: before.site, vol: before.vol, all: all, lost: all.without(m.vol.executed)}
	if before.vol == m.vol {
		o.lost = 0
	}
	x.openings[epoch] = o
	for server := range all {
		if all[server] > m.vol.executed[server] && before.vol != m.vol {
			x.off[server] = append(x.off[server], span{m.vol.executed[server], all[server]})
		}
	}
	switch {
	case lost == 0 || forced:
	case !changed || before.epoch == epoch || tr.From == tr.To && before.site == m.pod.site.name:
		x.w.fail("G2", "%s is opened again and lacks %d acknowledged transactions", m, lost)
	case tr.Kind == v1alpha1.FailoverPlanned:
		x.w.fail("I13", "the planned failover to %s loses %d acknowledged transactions", m, lost)
	default:
		x.w.stats.lost += lost
	}
}

// dropSpans takes back what an opened server holds all the same: it is part of the history again.
func dropSpans(spans []span, held int32) []span {
	out := spans[:0]
	for _, s := range spans {
		if s.low = max(s.low, min(held, s.high)); s.low < s.high {
			out = append(out, s)
		}
	}
	return out
}
