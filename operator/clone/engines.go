// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/operator/scope"
)

// rowsLost says which rows of a donor a clone would not copy, and what to do about it; empty if there are none, or none are known: a
// sidecar of an older version does not look for them.
func rowsLost(donor string, g scope.GroupFacts) string {
	found := g.Sites[donor].Engines
	if found == nil || found.WithRows == 0 {
		return ""
	}
	return fmt.Sprintf("%s has %d tables with rows outside InnoDB (MyISAM, CSV, ARCHIVE), which a clone makes empty: list them with "+
		"SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE ENGINE IN ('MyISAM', 'CSV', 'ARCHIVE') AND TABLE_SCHEMA <> 'mysql', "+
		"and ALTER TABLE each ... ENGINE=InnoDB there", donor, found.WithRows)
}

// losesRows says why no clone from a donor may begin now; empty if it may, or if a person has given up the rows (I14).
func (p *provisioner) losesRows(t task, source string) string {
	if t.order.given() && strings.HasSuffix(t.order.value, confirmed) {
		return ""
	}
	g, _ := p.reach.In(t.key.Group)
	return rowsLost(source, g)
}
