// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"maps"
	"slices"

	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// noteRuns makes durable which runs there are, so that the next operator knows those whose pods are gone by then (I9).
func (d Decision) noteRuns(s Snapshot, n facts.Runs) Decision {
	d.Status.Runs = n.Kept()
	if t := d.Status.Transition; t != nil && memory.NotPassed(s.Status.Transition) && !memory.NotPassed(t) {
		d = d.close(s)
	}
	d.Persist = d.Persist || !maps.EqualFunc(d.Status.Runs, s.Status.Runs, slices.Equal[[]Run])
	return d
}

// close notes that the gate has passed with every run but the one that is to be opened.
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

// noteRows makes durable what the active site has while it is open: the next operator may see only the others (I9).
func (d Decision) noteRows(s Snapshot) Decision {
	a, _ := s.Site(s.Status.ActiveSite)
	if found := a.Sidecar.Report.Engines; found != nil && lineage.IsHistory(s, a) && found.WithRows != d.Status.RowsOutside {
		d.Status.RowsOutside, d.Persist = found.WithRows, true
	}
	return d
}
