// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// Forecast is what an emergency failover would do if the active site were lost right after this poll.
type Forecast struct {
	// Site would take over; empty if none is fit.
	Site string
	// Rule by which it ranks first.
	Rule string
	// LostTransactions is how many would be lost at least; negative if that cannot be known.
	LostTransactions int64
	// LostSeconds is the lag of the site; nil if it is not known.
	LostSeconds *float64
	// BlockedBy is what would keep the operator from doing it; empty if nothing would.
	BlockedBy facts.Reason
	Message   string
}

// Foresee answers with the functions that Decide uses. It is for a healthy group; otherwise the decision itself says
// what happens.
func Foresee(s facts.Snapshot, m facts.Memory) *Forecast {
	active, _ := s.Site(s.Status.ActiveSite)
	best, found := Choose(s, m, active.Name)
	f := &Forecast{LostTransactions: -1}
	if found {
		f.Site, f.Rule = best.Site.Name, ruleOf(s, m, best)
		f.LostTransactions = active.MySQL.Executed.Subtract(best.All).Count()
		f.LostSeconds = best.Site.MySQL.LagSeconds
	}
	no := FirstAgainst(Permissions, Ask(s, m, best, found))
	switch silent := memory.Named(s, SilentVouchers(s, m, best.Site.Name)); {
	case no.Reason != "":
		f.BlockedBy, f.Message = no.Reason, no.Message
	case silent != "":
		f.BlockedBy = v1alpha1.ReasonSiteMayStillVouch
		f.Message = fmt.Sprintf("%s would take over once %s is proven fenced; by time alone it could not, because %s could still vouch for it", f.Site, active.Name, silent)
	case m.Of(active.Name).Outlived:
		f.BlockedBy, f.Message = v1alpha1.ReasonLeaseOutlived, memory.Outlived(m, active.Name, s.Now)+"; "+remedy.Outlived(active.Name).String()
	default:
		f.Message = fmt.Sprintf("%s would take over (%s)", f.Site, f.Rule)
	}
	return f
}

// ruleOf names the first rule of Better by which the best candidate beats the next one.
func ruleOf(s facts.Snapshot, m facts.Memory, best Candidate) string {
	for _, c := range Rank(s, m) {
		if c.Unfit.By != "" || c.Site.Name == best.Site.Name || c.Site.Name == s.Status.ActiveSite {
			continue
		}
		switch {
		case c.All.Count() != best.All.Count():
			return RankMost
		case StaysLonger(best, c):
			return RankVolume
		case cmp.Compare(c.ToApply, best.ToApply) != 0:
			return RankLeast
		case c.Site.Priority != best.Site.Priority:
			return RankPriority
		}
		return RankName
	}
	return RankOnly
}
