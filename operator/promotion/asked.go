// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// SilentVouchers names the sites that could not acknowledge a new epoch now, or not for all their runs, but might answer the active site.
func SilentVouchers(s facts.Snapshot, m facts.Memory, target string) (names []string) {
	for _, site := range s.Sites {
		silent := site.Name != target && !site.Sidecar.Answered || !site.Only(site.Pod.UID)
		if site.Name != s.Status.ActiveSite && silent && !site.Gone() && !site.NeverRan() && !memory.AskedByNobody(m, site) {
			names = append(names, site.Name)
		}
	}
	return names
}

// vouchedFor names the sites that have been silent for as long as the active site must be, and could vouch for it: time could not pass
// the gate. For sites that have just missed an answer it says BelowThreshold: soon they answer, or count as silent. It is empty if
// there may be proof, because only a failover that has begun can find it.
func vouchedFor(s facts.Snapshot, m facts.Memory, target string) (names string, why facts.Reason) {
	a, known := s.Site(s.Status.ActiveSite)
	if !known || a.Reachable() || a.Gone() || a.Pod.OutOfService {
		return "", ""
	}
	var all, long []string
	for _, name := range SilentVouchers(s, m, target) {
		all = append(all, name)
		if site, _ := s.Site(name); memory.IsLongSilent(s, m, name) || site.Sidecar.Answered {
			long = append(long, name)
		}
	}
	if len(long) == 0 {
		return memory.Named(s, all), v1alpha1.ReasonBelowThreshold
	}
	return memory.Named(s, long), v1alpha1.ReasonSiteMayStillVouch
}

// OverBudget says how a promotion would lose more than the loss budget allows, or "". An unknown loss is over every
// budget.
func OverBudget(s facts.Snapshot, from gtid.Set, to facts.Site) string {
	if s.Policy.MaxLost == nil {
		return ""
	}
	if from.IsEmpty() {
		return fmt.Sprintf("what the old active site had is not known, and spec.failover.maxLostTransactions is %d", *s.Policy.MaxLost)
	}
	if lost := from.Subtract(to.All()).Count(); lost > *s.Policy.MaxLost {
		return fmt.Sprintf("%s lacks at least %d transactions, spec.failover.maxLostTransactions is %d", to.Name, lost, *s.Policy.MaxLost)
	}
	return ""
}

// WhyNobody says why each site but the active one is not fit to take over.
func WhyNobody(s facts.Snapshot, m facts.Memory) string {
	var each []string
	for _, c := range Rank(s, m) {
		if c.Site.Name != s.Status.ActiveSite {
			each = append(each, c.Site.Name+": "+c.Unfit.Why)
		}
	}
	return "no site is fit (" + strings.Join(each, ", ") + ")"
}
