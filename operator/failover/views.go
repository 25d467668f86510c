// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// views says what each site is, for status, labels and metrics.
func views(s Snapshot, d Decision) []View {
	active, _ := s.Site(d.Status.ActiveSite)
	var all []View
	for _, site := range s.Sites {
		v := View{Name: site.Name, Role: v1alpha1.RoleReplica, Behind: behind(site, active)}
		v.State, v.Reason, v.Message = state(d, site, active)
		v.Healthy = v.State == v1alpha1.SitePrimary || v.State == v1alpha1.SiteReplica
		if v.State == v1alpha1.SitePrimary {
			v.Role = v1alpha1.RolePrimary
		}
		// A removed site is kept in sight until all is well without it: until then its pod could vouch for somebody.
		v.Gone = site.Removed && !site.Pod.Exists && d.Topology == TopologyHealthy
		if v.State == v1alpha1.SiteDiverged {
			v.Errant = d.Memory.Diverged[site.Name]
		}
		all = append(all, v)
	}
	return all
}

func behind(site, active Site) int64 {
	if !site.SQLAnswers() || !active.SQLAnswers() {
		return -1
	}
	return active.MySQL.Executed.Subtract(site.MySQL.Executed).Count()
}

func state(d Decision, site, active Site) (v1alpha1.SiteState, string, string) {
	errant, diverged := d.Memory.Diverged[site.Name]
	switch {
	case site.Removed && site.Name != d.Status.ActiveSite:
		return v1alpha1.SiteDetached, "Removed", "left the specification; kept in sight until its pod is gone"
	case site.Busy != "":
		return v1alpha1.SiteCloning, site.Busy, ""
	case !site.Provisioned && site.Name != d.Status.ActiveSite:
		return v1alpha1.SitePending, "NotProvisioned", "waits for its copy of the active site's data"
	case !site.Reachable():
		return v1alpha1.SiteUnreachable, "NoAnswer", "neither the sidecar nor MySQL answers"
	case !site.SQLAnswers():
		return v1alpha1.SiteUnreachable, "MySQLDown", "the sidecar answers, MySQL does not"
	case site.Writable() && site.Name == d.Status.ActiveSite && !fencingStep(d):
		return v1alpha1.SitePrimary, "", ""
	case site.Writable():
		return v1alpha1.SiteFenced, "ForeignWriter", "is writable although it is not active; it is being fenced"
	case diverged:
		return v1alpha1.SiteDiverged, "ErrantTransactions", divergedMessage(errant, active.Name)
	case site.Name == d.Status.ActiveSite:
		return v1alpha1.SiteFenced, string(d.Reason), d.Message
	case site.MySQL.ReplicaOf == active.Name && active.Name != "" && site.MySQL.IORunning && site.MySQL.SQLRunning:
		return v1alpha1.SiteReplica, "", ""
	}
	return v1alpha1.SiteDetached, "NotReplicating", detachedMessage(site)
}

func fencingStep(d Decision) bool {
	return d.Status.Transition != nil && d.Status.Transition.Step == v1alpha1.TransitionFencing
}

func divergedMessage(errant gtid.Set, active string) string {
	return fmt.Sprintf("has %d transactions that %s lacks (%s); it stays fenced and detached until a person decides", errant.Count(), active, errant)
}

func detachedMessage(site Site) string {
	switch {
	case site.MySQL.SQLError != "":
		return "applier stopped: " + site.MySQL.SQLError
	case site.MySQL.IOError != "":
		return "receiver stopped: " + site.MySQL.IOError
	}
	return "does not replicate from the active site yet"
}
