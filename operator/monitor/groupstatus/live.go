// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// Live is the group as GET /status shows it.
func Live(group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision, now time.Time) wire.GroupStatus {
	out := wire.GroupStatus{Namespace: group.Namespace, Group: group.Name, ActiveSite: d.Status.ActiveSite, Epoch: d.Status.Epoch,
		Hold: d.Hold, Topology: string(d.Topology), Verdict: string(d.Verdict), Reason: string(d.Reason), Message: d.Message, ObservedAt: now.UTC()}
	if f := d.Forecast; f != nil {
		out.Forecast = &wire.Forecast{Site: f.Site, Rule: f.Rule, BlockedBy: string(f.BlockedBy), Message: f.Message, LostSeconds: f.LostSeconds}
		if f.LostTransactions >= 0 {
			out.Forecast.LostTransactions = &f.LostTransactions
		}
	}
	out.Cache = cacheOf(group)
	for _, v := range d.Views {
		site, _ := s.Site(v.Name)
		w := wire.SiteStatus{Name: v.Name, Role: string(site.Role), State: string(v.State), Reachable: site.Reachable(),
			SidecarReachable: site.Sidecar.Answered, Writable: site.Writable(), ReplicatingFrom: site.MySQL.ReplicaOf,
			LagSeconds: site.MySQL.LagSeconds, Errant: v.Errant.Count(), GTIDExecuted: site.MySQL.Executed.String(),
			Version: site.MySQL.Version, Node: site.Pod.Node, Message: v.Message, Fence: fenceOf(site)}
		if v.Behind >= 0 {
			w.Behind = &v.Behind
		}
		if site.Sidecar.Answered {
			w.Volume = site.Sidecar.Report.Volume
		}
		if site.Reachable() {
			w.LastSeen = now.UTC()
		}
		out.Sites = append(out.Sites, w)
	}
	return out
}

func fenceOf(site failover.Site) string {
	switch {
	case site.Writable():
		return "open"
	case site.Fenced():
		return "read-only"
	case site.Sidecar.Answered && !site.Sidecar.Report.MysqldRunning:
		return "down"
	}
	return "unknown"
}
