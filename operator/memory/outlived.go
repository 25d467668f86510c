// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// If a site is seen to accept writes after its lease must have ended, nothing fences it: its sidecar is dead or hangs, and so does
// what should have ended mysqld then. The promotion gate must no longer count on its lease (I4).

// rememberLease keeps when a site was last seen writable, until when its lease may last, and whether the site outlived it.
func rememberLease(s facts.Snapshot, was facts.SiteMemory, m *facts.Memory, site facts.Site) {
	name, is := site.Name, m.At(site.Name)
	is.WritableAt = was.WritableAt
	if site.Writable() {
		// The look was taken in this poll, perhaps at its beginning, so a site that closes in time is not called late.
		is.WritableAt = s.Now.Add(-facts.AskTimeout)
	}
	longest := LongestLease(s, *m, name)
	heard := was.HeardUntil
	if told := leaseTold(s, site, longest); told > 0 {
		heard = gate.Later(heard, site.Sidecar.At.Add(told))
	}
	is.HeardUntil = heard
	until := gate.Later(heard, gate.Later(s.Renewed[name], s.LeaderSince).Add(longest))
	switch {
	case is.WritableAt.After(until.Add(gate.Margin(longest))):
		is.Outlived = true
	case heard.After(s.Now) && site.ShutBut(site.Pod.UID):
		// Its sidecar says that it has a lease, and no other pod was seen. A new leader, which only assumes a lease, forgets nothing here (I9).
	case was.Outlived || slices.Contains(s.Status.Outlived, name):
		is.Outlived = true
	}
}

// leaseTold is how long a site may stay open after its report, the fence's deadline included; 0 if there is no report, or no lease. A
// sidecar of an older version does not say how long its lease lasts, so the lease may have been renewed just then.
func leaseTold(s facts.Snapshot, site facts.Site, longest time.Duration) time.Duration {
	told := site.Sidecar.Report.LeaseMillis
	switch {
	case !(site.Sidecar.Answered || site.Sidecar.Deaf) || site.OtherVolume:
		return 0
	case told == nil:
		return longest
	case *told <= 0:
		return 0
	}
	return min(longest, time.Duration(*told)*time.Millisecond+longest-s.Policy.LeaseTimeout)
}

// Outlived says that time proves nothing about a site; empty if its lease can be counted on.
func Outlived(m facts.Memory, x string, leaseEnd time.Time) string {
	if !(gate.Site{Outlived: m.Of(x).Outlived, WritableAt: m.Of(x).WritableAt}).OutlivedBy(leaseEnd) {
		return ""
	}
	return OutlivedWords(x)
}

// OutlivedWords says to people that the lease of site x no longer proves anything.
func OutlivedWords(x string) string {
	return fmt.Sprintf("%s was seen to accept writes after its lease must have ended, so nothing fences it, and no waiting proves that it stopped", x)
}

// OutlivedAndSilent says why time could not end a failover away from a silent active site; empty if it could, or if there may be
// proof, which only a failover that has begun can find.
func OutlivedAndSilent(s facts.Snapshot, m facts.Memory) string {
	a, known := s.Site(s.Status.ActiveSite)
	if known && (a.Reachable() || a.Gone() || a.Pod.OutOfService) {
		return ""
	}
	return Outlived(m, s.Status.ActiveSite, s.Now)
}
