// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report"
)

// conditionsOf says what a decision means for the user. Messages carry no times and no sets, so that they do not flap.
func conditionsOf(d failover.Decision) []report.Condition {
	available := availability(d)
	replication := replicationHealth(d)
	ready := report.True(v1alpha1.ConditionReady, report.ReasonAsExpected, "the active site is open and every replica follows it")
	degraded := report.False(v1alpha1.ConditionDegraded, report.ReasonAsExpected, "")
	for _, c := range []report.Condition{replication, available} {
		if c.Status == "False" {
			ready = report.False(v1alpha1.ConditionReady, c.Reason, c.Message)
			degraded = report.True(v1alpha1.ConditionDegraded, c.Reason, c.Message)
		}
	}
	return []report.Condition{ready, available, degraded, replication, blockedness(d)}
}

func availability(d failover.Decision) report.Condition {
	c := v1alpha1.ConditionAvailable
	switch {
	case d.Topology == failover.TopologyHealthy || d.Verdict == failover.VerdictComplete:
		return report.True(c, report.ReasonActiveSiteOpen, d.Status.ActiveSite+" accepts writes")
	case d.Topology == failover.TopologyUninitialised:
		return report.False(c, report.ReasonBootstrapping, "no site is active yet: "+d.Message)
	case d.Topology == failover.TopologyTransition:
		return report.False(c, report.ReasonFailingOver, fmt.Sprintf("the role moves to %s", d.Status.ActiveSite))
	case d.Topology == failover.TopologyAllUnreachable:
		return report.False(c, report.ReasonAllSitesSilent, "no site answers; check nodes and network")
	case d.Topology == failover.TopologyActiveReadOnly:
		return report.False(c, report.ReasonActiveSiteFenced, d.Status.ActiveSite+" answers but is read-only")
	}
	return report.False(c, report.ReasonActiveSiteSilent, d.Status.ActiveSite+" does not accept writes")
}

func replicationHealth(d failover.Decision) report.Condition {
	c := v1alpha1.ConditionReplicationHealthy
	var bad []string
	reason := report.ReasonReplicaNotAttached
	for _, v := range d.Views {
		switch {
		case v.Name == d.Status.ActiveSite || v.Healthy:
			continue
		case v.State == v1alpha1.SiteDiverged:
			reason = report.ReasonSiteDiverged
		case v.State == v1alpha1.SiteUnreachable && reason != report.ReasonSiteDiverged:
			reason = report.ReasonSiteUnreachable
		}
		bad = append(bad, v.Name+" is "+string(v.State))
	}
	if len(bad) > 0 {
		return report.False(c, reason, strings.Join(bad, ", "))
	}
	return report.True(c, report.ReasonReplicating, "every replica follows the active site")
}

func blockedness(d failover.Decision) report.Condition {
	c := v1alpha1.ConditionFailoverBlocked
	if d.Blocked() {
		return report.True(c, string(d.Reason), d.Message)
	}
	return report.False(c, report.ReasonNotBlocked, "")
}
