// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/lineage"
)

// OnKnownVolumes marks the sites that were last seen on another volume and whose sidecar does not answer now: one lost
// answer must not make an empty volume pass for the one that holds the data (I12).
func OnKnownVolumes(s facts.Snapshot, old facts.Memory) facts.Snapshot {
	s.Sites = slices.Clone(s.Sites)
	for i := range s.Sites {
		if !s.Sites[i].Sidecar.Answered && old.Of(s.Sites[i].Name).OtherVolume {
			s.Sites[i].OtherVolume = true
		}
	}
	return s
}

// Remember folds a poll into what is remembered. It returns a copy; the old memory stays as it was.
func Remember(s facts.Snapshot, old facts.Memory) facts.Memory {
	m := facts.Memory{ReopenSince: old.ReopenSince, DrainSince: old.DrainSince, OpenAt: old.OpenAt}
	for name, site := range old.Sites {
		if site.FencedBySQL != (facts.SQLFence{}) {
			m.At(name).FencedBySQL = site.FencedBySQL // also of a site that this poll did not see
		}
		if site.Filtered != "" {
			m.At(name).Filtered = site.Filtered // a site that left the specification may come back with the volume that stayed (I7)
		}
	}
	if s.Status.Transition != nil && m.DrainSince.IsZero() {
		m.DrainSince = s.Now // the operator restarted: the target gets its whole time again (I9)
	}
	active, _ := s.Site(s.Status.ActiveSite)
	if active.Writable() {
		m.OpenAt = s.Now
	}
	leaver := active
	if s.Status.Transition.Moves() {
		leaver, _ = s.Site(s.Status.Transition.From)
	}
	if leaver.Leaving != "" {
		m.LeavingSince = OrNow(old.LeavingSince, s.Now)
	}
	for _, site := range s.Sites {
		if site.Leaving != "" {
			m.At(site.Name).LeavingSince = OrNow(old.Of(site.Name).LeavingSince, s.Now)
		}
		rememberSite(s, old, &m, site)
		errant, known := lineage.ErrantOf(site, active, old, s)
		if known {
			errant = withoutOnTheWay(s, old, m.At(site.Name), active, errant, site.Name)
		} else {
			m.At(site.Name).AheadSince = old.Of(site.Name).AheadSince
		}
		if !known && !lineage.IsHistory(s, site) && !lineage.IsCovered(s, site) {
			// Not comparable now: what was found stays found, so that a diverged site never becomes a candidate by silence.
			errant = old.Of(site.Name).Diverged
		}
		m.At(site.Name).Diverged = errant
	}
	lineage.MarkUnsettled(s, &m)
	return m
}

func rememberSite(s facts.Snapshot, old facts.Memory, m *facts.Memory, site facts.Site) {
	was, is := old.Of(site.Name), m.At(site.Name)
	rememberSilence(s, old, is, site)
	rememberServer(s, was, is, site)
	rememberProof(s, was, is, site)
	rememberLease(s, was, m, site)
}

// rememberSilence notes since when each part of a site does not answer.
func rememberSilence(s facts.Snapshot, old facts.Memory, is *facts.SiteMemory, site facts.Site) {
	was := old.Of(site.Name)
	is.LaggedAt, is.LastCandidateAt, is.FollowedAt = was.LaggedAt, was.LastCandidateAt, was.FollowedAt
	if is.AloneAt = was.AloneAt; site.Unescrowed() != "" {
		is.AloneAt = s.Now
	}
	if active, _ := s.Site(s.Status.ActiveSite); active.Writable() && active.Name != site.Name && site.Follows(active) {
		is.FollowedAt = s.Now
	}
	if !readable(s, site) {
		is.LaggedAt = s.Now
	}
	if since := was.StalledSince; site.Stalls() || !site.Sidecar.Answered && !since.IsZero() {
		is.StalledSince = OrNow(since, s.Now) // one lost answer does not say that it takes writes again
	}
	if site.Unusable() {
		is.DownSince = OrNow(was.DownSince, s.Now.Add(-silentFor(s, site)))
	}
	if !site.MySQL.Direct {
		is.IndirectSince = OrNow(was.IndirectSince, s.Now)
	}
	if site.Gone() {
		is.GoneSince = OrNow(was.GoneSince, s.Now)
	}
	if !site.Sidecar.Answered && !site.Writable() {
		is.SilentPolls = was.SilentPolls + 1
	}
}

