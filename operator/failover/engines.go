// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// outsideInnoDB says of a site that it has rows which no clone brings, or of a replica that it lacks them; empty if it is not so, or
// not known: a sidecar of an older version does not look, and one that is silent says nothing of now.
func outsideInnoDB(g Group, site, active Site) (Reason, string) {
	mine, theirs := site.Sidecar.Report.Engines, active.Sidecar.Report.Engines
	if !site.Sidecar.Answered || mine == nil {
		return "", ""
	}
	if site.Name == active.Name && mine.WithRows > 0 {
		return v1alpha1.ReasonRowsNotCloned, fmt.Sprintf("has %d tables with rows outside InnoDB (MyISAM, CSV, ARCHIVE), which a clone makes empty: no site is cloned from it without an order that gives them up; "+
			"ALTER TABLE each ... ENGINE=InnoDB (%s)", mine.WithRows, g.Command("mysql", site.Name, ""))
	}
	if site.Name != active.Name && active.Sidecar.Answered && theirs != nil && mine.Tables > 0 && mine.WithRows < theirs.WithRows {
		return v1alpha1.ReasonRowsMissing, fmt.Sprintf("has rows in %d tables outside InnoDB, %s in %d: it was cloned without them, and takes over by order only; "+
			"ALTER TABLE each ... ENGINE=InnoDB on %s (%s) brings them", mine.WithRows, active.Name, theirs.WithRows, active.Name, g.Command("mysql", active.Name, ""))
	}
	return "", ""
}

// isWithoutRows: the site was cloned without rows that the active site has or had, and nothing that it has received tells of them. They
// would be lost without a word if it took over, so a person orders that or nobody does (I7). Who opens the active site again, or the
// first one, moves the role to nobody.
func isWithoutRows(s Snapshot, _ Memory, site Site) string {
	t, had, mine := s.Status.Transition, s.Status.RowsOutside, site.Sidecar.Report.Engines
	switch {
	case had == 0 || !site.Sidecar.Answered:
		return ""
	case t == nil && site.Name == s.Status.ActiveSite || t != nil && (t.From == site.Name || t.Kind == v1alpha1.FailoverBootstrap):
		return ""
	case mine == nil:
		return fmt.Sprintf("its sidecar has not looked yet whether it has the rows of %d tables outside InnoDB", had)
	case mine.Tables > 0 && mine.WithRows < had:
		return fmt.Sprintf("was cloned without rows outside InnoDB: it has them in %d tables, the active site had them in %d", mine.WithRows, had)
	}
	return ""
}

// noteRows makes durable what the active site has while it is open: the next operator may see only the others (I9).
func (d Decision) noteRows(s Snapshot) Decision {
	a, _ := s.Site(s.Status.ActiveSite)
	if found := a.Sidecar.Report.Engines; found != nil && isHistory(s, a) && found.WithRows != d.Status.RowsOutside {
		d.Status.RowsOutside, d.Persist = found.WithRows, true
	}
	return d
}
