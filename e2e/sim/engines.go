// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// tablesOutside is how many tables outside InnoDB a group with such tables has.
const tablesOutside = 2

// outsideInnoDB is true in every seventh run that begins with data: there the group has tables with rows that no clone brings, and in
// every second of those a site that was cloned without them.
func (w *world) outsideInnoDB() bool { return w.seed%7 == 2 && directed == "" }

func (w *world) settleTables() {
	for i, s := range w.sites {
		s.vol.tables, s.vol.withRows = tablesOutside, tablesOutside
		if i == 1 && w.seed%2 == 0 {
			s.vol.withRows = 0
		}
	}
	w.api.group.durable.RowsOutside = tablesOutside
}

// engines is what the sidecar of a pod has found.
func (p *pod) engines() *wire.EngineReport {
	if !p.w.outsideInnoDB() {
		return nil
	}
	return &wire.EngineReport{Tables: p.vol.tables, WithRows: p.vol.withRows}
}

// rows holds I7 for what no set of transactions tells of: who lacks rows that the group has is promoted by order only.
func (x *truth) rows(target failover.Site) {
	v := x.w.siteOf(target.Name).vol
	if had := x.newest.vol; had != nil && v.tables > 0 && v.withRows < had.withRows {
		x.w.fail("I7", "%s is promoted without the rows of %d tables outside InnoDB", target.Name, had.withRows-v.withRows)
	}
}

// lacksRows is true while a site that is in the spec was cloned without rows.
func (w *world) lacksRows() bool {
	for _, s := range w.sites {
		if !s.removed && s.vol.tables > 0 && s.vol.withRows < w.api.group.durable.RowsOutside {
			return true
		}
	}
	return false
}
