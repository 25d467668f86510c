// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"maps"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
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
		ReopenSince: old.ReopenSince,

		IndirectSince: map[string]time.Time{}, OtherVolume: map[string]bool{}, Confirmed: map[string]string{},
		DrainSince: old.DrainSince,
	}
	if m.FencedBySQL == nil {
		m.FencedBySQL = map[string]SQLFence{}
	}
	if s.Status.Transition != nil && m.DrainSince.IsZero() {
		m.DrainSince = s.Now // the operator restarted: the target gets its whole time again (I9)
	}
	active, _ := s.Site(s.Status.ActiveSite)
	for _, site := range s.Sites {
		rememberSite(s, old, &m, site)
		if errant, known := errantOf(site, active, old, s); known && !errant.IsEmpty() {
			m.Diverged[site.Name] = errant
		} else if set, was := old.Diverged[site.Name]; was && !known {
			// Not comparable now: what was found stays found, so that a diverged site never becomes a candidate by silence.
			m.Diverged[site.Name] = set
		}
	}
	return m
}

func rememberSite(s Snapshot, old Memory, m *Memory, site Site) {
	rememberSilence(s, old, m, site)
	rememberServer(old, m, site)
	rememberProof(s, old, m, site)
}

// rememberSilence counts since when what does not answer.
func rememberSilence(s Snapshot, old Memory, m *Memory, site Site) {
	name := site.Name
	if site.unusable() {
		m.DownSince[name] = orNow(old.DownSince[name], s.Now)
	}
	if !site.MySQL.Direct {
		m.IndirectSince[name] = orNow(old.IndirectSince[name], s.Now)
	}
	if site.gone() {
		m.GoneSince[name] = orNow(old.GoneSince[name], s.Now)
	}
	if !site.Sidecar.Answered && !site.Writable() {
		m.SilentPolls[name] = old.SilentPolls[name] + 1
	}
}

// rememberServer keeps what is known of a site's server, volume and pod while it does not answer.
func rememberServer(old Memory, m *Memory, site Site) {
	name := site.Name
	m.OtherVolume[name], m.Confirmed[name] = site.OtherVolume, old.Confirmed[name]
	if site.Sidecar.Answered && !site.OtherVolume {
		m.Confirmed[name] = site.Pod.UID
	}
	m.Executed[name], m.UUID[name] = old.Executed[name], old.UUID[name]
	if site.SQLAnswers() {
		m.Executed[name], m.UUID[name] = site.MySQL.Executed, site.MySQL.ServerUUID
		m.PreviousAll[name] = site.All()
	}
	m.Lease[name] = site.Pod.Lease
	if site.Pod.Lease == 0 || site.unusable() {
		// The pod that may still run is perhaps not the one that is seen now.
		m.Lease[name] = max(old.Lease[name], site.Pod.Lease)
	}
}

// rememberProof keeps acknowledgements and fences for as long as they prove something.
func rememberProof(s Snapshot, old Memory, m *Memory, site Site) {
	name := site.Name
	if ack, was := old.Acks[name]; was {
		m.Acks[name] = ack
	}
	if site.Sidecar.Answered && !site.OtherVolume {
		// Another volume is another witness: who acknowledged before may still run on the one that was recorded.
		m.Acks[name] = acknowledge(m.Acks[name], site.Sidecar.Report, site.Sidecar.At, s.Sites)
	}
	if site.Writable() || site.OtherVolume {
		// Somebody opened it since, or it is not the server that matters: the read-back proves nothing.
		delete(m.FencedBySQL, name)
	}
}

// acknowledge merges a report into what a sidecar has acknowledged. Within one epoch the earliest bound on a vouch is
// kept: once the epoch is on the sidecar's volume it never vouches below it again, also after a restart.
func acknowledge(ack Ack, r wire.Report, at time.Time, sites []Site) Ack {
	fresh := Ack{Epoch: r.Epoch, Fenced: r.FencedUnder(r.Epoch), LastVouch: map[string]time.Time{}}
	for _, other := range sites {
		if other.Name == r.Site {
			continue
		}
		bound := at.Add(-r.VouchAge(other.Name))
		if known, was := ack.LastVouch[other.Name]; was && ack.Epoch == r.Epoch && known.Before(bound) {
			bound = known
		}
		fresh.LastVouch[other.Name] = bound
	}
	return fresh
}

// errantOf compares what a site had in the poll before with what the active site has executed now. Reading the replica
// first and the primary last keeps a transaction in flight from looking errant.
func errantOf(site, active Site, old Memory, s Snapshot) (gtid.Set, bool) {
	previous, had := old.PreviousAll[site.Name]
	switch {
	case site.Name == active.Name, active.Name == "", s.Status.Transition != nil:
		return gtid.Set{}, false
	case !active.SQLAnswers() || !active.Writable() || !had || !site.Provisioned:
		return gtid.Set{}, false
	case !site.SQLAnswers():
		return gtid.Set{}, false
	}
	return previous.Subtract(active.MySQL.Executed), true
}