// silentFor is how long a site's MySQL had been silent when the operator first saw that: its sidecar looks more often. It
// is never more than what may have passed since the last poll, when the site was not silent.
func silentFor(s facts.Snapshot, site facts.Site) time.Duration {
	if !site.Sidecar.Answered || site.Sidecar.Report.Answered {
		return 0
	}
	return max(0, min(time.Duration(site.Sidecar.Report.SilentMillis)*time.Millisecond, s.Policy.PollInterval))
}

// rememberServer keeps what is known about a site's server, volume and pod while it does not answer.
func rememberServer(s facts.Snapshot, was facts.SiteMemory, is *facts.SiteMemory, site facts.Site) {
	is.OtherVolume, is.Confirmed = site.OtherVolume, was.Confirmed
	if site.Sidecar.Answered && !site.OtherVolume {
		is.Confirmed = site.Pod.UID
	}
	is.Executed, is.Held, is.UUID = was.Executed, was.Held, was.UUID
	if site.SQLAnswers() && !site.OtherVolume {
		// What a server on a new volume says is not what the old one had.
		is.Executed, is.Held, is.UUID = site.MySQL.Executed, new(site.All()), site.MySQL.ServerUUID
	}
	is.Filtered = was.Filtered
	switch {
	case site.OtherVolume:
		// The server of another volume says nothing of the one that had the filter, which may come back (I7, I12).
	case site.Name == s.Status.ActiveSite && site.Writable():
		is.Filtered = "" // it was made active by order, or was never a replica: what it has is the group's data now
	case site.MySQL.Direct && site.MySQL.Filtered:
		is.Filtered = site.MySQL.ServerUUID
	case site.MySQL.Direct && site.Provisioned && site.MySQL.ServerUUID != was.Filtered:
		is.Filtered = "" // it was copied since
	}
	if site.SQLAnswers() {
		is.PreviousAll = new(site.All()) // to be compared, whatever volume it is on
	}
	is.Lease = site.Pod.Lease
	replaced := s.Status.Transition != nil && s.Status.Transition.From == site.Name
	if site.Pod.Lease == 0 || site.Unusable() || site.OtherVolume || replaced {
		// The pod that may still run is perhaps not the one that this poll saw.
		is.Lease = max(was.Lease, site.Pod.Lease)
	}
}

// rememberProof keeps acknowledgements and fences for as long as they prove something.
func rememberProof(s facts.Snapshot, was facts.SiteMemory, is *facts.SiteMemory, site facts.Site) {
	if site.Listed || was.Listed {
		is.Listed = true // even if the pod is no longer seen, and status is older than it was
	}
	is.Ack = was.Ack
	if site.Sidecar.Answered && !site.OtherVolume {
		// Another volume is another witness: the pod that acknowledged before may still run on the recorded volume.
		is.Ack = acknowledge(is.Ack, site, s.Sites)
	}
	if site.Writable() || site.OtherVolume {
		// It was opened since, or it is not the server that matters: the read-back proves nothing.
		is.FencedBySQL = facts.SQLFence{}
	}
}

// acknowledge merges a report into what a sidecar has acknowledged. Within one epoch it keeps the earliest bound on a vouch: once
// the epoch is on the sidecar's volume, the sidecar never vouches below it again, even after a restart. Another pod may have run
// meanwhile, so its bound is its own.
func acknowledge(ack *facts.Ack, site facts.Site, sites []facts.Site) *facts.Ack {
	r, at := site.Sidecar.Report, site.Sidecar.At
	fresh := &facts.Ack{Epoch: r.Epoch, PodUID: site.Pod.UID, Fenced: r.FencedUnder(r.Epoch), LastVouch: map[string]time.Time{}}
	for _, other := range sites {
		if other.Name == r.Site {
			continue
		}
		bound := at.Add(-r.VouchAge(other.Name))
		if ack != nil && ack.Epoch == r.Epoch && ack.PodUID == fresh.PodUID {
			if known, was := ack.LastVouch[other.Name]; was && known.Before(bound) {
				bound = known
			}
		}
		fresh.LastVouch[other.Name] = bound
	}
	return fresh
}

// readable is true for a replica that is near enough to be read from. A lag that is not known is too long for any limit.
func readable(s facts.Snapshot, site facts.Site) bool {
	lag := site.MySQL.LagSeconds
	return s.Policy.MaxReadLag == 0 || lag != nil && *lag <= s.Policy.MaxReadLag.Seconds()
}
