// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Events draws events, one under the other; the titles only once.
func Events(all []report.Event, o Options, titles bool) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	if titles {
		b.WriteString(o.paint(text{"AGE   TYPE     REASON, OBJECT AND MESSAGE", dim}) + "\n")
	}
	for _, e := range all {
		kind := text{lower(e.Type), plain}
		if e.Type == "Warning" {
			kind.colour = warn
		}
		repeated := ""
		if e.Count > 1 {
			repeated = fmt.Sprintf(" (%d times)", e.Count)
		}
		age := o.ago(e.Time)
		b.WriteString(age + strings.Repeat(" ", max(1, 6-width(age))) + o.paint(kind) + strings.Repeat(" ", max(1, 9-width(kind.s))))
		b.WriteString(o.wrap(15, e.Reason+" "+e.Object+": "+e.Message+repeated))
	}
	return b.String()
}
