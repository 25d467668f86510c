// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"maps"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// noteRuns makes durable which runs there are, so that the next operator knows also those whose pods are gone by then (I9).
func (d Decision) noteRuns(s Snapshot, n facts.Runs) Decision {
	d.Status.Runs = n.Kept()
	if t := d.Status.Transition; t != nil && memory.NotPassed(s.Status.Transition) && !memory.NotPassed(t) {
		d = d.close(s)
	}
	d.Persist = d.Persist || !maps.EqualFunc(d.Status.Runs, s.Status.Runs, slices.Equal[[]Run])
	return d
}

// close marks every run closed but the one to be opened: the gate has passed with them.
func (d Decision) close(s Snapshot) Decision {
	target, _ := s.Site(d.Status.ActiveSite)
	all := map[string][]Run{}
	for site, list := range d.Memory.Runs.Of {
		list = slices.Clone(list)
		for i := range list {
			list[i].Closed = list[i].UID != target.Pod.UID || list[i].Elsewhere
		}
		all[site] = list
	}
	d.Memory.Runs.Of = all
	d.Status.Runs = d.Memory.Runs.Kept()
	return d
}

// noteOutlived makes durable which sites outlived their lease: the next operator must not count on it either (I9).
func (d Decision) noteOutlived(s Snapshot) Decision {
	var names []string
	for name, site := range d.Memory.Sites {
		if site.Outlived {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, s.Status.Outlived) {
		d.Persist = true
	}
	d.Status.Outlived = names
	return d
}

// noteFiltered makes durable whose server skipped transactions, or may have: the next operator must not take its sets for whole, also if
// the site has left the specification meanwhile and comes back with its volume (I7, I9).
func (d Decision) noteFiltered(s Snapshot) Decision {
	var servers map[string]string
	for name, site := range d.Memory.Sites {
		if site.Filtered == "" {
			continue
		}
		if servers == nil {
			servers = map[string]string{}
		}
		servers[name] = site.Filtered
	}
	d.Persist = d.Persist || !maps.Equal(servers, s.Status.Filtered)
	d.Status.Filtered = servers
	return d
}

// noteRows makes durable what the active site has outside InnoDB while it is open: the next operator may see only the others (I9).
func (d Decision) noteRows(s Snapshot) Decision {
	if d.Reason == v1alpha1.ReasonStatusBehind {
		return d // noteRowsFound has noted it; the site that the old status names may be one that was cut off under the old epoch
	}
	a, _ := s.Site(s.Status.ActiveSite)
	if found := a.Sidecar.Report.Engines; found != nil && lineage.IsHistory(s, a) && found.WithRows != d.Status.RowsOutside {
		d.Status.RowsOutside, d.Persist = found.WithRows, true
	}
	return d
}

// rowsOf is how many tables with rows outside InnoDB a site says it has; 0 if it has not looked.
func rowsOf(site Site) int {
	if found := site.Sidecar.Report.Engines; site.Sidecar.Answered && found != nil {
		return found.WithRows
	}
	return 0
}

// noteRowsFound makes durable what the group has outside InnoDB when status catches up with the sites: status knows nothing of it, and the open
// site may be gone at the next look (I7, I9). If that site has not looked, the most that any other says is a lower bound.
func (d Decision) noteRowsFound(s Snapshot, writer Site) Decision {
	d.Status.RowsOutside = rowsOf(writer)
	if writer.Sidecar.Report.Engines == nil {
		for _, site := range s.Sites {
			if !site.Removed && !site.OtherVolume { // data on another volume is not this group's
				d.Status.RowsOutside = max(d.Status.RowsOutside, rowsOf(site))
			}
		}
	}
	return d
}
