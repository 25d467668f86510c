// SPDX-License-Identifier: Apache-2.0

// Package groupstatus builds what the monitor writes into the status of a group and shows in GET /status: the durable part, both ways,
// the states of the sites, the conditions, the forecast. It decides nothing and writes nothing; values go in and come out.
package groupstatus

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Durable reads what is durable from a status. It fails if a set of a transition is not a GTID set.
func Durable(s v1alpha1.MysqlFailoverGroupStatus) (failover.Durable, error) {
	d := failover.Durable{Epoch: s.Epoch, ActiveSite: s.ActiveSite, Records: s.Failovers, Epochs: s.Epochs}
	for _, site := range s.Sites {
		if site.OutlivedLease {
			d.Outlived = append(d.Outlived, site.Name)
		}
		d.Filtered = withFilter(d.Filtered, site.Name, site.Filtered)
		for _, r := range site.Incarnations {
			d.Runs = withRun(d.Runs, site.Name, failover.Run{UID: r.PodUID, Node: r.Node, Machine: r.Machine, Volume: r.VolumeID,
				Lease: time.Duration(r.LeaseMillis) * time.Millisecond, Closed: r.Closed})
		}
	}
	for _, site := range s.FormerSites {
		d.Filtered = withFilter(d.Filtered, site.Name, site.Filtered)
	}
	slices.Sort(d.Outlived)
	if s.ActiveSiteSince != nil {
		d.ActiveSince = s.ActiveSiteSince.Time
	}
	d.RowsOutside = int(s.RowsOutsideInnoDB)
	if s.CooldownUntil != nil {
		d.CooldownUntil = s.CooldownUntil.Time
	}
	d.Planned = fromPlanned(s.PlannedFailover)
	if s.Transition == nil {
		return d, nil
	}
	from, err := gtid.Parse(s.Transition.FromExecuted)
	if err != nil {
		return d, fmt.Errorf("read status.transition.fromExecuted: %w", err)
	}
	to, err := gtid.Parse(s.Transition.ToExecuted)
	if err != nil {
		return d, fmt.Errorf("read status.transition.toExecuted: %w", err)
	}
	t := s.Transition
	d.Transition = &failover.Transition{Kind: t.Kind, Step: t.Step, From: t.From, To: t.To, Reason: t.Reason, FromUUID: t.FromServerUUID,
		StartedAt: t.StartedAt.Time, DetectedAt: t.DetectedAt.Time, FromExecuted: from, ToExecuted: to, Evidence: t.Evidence}
	if t.GatePassedAt != nil {
		d.Transition.GatePassedAt = t.GatePassedAt.Time
	}
	return d, nil
}

// withFilter notes the server of a site that was seen with a replication filter. A site that came back may be among the former ones too.
func withFilter(all map[string]string, site, server string) map[string]string {
	if server == "" || all[site] != "" {
		return all
	}
	if all == nil {
		all = map[string]string{}
	}
	all[site] = server
	return all
}

func withRun(all map[string][]failover.Run, site string, r failover.Run) map[string][]failover.Run {
	if all == nil {
		all = map[string][]failover.Run{}
	}
	all[site] = append(all[site], r)
	return all
}

func toIncarnations(runs []failover.Run) (out []v1alpha1.SiteIncarnation) {
	for _, r := range runs {
		out = append(out, v1alpha1.SiteIncarnation{PodUID: r.UID, Node: r.Node, Machine: r.Machine, VolumeID: r.Volume,
			LeaseMillis: r.Lease.Milliseconds(), Closed: r.Closed})
	}
	return out
}

func fromPlanned(p *v1alpha1.PlannedFailoverStatus) *failover.Planned {
	if p == nil {
		return nil
	}
	out := &failover.Planned{From: p.From, To: p.To, Cause: p.Cause, Phase: p.Phase, Reason: p.Reason, Message: p.Message, Answered: p.Answered}
	for _, r := range p.Remedies {
		out.Remedies = append(out.Remedies, failover.Remedy(r))
	}
	if p.StartedAt != nil {
		out.StartedAt = p.StartedAt.Time
	}
	if p.FinishedAt != nil {
		out.FinishedAt = p.FinishedAt.Time
	}
	if p.WritePauseMillis != nil {
		out.WritePause = time.Duration(*p.WritePauseMillis) * time.Millisecond
	}
	return out
}

func toPlanned(p *failover.Planned) *v1alpha1.PlannedFailoverStatus {
	if p == nil {
		return nil
	}
	out := &v1alpha1.PlannedFailoverStatus{From: p.From, To: p.To, Cause: p.Cause, Phase: p.Phase, Reason: p.Reason, Message: p.Message, Answered: p.Answered}
	for _, r := range p.Remedies {
		out.Remedies = append(out.Remedies, v1alpha1.Remedy(r))
	}
	if !p.StartedAt.IsZero() {
		out.StartedAt = ptr.To(metav1.NewMicroTime(p.StartedAt))
	}
	if !p.FinishedAt.IsZero() {
		out.FinishedAt = ptr.To(metav1.NewMicroTime(p.FinishedAt))
	}
	if p.WritePause > 0 {
		out.WritePauseMillis = ptr.To(p.WritePause.Milliseconds())
	}
	return out
}

func toTransition(t *failover.Transition) *v1alpha1.Transition {
	if t == nil {
		return nil
	}
	out := &v1alpha1.Transition{Kind: t.Kind, Step: t.Step, From: t.From, To: t.To, Reason: t.Reason, FromServerUUID: t.FromUUID,
		StartedAt: metav1.NewMicroTime(t.StartedAt), DetectedAt: metav1.NewMicroTime(t.DetectedAt),
		FromExecuted: t.FromExecuted.String(), ToExecuted: t.ToExecuted.String(), Evidence: t.Evidence}
	if !t.GatePassedAt.IsZero() {
		at := metav1.NewMicroTime(t.GatePassedAt)
		out.GatePassedAt = &at
	}
	return out
}
