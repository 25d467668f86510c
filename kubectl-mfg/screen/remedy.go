// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"

	"github.com/mysql-mfg/mfg/api/wire"
)

// remedies draws what a person can do, below what it is about. On a terminal each command has a line of its own, whole and with nothing
// after it, since people copy it: with words after it a shell would refuse it, or run those too.
func (o Options) remedies(indent int, all []wire.Remedy) string {
	if len(all) == 0 {
		return ""
	}
	margin := strings.Repeat(" ", indent)
	if o.Width == 0 {
		return margin + o.wrap(indent, "-> "+wire.InWords(all))
	}
	var b strings.Builder
	for i, r := range all {
		mark := ""
		if i == 0 {
			mark = "-> "
		}
		switch {
		case r.Text == "":
			b.WriteString(margin + mark + r.Command + "\n")
		case r.Command == "":
			b.WriteString(margin + o.wrap(indent, mark+r.Text))
		default:
			b.WriteString(margin + o.wrap(indent, mark+r.Text+":"))
			b.WriteString(strings.Repeat(" ", min(indent, labelWidth)) + r.Command + "\n")
		}
	}
	return b.String()
}
