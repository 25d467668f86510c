// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"cmp"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Forecast is what an emergency failover would do if the active site were lost right after this poll.
type Forecast struct {
	// Site would take over; empty if none is fit.
	Site string
	// Rule by which it ranks first.
	Rule string
	// LostTransactions would be lost at least; negative if it cannot be known.
	LostTransactions int64
	// LostSeconds is the lag of the site; nil if it is not known.
	LostSeconds *float64
	// BlockedBy is what would keep it from happening by itself; empty if nothing would.
	BlockedBy Reason
	Message   string
}

// forecast answers with the same functions that decide. It is for a healthy group; otherwise the decision itself says
// what happens.
func forecast(s Snapshot, d Decision) *Forecast {
	if d.Topology != TopologyHealthy {
		return nil
	}
	active, _ := s.Site(s.Status.ActiveSite)
	best, found := choose(s, d.Memory, active.Name)
	f := &Forecast{LostTransactions: -1}
	if found {
		f.Site, f.Rule = best.Site.Name, ruleOf(s, d.Memory, best)
		f.LostTransactions = active.MySQL.Executed.Subtract(best.All).Count()
		f.LostSeconds = best.Site.MySQL.LagSeconds
	}
	no := refusal(permissions, takeover{s, d.Memory, best, found})
	switch silent := named(s, silentVouchers(s, d.Memory, best.Site.Name)); {
	case no.reason != "":
		f.BlockedBy, f.Message = no.reason, no.message
	case silent != "":
		f.BlockedBy = v1alpha1.ReasonSiteMayStillVouch
		f.Message = fmt.Sprintf("%s would take over once %s is proven fenced; by time alone it could not, because %s could still vouch for it", f.Site, active.Name, silent)
	case d.Memory.Of(active.Name).Outlived:
		f.BlockedBy, f.Message = v1alpha1.ReasonLeaseOutlived, outlived(d.Memory, active.Name, s.Now)+"; "+outlivedRemedy(active.Name).String()
	default:
		f.Message = fmt.Sprintf("%s would take over (%s)", f.Site, f.Rule)
	}
	return f
}

// silentVouchers are the sites that could not acknowledge a new epoch now, or not for all their runs, and might answer the active site.
func silentVouchers(s Snapshot, m Memory, target string) (names []string) {
	for _, site := range s.Sites {
		silent := site.Name != target && !site.Sidecar.Answered || !site.Only(site.Pod.UID)
		if site.Name != s.Status.ActiveSite && silent && !site.Gone() && !site.NeverRan() && !askedByNobody(m, site) {
			names = append(names, site.Name)
		}
	}
	return names
}

// ruleOf names the first rule of better by which the best candidate beats the next one.
func ruleOf(s Snapshot, m Memory, best Candidate) string {
	for _, c := range candidates(s, m) {
		if c.Unfit.By != "" || c.Site.Name == best.Site.Name || c.Site.Name == s.Status.ActiveSite {
			continue
		}
		switch {
		case c.All.Count() != best.All.Count():
			return rankMost
		case cmp.Compare(c.ToApply, best.ToApply) != 0:
			return rankLeast
		case c.Site.Priority != best.Site.Priority:
			return rankPriority
		}
		return rankName
	}
	return rankOnly
}
