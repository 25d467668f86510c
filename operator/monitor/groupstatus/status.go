// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Of returns the part of the status that the monitor owns, made from what is durable and what was seen. It keeps the present conditions:
// an apply without them would remove them.
func Of(group *v1alpha1.MysqlFailoverGroup, durable failover.Durable, all []failover.View) v1alpha1.MysqlFailoverGroupStatus {
	out := v1alpha1.MysqlFailoverGroupStatus{
		ActiveSite: durable.ActiveSite, Epoch: durable.Epoch, Transition: toTransition(durable.Transition),
		Failovers: durable.Records, Epochs: durable.Epochs, Phase: phase(durable, all), PlannedFailover: toPlanned(durable.Planned),
		Forecast: group.Status.Forecast, RowsOutsideInnoDB: int32(min(durable.RowsOutside, math.MaxInt32)),
	}
	if !durable.ActiveSince.IsZero() {
		out.ActiveSiteSince = &metav1.Time{Time: durable.ActiveSince}
	}
	if !durable.CooldownUntil.IsZero() {
		out.CooldownUntil = &metav1.Time{Time: durable.CooldownUntil}
	}
	ready := 0
	for _, v := range all {
		if v.Gone {
			continue
		}
		site := v1alpha1.SiteStatus{Name: v.Name, State: v.State, Reason: v.Reason, Message: stable(v), Errant: v.Errant.String(), Filtered: v.Filtered,
			KeptFenced: v.KeptFenced != "", OutlivedLease: slices.Contains(durable.Outlived, v.Name), Incarnations: toIncarnations(durable.Runs[v.Name])}
		out.Sites = append(out.Sites, site)
		if v.Healthy {
			ready++
		}
	}
	out.FormerSites = former(durable, out.Sites)
	out.ReadySites = fmt.Sprintf("%d/%d", ready, len(group.Spec.Sites))
	if len(durable.Records) > 0 {
		out.LastFailover = string(durable.Records[0].Kind)
	}
	out.Conditions = owned(group.Status.Conditions)
	return out
}

// formerMost is how many former sites are kept: as many as the schema takes, since a refused write of status would stop a failover.
const formerMost = 1024

// former are the sites that are left out of the others, and that skipped transactions: they may come back with their volumes.
func former(durable failover.Durable, listed []v1alpha1.SiteStatus) []v1alpha1.FormerSite {
	var out []v1alpha1.FormerSite
	for name, server := range durable.Filtered {
		if !slices.ContainsFunc(listed, func(s v1alpha1.SiteStatus) bool { return s.Name == name }) {
			out = append(out, v1alpha1.FormerSite{Name: name, Filtered: server})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.FormerSite) int { return strings.Compare(a.Name, b.Name) })
	return out[:min(len(out), formerMost)]
}

// stable leaves out what changes with every poll.
func stable(v failover.View) string {
	if v.State == v1alpha1.SiteFenced {
		return ""
	}
	return attempts.ReplaceAllString(v.Message, "")
}

// attempts matches the counter in MySQL's error of a receiver that cannot reach its source: it grows once a second.
var attempts = regexp.MustCompile(`This was attempt \d+/\d+, with a delay of \d+ seconds? between attempts\. ?`)

func phase(durable failover.Durable, all []failover.View) v1alpha1.GroupPhase {
	healthy, primary := 0, false
	for _, v := range all {
		if v.Healthy {
			healthy++
		}
		primary = primary || v.State == v1alpha1.SitePrimary
	}
	switch {
	case durable.Epoch == 0 || durable.Transition != nil && durable.Transition.Kind == v1alpha1.FailoverBootstrap:
		return v1alpha1.GroupBootstrapping
	case durable.Transition != nil:
		return v1alpha1.GroupFailingOver
	case !primary:
		return v1alpha1.GroupUnavailable
	case healthy < len(all):
		return v1alpha1.GroupDegraded
	}
	return v1alpha1.GroupRunning
}

// owned are the conditions that the monitor owns: all that Conditions makes.
func owned(all []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, own := range Conditions(failover.Decision{}, "", time.Time{}) {
		if c := meta.FindStatusCondition(all, own.Type); c != nil {
			out = append(out, *c)
		}
	}
	return out
}
