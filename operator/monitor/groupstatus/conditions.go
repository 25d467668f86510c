// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

// Conditions says what a decision means for the user, in the conditions that the monitor owns. Pause is the value of the annotation
// pause-until. Messages carry no times and no sets, so that they do not flap.
func Conditions(d failover.Decision, pause string, now time.Time) []conditions.Condition {
	open, replication := available(d), replicationHealthy(d)
	ready := conditions.True(v1alpha1.ConditionReady, v1alpha1.ReasonAsExpected, "the active site is open and every replica follows it")
	degraded := conditions.False(v1alpha1.ConditionDegraded, v1alpha1.ReasonAsExpected, "")
	for _, c := range []conditions.Condition{replication, open} {
		if c.Status == "False" {
			ready = conditions.False(v1alpha1.ConditionReady, c.Reason, c.Message)
			degraded = conditions.True(v1alpha1.ConditionDegraded, c.Reason, c.Message)
		}
	}
	return []conditions.Condition{ready, open, degraded, replication, failoverBlocked(d), paused(pause, now), plannedBlocked(d), keptFenced(d)}
}

// paused says whether a person keeps the operator from acting on its own, and that a pause that is no time does not count.
func paused(pause string, now time.Time) conditions.Condition {
	c := v1alpha1.ConditionPaused
	until, err := time.Parse(time.RFC3339, pause)
	switch {
	case pause == "":
		return conditions.False(c, v1alpha1.ReasonNotPaused, "")
	case err != nil:
		return conditions.False(c, v1alpha1.ReasonInvalidPause, fmt.Sprintf("the annotation %s is %q, which is no time as 2026-01-02T15:04:05Z: nothing is paused",
			v1alpha1.AnnotationPauseUntil, pause))
	case !now.Before(until):
		return conditions.False(c, v1alpha1.ReasonPauseOver, "the pause ended at "+until.UTC().Format(time.RFC3339))
	}
	return conditions.True(c, v1alpha1.ReasonPaused, fmt.Sprintf("the operator changes no role, replaces no pod and clones no site on its own until %s; remove the annotation %s to end the pause sooner",
		until.UTC().Format(time.RFC3339), v1alpha1.AnnotationPauseUntil))
}

// plannedBlocked says that the active site is about to go and keeps its role: as long as that is true, an eviction of its pod
// is refused.
func plannedBlocked(d failover.Decision) conditions.Condition {
	c := v1alpha1.ConditionPlannedBlocked
	if d.Stays == nil {
		return conditions.False(c, v1alpha1.ReasonNotBlocked, "")
	}
	return conditions.True(c, d.Stays.Reason, StaysMessage(d.Stays))
}

// keptFenced names the sites that a person keeps fenced.
func keptFenced(d failover.Decision) conditions.Condition {
	c, why := v1alpha1.ConditionSitesKeptFenced, v1alpha1.ReasonKeptFenced
	var all []string
	for _, v := range d.Views {
		if v.KeptFenced == "" || v.Gone {
			continue
		}
		if v.State == v1alpha1.SitePrimary {
			why = v1alpha1.ReasonActiveStaysOpen
		}
		all = append(all, v.Name+" "+v.KeptFenced)
	}
	if len(all) == 0 {
		return conditions.False(c, v1alpha1.ReasonNoneKeptFenced, "")
	}
	return conditions.True(c, why, strings.Join(all, "; "))
}

// StaysMessage is why a site that is about to go keeps its role.
func StaysMessage(stays *failover.Stays) string {
	way := "to accept that writes stop until it is back, delete the pod"
	if stays.Reason == v1alpha1.ReasonLargeChange {
		way = "to move the role now and have that transaction rolled back, delete the pod"
	}
	if len(stays.Remedies) > 0 {
		way = wire.InWords(stays.Remedies) + "; " + way
	}
	return fmt.Sprintf("%s is active and about to go (%s), and keeps its role: %s. Evictions of its pod are refused meanwhile; %s", stays.Site, stays.Leaving, stays.Message, way)
}

func available(d failover.Decision) conditions.Condition {
	c := v1alpha1.ConditionAvailable
	switch {
	case d.Unwritable != nil:
		words, way := d.Unwritable.Message()
		return conditions.False(c, d.Unwritable.Reason, words+"; "+way.String())
	case d.Topology == failover.TopologyHealthy || d.Verdict == failover.VerdictComplete:
		return conditions.True(c, v1alpha1.ReasonActiveSiteOpen, d.Status.ActiveSite+" accepts writes")
	case d.Topology == failover.TopologyUninitialised:
		return conditions.False(c, v1alpha1.ReasonBootstrapping, "no site is active yet: "+d.Message)
	case d.Topology == failover.TopologyTransition:
		return conditions.False(c, v1alpha1.ReasonFailingOver, fmt.Sprintf("the role moves to %s", d.Status.ActiveSite))
	case d.Topology == failover.TopologyAllUnreachable:
		return conditions.False(c, v1alpha1.ReasonAllSitesSilent, "no site answers; check nodes and network")
	case d.Topology == failover.TopologyActiveReadOnly:
		return conditions.False(c, v1alpha1.ReasonActiveSiteFenced, d.Status.ActiveSite+" answers but is read-only"+nobodyTakesOver(d))
	case d.Topology == failover.TopologyActiveDown:
		return conditions.False(c, v1alpha1.ReasonActiveSiteDown, d.Status.ActiveSite+" does not accept writes: its MySQL is down"+nobodyTakesOver(d))
	}
	return conditions.False(c, v1alpha1.ReasonActiveSiteSilent, d.Status.ActiveSite+" does not accept writes"+nobodyTakesOver(d))
}

// nobodyTakesOver says why no site takes the place of an active site that is not open. The decision's own message, in FailoverBlocked,
// says what to do about it.
func nobodyTakesOver(d failover.Decision) string {
	switch {
	case d.Blocked():
		return fmt.Sprintf("; no site takes its place without an order (%s), see the condition %s", d.Reason, v1alpha1.ConditionFailoverBlocked)
	case d.Verdict == failover.VerdictWait && d.Reason == v1alpha1.ReasonWaitingForRestart:
		return "; it may restart in place within spec.failover.crashGrace"
	}
	return "" // something is under way
}

func replicationHealthy(d failover.Decision) conditions.Condition {
	c := v1alpha1.ConditionReplicationHealthy
	var bad []string
	reason := v1alpha1.ReasonReplicaNotAttached
	for _, v := range d.Views {
		switch {
		case v.Name == d.Status.ActiveSite || v.Healthy:
			continue
		case v.State == v1alpha1.SiteDiverged:
			reason = v1alpha1.ReasonSiteDiverged
		case v.State == v1alpha1.SiteUnreachable && reason != v1alpha1.ReasonSiteDiverged:
			reason = v1alpha1.ReasonSiteUnreachable
		}
		bad = append(bad, v.Name+" is "+string(v.State))
	}
	if len(bad) > 0 {
		return conditions.False(c, reason, strings.Join(bad, ", "))
	}
	return conditions.True(c, v1alpha1.ReasonReplicating, "every replica follows the active site")
}

func failoverBlocked(d failover.Decision) conditions.Condition {
	c := v1alpha1.ConditionFailoverBlocked
	if d.Blocked() {
		return conditions.True(c, d.Reason, d.Message)
	}
	return conditions.False(c, v1alpha1.ReasonNotBlocked, "")
}
