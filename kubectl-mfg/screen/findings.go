// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Finding is the result of one check.
type Finding struct {
	Level, Check, Message string
	Remedies              []wire.Remedy
}

var levels = map[string]Colour{"OK": good, "WARN": warn, "FAIL": bad, "UNKNOWN": dim}

// Findings draws the results, and counts them.
func Findings(group, namespace string, all []Finding, o Options) string {
	var b strings.Builder
	widest, counted := 0, map[string]int{}
	for _, f := range all {
		widest = max(widest, width(f.Check))
		counted[f.Level]++
	}
	indent := 9 + widest + 2
	for _, f := range all {
		b.WriteString(o.paint(text{f.Level, levels[f.Level]}) + strings.Repeat(" ", 9-width(f.Level)))
		b.WriteString(f.Check + strings.Repeat(" ", widest-width(f.Check)+2) + o.wrap(indent, f.Message))
		b.WriteString(o.remedies(indent, f.Remedies))
	}
	fmt.Fprintf(&b, "\n%s (namespace %s): %d ok, %s, %s, %d unknown\n", group, namespace,
		counted["OK"], several(counted["WARN"], "warning"), several(counted["FAIL"], "failure"), counted["UNKNOWN"])
	return b.String()
}

// several returns a number with its noun.
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
