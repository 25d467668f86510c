// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"maps"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// onKnownVolumes marks the sites that were last seen on another volume and whose sidecar does not answer now: one lost
// answer must not make an empty volume pass for the one that holds the data (I12).
func onKnownVolumes(s Snapshot, old Memory) Snapshot {
	s.Sites = slices.Clone(s.Sites)
	for i := range s.Sites {
		if !s.Sites[i].Sidecar.Answered && old.OtherVolume[s.Sites[i].Name] {
			s.Sites[i].OtherVolume = true
		}
	}
	return s
}

// remember folds a poll into what is remembered. It returns a copy; the old memory stays as it was.
func remember(s Snapshot, old Memory) Memory {
	m := Memory{
		DownSince:   map[string]time.Time{},
		SilentPolls: map[string]int{},
		Executed:    map[string]gtid.Set{},
		PreviousAll: map[string]gtid.Set{},
		Acks:        map[string]Ack{},
		FencedBySQL: maps.Clone(old.FencedBySQL),
		GoneSince:   map[string]time.Time{},
		Diverged:    map[string]gtid.Set{},
		Lease:       map[string]time.Duration{},
		UUID:        map[string]string{},
		LeavingOf:   map[string]time.Time{},
		ReopenSince: old.ReopenSince,

		IndirectSince: map[string]time.Time{}, OtherVolume: map[string]bool{}, Confirmed: map[string]string{},
		DrainSince: old.DrainSince, LastCandidateAt: map[string]time.Time{}, LaggedAt: map[string]time.Time{},
		FollowedAt: map[string]time.Time{}, OpenAt: old.OpenAt, AloneAt: map[string]time.Time{},
		WritableAt: map[string]time.Time{}, HeardUntil: map[string]time.Time{}, Outlived: map[string]bool{}, Listed: map[string]bool{}, StalledSince: map[string]time.Time{},
	}
	if m.FencedBySQL == nil {
		m.FencedBySQL = map[string]SQLFence{}
	}
	if s.Status.Transition != nil && m.DrainSince.IsZero() {
		m.DrainSince = s.Now // the operator restarted: the target gets its whole time again (I9)
	}
	active, _ := s.Site(s.Status.ActiveSite)
	if active.Writable() {
		m.OpenAt = s.Now
	}
	leaver := active
	if planned(s.Status.Transition) {
		leaver, _ = s.Site(s.Status.Transition.From)
	}
	if leaver.Leaving != "" {
		m.LeavingSince = orNow(old.LeavingSince, s.Now)
	}
	for _, site := range s.Sites {
		if site.Leaving != "" {
			m.LeavingOf[site.Name] = orNow(old.LeavingOf[site.Name], s.Now)
		}
		rememberSite(s, old, &m, site)
		if errant, known := errantOf(site, active, old, s); known && !errant.IsEmpty() {
			m.Diverged[site.Name] = errant
		} else if set, was := old.Diverged[site.Name]; was && !known && !isHistory(s, site) && !isCovered(s, site) {
			// Not comparable now: what was found stays found, so that a diverged site never becomes a candidate by silence.
			m.Diverged[site.Name] = set
		}
	}
	return m
}

func rememberSite(s Snapshot, old Memory, m *Memory, site Site) {
	rememberSilence(s, old, m, site)
	rememberServer(s, old, m, site)
	rememberProof(s, old, m, site)
	rememberLease(s, old, m, site)
}

// rememberSilence counts since when what does not answer.
func rememberSilence(s Snapshot, old Memory, m *Memory, site Site) {
	name := site.Name
	m.LaggedAt[name], m.LastCandidateAt[name], m.FollowedAt[name] = old.LaggedAt[name], old.LastCandidateAt[name], old.FollowedAt[name]
	if m.AloneAt[name] = old.AloneAt[name]; isUnescrowed(s, old, site) != "" {
		m.AloneAt[name] = s.Now
	}
	if active, _ := s.Site(s.Status.ActiveSite); active.Writable() && active.Name != name && site.Follows(active) {
		m.FollowedAt[name] = s.Now
	}
	if !readable(s, site) {
		m.LaggedAt[name] = s.Now
	}
	if since := old.StalledSince[name]; stalls(site) || !site.Sidecar.Answered && !since.IsZero() {
		m.StalledSince[name] = orNow(since, s.Now) // one lost answer is no word that it takes writes again
	}
	if site.Unusable() {
		m.DownSince[name] = orNow(old.DownSince[name], s.Now.Add(-silentFor(s, site)))
	}
	if !site.MySQL.Direct {
		m.IndirectSince[name] = orNow(old.IndirectSince[name], s.Now)
	}
	if site.Gone() {
		m.GoneSince[name] = orNow(old.GoneSince[name], s.Now)
	}
	if !site.Sidecar.Answered && !site.Writable() {
		m.SilentPolls[name] = old.SilentPolls[name] + 1
	}
}

