// SPDX-License-Identifier: Apache-2.0

package failover

import "fmt"

// ReasonRowsNotCloned is the reason of an active site with tables whose rows a clone does not copy, ReasonRowsMissing of a replica
// that was cloned without them.
const (
	ReasonRowsNotCloned Reason = "RowsNotCloned"
	ReasonRowsMissing   Reason = "RowsMissing"
)

// outsideInnoDB says of a site that it has rows which no clone brings, or of a replica that it lacks them; empty if it is not so, or
// not known: a sidecar of an older version does not look, and one that is silent says nothing of now.
func outsideInnoDB(site, active Site) (Reason, string) {
	mine, theirs := site.Sidecar.Report.Engines, active.Sidecar.Report.Engines
	if !site.Sidecar.Answered || mine == nil {
		return "", ""
	}
	if site.Name == active.Name && mine.WithRows > 0 {
		return ReasonRowsNotCloned, fmt.Sprintf("has %d tables with rows outside InnoDB (MyISAM, CSV, ARCHIVE), which a clone makes empty: no site is cloned from it without an order that gives them up; "+
			"ALTER TABLE each ... ENGINE=InnoDB (kubectl mfg mysql GROUP %s)", mine.WithRows, site.Name)
	}
	if site.Name != active.Name && active.Sidecar.Answered && theirs != nil && mine.Tables > 0 && mine.WithRows < theirs.WithRows {
		return ReasonRowsMissing, fmt.Sprintf("has rows in %d tables outside InnoDB, %s in %d: it was cloned without them, and they would be lost if it took over; "+
			"ALTER TABLE each ... ENGINE=InnoDB on %s (kubectl mfg mysql GROUP %s) brings them", mine.WithRows, active.Name, theirs.WithRows, active.Name, active.Name)
	}
	return "", ""
}
