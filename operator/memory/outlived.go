// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// A site that is seen to accept writes after its lease must have ended has nobody who fences it: its sidecar is dead or hangs, and
// so does what should have ended mysqld then. The promotion gate must not count on its lease any more (I4).

// rememberLease keeps when a site was last seen writable, until when its lease may stand, and whether it outlived it.
func rememberLease(s facts.Snapshot, was facts.SiteMemory, m *facts.Memory, site facts.Site) {
	name, is := site.Name, m.At(site.Name)
	is.WritableAt = was.WritableAt
	if site.Writable() {
		// The look was taken in this poll, at its beginning perhaps: a site that closes in time is not called late.
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
	case is.WritableAt.After(until.Add(facts.LeaseMargin)):
		is.Outlived = true
	case heard.After(s.Now) && site.ShutBut(site.Pod.UID):
		// Its sidecar is there and has a lease, and it is no other pod that was seen. A new leader, which only has to assume one, forgets nothing here (I9).
	case was.Outlived || slices.Contains(s.Status.Outlived, name):
		is.Outlived = true
	}
}

// leaseTold is how long a site may stay open after its report, the fence's deadline included; 0 if it says nothing of that, or has no
// lease. A sidecar of an older version does not say for how long its lease stands, so it may have been renewed just then.
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

// Outlived says that time proves nothing of a site; empty if its lease can be counted on.
func Outlived(m facts.Memory, x string, leaseEnd time.Time) string {
	if !(gate.Site{Outlived: m.Of(x).Outlived, WritableAt: m.Of(x).WritableAt}).OutlivedBy(leaseEnd) {
		return ""
	}
	return OutlivedWords(x)
}

// OutlivedWords says to people that the lease of site x proves nothing any more.
func OutlivedWords(x string) string {
	return fmt.Sprintf("%s was seen to accept writes after its lease must have ended, so nothing fences it, and no waiting proves that it stopped", x)
}

// OutlivedAndSilent says why a failover away from a silent active site could not be ended by time; empty if it could, or if there may
// be proof, for which the failover has to begin.
func OutlivedAndSilent(s facts.Snapshot, m facts.Memory) string {
	a, known := s.Site(s.Status.ActiveSite)
	if known && (a.Reachable() || a.Gone() || a.Pod.OutOfService) {
		return ""
	}
	return Outlived(m, s.Status.ActiveSite, s.Now)
}
