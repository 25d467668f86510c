// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"maps"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// vouches is whom this sidecar answered when: peers alone, so there are never more names than peers. The maps are never
// changed, only replaced.
type vouches struct {
	// now: under the newest epoch. lower: under any epoch below it.
	now   map[string]time.Duration
	lower map[string]time.Duration
}

// lowered is the table once a newer epoch is known: all that was answered so far was answered under a lower one.
func (v vouches) lowered() vouches {
	lower := maps.Clone(v.lower)
	if lower == nil {
		lower = map[string]time.Duration{}
	}
	for site, at := range v.now {
		lower[site] = max(lower[site], at)
	}
	return vouches{lower: lower}
}

// with is the table after one more answer.
func (v vouches) with(site string, at time.Duration) vouches {
	now := maps.Clone(v.now)
	if now == nil {
		now = map[string]time.Duration{}
	}
	now[site] = max(now[site], at)
	return vouches{now: now, lower: v.lower}
}

// vouchGuards say why a peer is not answered. Each is safe alone and in any order: a peer that is not answered is
// fenced at worst.
var vouchGuards = []guard[string]{
	{AskerIsSelf, "a site does not vouch for itself", askerIsSelf},
	{AskerIsNoPeer, "the one who asks is no other site of this group", askerIsNoPeer},
	{NoStatement, "no statement is known here yet", func(s State, _ string) bool { return s.word.Epoch == 0 }},
	{NotDurable, "the newest statement is not on the data volume yet", wordNotDurable},
	{NotVerified, "the statement kept here does not fit the authority's key", notVerified},
	{NotHeard, "the operator did not answer this site yet", notHeard},
}

// Answer is what a peer gets that asks for the statement: the newest known here, or a refusal. The answer keeps that
// peer's lease alive, so it is remembered.
func Answer(s State, asking string, now Instant) (State, wire.Signed, Refusal) {
	if r := firstRefusal(vouchGuards, s, asking); r.Reason != "" {
		return s, "", r
	}
	s.vouched = s.vouched.with(asking, now.Mono)
	return s, s.signed, Refusal{}
}

// askerIsSelf: a request that came back by a wrong address would keep an isolated site open for ever (I4).
func askerIsSelf(s State, asking string) bool { return asking == s.site.Name }

// askerIsNoPeer: whom this sidecar answers stands in its table and in every report, so a stranger could make a report too
// long for the operator, which then hears of no site any more. A site that was added since this pod started is refused too,
// which is safe: the operator keeps its lease alive, and this pod is replaced by one that knows it.
func askerIsNoPeer(s State, asking string) bool { return !s.site.HasPeer(asking) }

// wordNotDurable: after a crash this sidecar would vouch for an older epoch than it told (I5).
func wordNotDurable(s State, _ string) bool { return s.kept.Statement.Epoch < s.word.Epoch }

// notVerified: the peer would refuse it, but this sidecar would count it.
func notVerified(s State, _ string) bool { return !s.verified }

// notHeard: on a new volume nothing tells which epochs this site acknowledged before. Until the operator itself says
// what stands, a statement that came from a peer could be older than one that was acknowledged (I2).
func notHeard(s State, _ string) bool { return !s.heard }

// Vouched lists whom this sidecar answered under an epoch below its present one, and how long ago last; sorted.
func Vouched(s State, now Instant) []wire.Vouch {
	list := make([]wire.Vouch, 0, len(s.vouched.lower))
	for _, site := range slices.Sorted(maps.Keys(s.vouched.lower)) {
		list = append(list, wire.Vouch{Site: site, AgeMillis: (now.Mono - s.vouched.lower[site]).Milliseconds()})
	}
	return list
}

// Report is what is known of the site without another look at it. Only a durable epoch is acknowledged (I5).
func Report(s State, now Instant) wire.Report {
	left := LeaseLeft(s, now).Milliseconds()
	r := wire.Report{
		Site: s.site.Name, Epoch: s.Epoch(), ActiveSite: s.kept.Statement.ActiveSite,
		MysqldRunning: s.seen.Running, Answered: s.seen.Answered,
		Writable: s.seen.Writable, SuperReadOnly: s.seen.SuperReadOnly, OfflineMode: s.seen.Offline, Fenced: s.shut,
		PreparedXA: s.prepared,
		FenceStage: s.last.Stage, FenceCause: s.last.Cause,
		Vouched: Vouched(s, now), UptimeMillis: (now.Mono - s.started).Milliseconds(), LeaseMillis: &left,
	}
	if s.unsure {
		// An opening that was cut off may still take effect inside mysqld, so read-only now proves nothing (I1): until the
		// end of the process is seen, nothing is claimed.
		r.MysqldRunning, r.Answered, r.Fenced = true, false, false
	}
	return r
}
