// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"maps"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// vouches is which peers this sidecar answered, and when. There are never more names than peers. The maps are never
// changed, only replaced.
type vouches struct {
	// now: under the newest epoch. lower: under any epoch below it.
	now   map[string]time.Duration
	lower map[string]time.Duration
}

// lowered is the table once a newer epoch is known: all answers so far were given under a lower one.
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

// vouchGuards say why the sidecar does not answer a peer. Each is safe alone and in any order: at worst, a peer without
// an answer is fenced.
var vouchGuards = []guard[string]{
	{AskerIsSelf, "a site does not vouch for itself", askerIsSelf},
	{AskerIsNoPeer, "the one who asks is no other site of this group", askerIsNoPeer},
	{NoStatement, "no statement is known here yet", func(s State, _ string) bool { return s.word.Epoch == 0 }},
	{NotDurable, "the newest statement is not on the data volume yet", wordNotDurable},
	{NotVerified, "the statement kept here does not fit the authority's key", notVerified},
	{NotHeard, "the operator did not answer this site yet", notHeard},
}

// Answer gives a peer that asks the newest statement known here, or a refusal. An answer keeps that peer's lease alive,
// so the state remembers it.
func Answer(s State, asking string, now Instant) (State, wire.Signed, Refusal) {
	if r := firstRefusal(vouchGuards, s, asking); r.Reason != "" {
		return s, "", r
	}
	s.vouched = s.vouched.with(asking, now.Mono)
	return s, s.signed, Refusal{}
}

// askerIsSelf: a request that came back by a wrong address would keep an isolated site open for ever (I4).
func askerIsSelf(s State, asking string) bool { return asking == s.site.Name }

// askerIsNoPeer: every site that this sidecar answers is in its table and in every report, so a stranger could make a report
// too long for the operator, which would then hear of no site. A site that was added since this pod started is refused too,
// which is safe: the operator keeps its lease alive, and this pod is replaced by one that knows it.
func askerIsNoPeer(s State, asking string) bool { return !s.site.HasPeer(asking) }

// wordNotDurable: after a crash this sidecar would vouch for an older epoch than it passed on before (I5).
func wordNotDurable(s State, _ string) bool { return s.kept.Statement.Epoch < s.word.Epoch }

// notVerified: the peer would refuse it, but this sidecar would count it.
func notVerified(s State, _ string) bool { return !s.verified }

// notHeard: on a new volume nothing shows which epochs this site acknowledged before. Until the operator itself answers,
// a statement that came from a peer could be older than one that this site acknowledged (I2).
func notHeard(s State, _ string) bool { return !s.heard }

// Vouched lists the peers that this sidecar answered under an epoch below its present one, and how long ago it last did; sorted.
func Vouched(s State, now Instant) []wire.Vouch {
	list := make([]wire.Vouch, 0, len(s.vouched.lower))
	for _, site := range slices.Sorted(maps.Keys(s.vouched.lower)) {
		list = append(list, wire.Vouch{Site: site, AgeMillis: (now.Mono - s.vouched.lower[site]).Milliseconds()})
	}
	return list
}

// Report says what is known of the site without another look at it. It acknowledges only a durable epoch (I5).
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
		// An opening that was cut off may still take effect inside mysqld, so read-only now proves nothing (I1): until a
		// look shows that the process has ended, the report claims nothing.
		r.MysqldRunning, r.Answered, r.Fenced = true, false, false
	}
	return r
}
