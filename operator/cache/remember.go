// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"slices"
	"time"
)

// remember notes since when each fact holds.
func remember(s Snapshot, m Memory) Memory {
	m.Began = orNow(m.Began, s.Now)
	if m.StillEpoch != s.MySQL.Epoch {
		m.StillSince, m.StillEpoch = time.Time{}, s.MySQL.Epoch
	}
	m.StillSince = since(m.StillSince, s.Now, !s.MySQL.Moving)
	if m.Failed != nil && (s.Request == nil || *s.Request != m.Failed.Request) {
		m.Failed = nil
	}
	sites := map[string]SiteMemory{}
	maps.Copy(sites, m.Sites)
	active := s.Pod(s.Status.ActiveSite)
	for _, p := range withActive(s) {
		is := sites[p.Site]
		is.AwaySince, is.LinkedSince = since(is.AwaySince, s.Now, !p.Master()), since(is.LinkedSince, s.Now, p.Follows(active.Site))
		is.BehindSince = since(is.BehindSince, s.Now, p.Follows(active.Site) && farBehind(active, p))
		is.SilentSince = since(is.SilentSince, s.Now, !p.Reachable)
		if is.FullAt = lastFull(is.FullAt, s.Now, p); is.FullAt.IsZero() {
			is.FullTold = false
		}
		is.MissedSince = missed(is.MissedSince, s, m, p)
		is.ApartSince = since(is.ApartSince, s.Now, p.Apart(active.Site))
		if active.Master() && active.Run == s.Status.ActiveRun {
			is.HeldRun = ""
			if p.Follows(active.Site) {
				is.HeldRun = active.Run
			}
		}
		sites[p.Site] = is
	}
	m.Sites, m.LookedAt = sites, s.Now
	return m
}

// lastFull is when a cache was last full. Applications come and go, so one that has a place now may have none in a moment.
func lastFull(before, now time.Time, p Pod) time.Time {
	switch {
	case p.Full:
		return now
	case now.Sub(before) >= fullQuiet:
		return time.Time{}
	}
	return before
}

// missed is since when the master of a site is missed. Its clock stands still while it refuses the operator because it is full, and while no
// cache answers and its pod is there.
func missed(before time.Time, s Snapshot, m Memory, p Pod) time.Time {
	reached := slices.ContainsFunc(s.Pods, func(p Pod) bool { return p.Reachable })
	switch {
	case p.Master():
		return time.Time{}
	case (reached || !p.Exists) && !s.refuses(p):
		return orNow(before, s.Now)
	case !before.IsZero():
		return before.Add(s.Now.Sub(m.LookedAt))
	}
	return time.Time{}
}

// withActive is every pod, and the master's site if that is not among them: it left the specification and has no pod. Another cache takes
// its place only if it is known since when it is away.
func withActive(s Snapshot) []Pod {
	active := s.Status.ActiveSite
	if active == "" || slices.ContainsFunc(s.Pods, func(p Pod) bool { return p.Site == active }) {
		return s.Pods
	}
	return append(slices.Clone(s.Pods), s.Pod(active))
}

func since(before, now time.Time, so bool) time.Time {
	if !so {
		return time.Time{}
	}
	return orNow(before, now)
}

func orNow(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}
