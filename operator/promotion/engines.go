// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// IsWithoutRows says that the site was cloned without rows that the active site has or had, and that nothing it received mentions them. They
// would be lost without a word if it took over, so only a person's order promotes it (I7). To open the active site again, or the first one,
// moves no role, so the rule does not apply.
func IsWithoutRows(s facts.Snapshot, _ facts.Memory, site facts.Site) string {
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