// silentFor is for how long a site's MySQL was silent when that is first seen here. Its sidecar looks more often than the
// operator does; never more than what may have passed since the last poll, when it was not silent.
func silentFor(s Snapshot, site Site) time.Duration {
	if !site.Sidecar.Answered || site.Sidecar.Report.Answered {
		return 0
	}
	return max(0, min(time.Duration(site.Sidecar.Report.SilentMillis)*time.Millisecond, s.Policy.PollInterval))
}

// rememberServer keeps what is known of a site's server, volume and pod while it does not answer.
func rememberServer(s Snapshot, old Memory, m *Memory, site Site) {
	name := site.Name
	m.OtherVolume[name], m.Confirmed[name] = site.OtherVolume, old.Confirmed[name]
	if site.Sidecar.Answered && !site.OtherVolume {
		m.Confirmed[name] = site.Pod.UID
	}
	m.Executed[name], m.UUID[name] = old.Executed[name], old.UUID[name]
	if site.SQLAnswers() && !site.OtherVolume {
		// What a server on a new volume says is not what the old one had.
		m.Executed[name], m.UUID[name] = site.MySQL.Executed, site.MySQL.ServerUUID
	}
	if site.SQLAnswers() {
		m.PreviousAll[name] = site.All() // to be compared, whatever volume it is on
	}
	m.Lease[name] = site.Pod.Lease
	replaced := s.Status.Transition != nil && s.Status.Transition.From == name
	if site.Pod.Lease == 0 || site.Unusable() || site.OtherVolume || replaced {
		// The pod that may still run is perhaps not the one that is seen now.
		m.Lease[name] = max(old.Lease[name], site.Pod.Lease)
	}
}

// rememberProof keeps acknowledgements and fences for as long as they prove something.
func rememberProof(s Snapshot, old Memory, m *Memory, site Site) {
	name := site.Name
	if site.Listed || old.Listed[name] {
		m.Listed[name] = true // also when the pod is not seen any more, and status is not as new as it was
	}
	if ack, was := old.Acks[name]; was {
		m.Acks[name] = ack
	}
	if site.Sidecar.Answered && !site.OtherVolume {
		// Another volume is another witness: who acknowledged before may still run on the one that was recorded.
		m.Acks[name] = acknowledge(m.Acks[name], site, s.Sites)
	}
	if site.Writable() || site.OtherVolume {
		// Somebody opened it since, or it is not the server that matters: the read-back proves nothing.
		delete(m.FencedBySQL, name)
	}
}

// acknowledge merges a report into what a sidecar has acknowledged. Within one epoch the earliest bound on a vouch is
// kept: once the epoch is on the sidecar's volume it never vouches below it again, also after a restart. Another pod may have run
// meanwhile, so its bound is its own.
func acknowledge(ack Ack, site Site, sites []Site) Ack {
	r, at := site.Sidecar.Report, site.Sidecar.At
	fresh := Ack{Epoch: r.Epoch, PodUID: site.Pod.UID, Fenced: r.FencedUnder(r.Epoch), LastVouch: map[string]time.Time{}}
	for _, other := range sites {
		if other.Name == r.Site {
			continue
		}
		bound := at.Add(-r.VouchAge(other.Name))
		if known, was := ack.LastVouch[other.Name]; was && ack.Epoch == r.Epoch && ack.PodUID == fresh.PodUID && known.Before(bound) {
			bound = known
		}
		fresh.LastVouch[other.Name] = bound
	}
	return fresh
}
