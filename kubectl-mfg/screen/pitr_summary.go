// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// recoverable draws the archive among the lines of a group: from when to when any moment can be restored.
func (o Options) recoverable(p *report.PITR) string {
	if p == nil {
		return ""
	}
	label, words := text{s: "Recover"}, ""
	switch {
	case p.Latest == nil:
		label.colour, words = warn, "no point in time yet"
	case p.Earliest == nil:
		label.colour, words = warn, "no point in time: there is no backup to begin with"
	default:
		words = fmt.Sprintf("any moment until %s ago, from %s", o.ago(*p.Latest), second(*p.Earliest))
	}
	if p.GapCount > 0 {
		label.colour, words = warn, words+", but for "+gapWords(p)
	}
	if p.Bad() {
		label.colour = bad
	}
	drawn := o.paragraph(label, words)
	if p.Holding {
		drawn += o.paragraph(text{}, "binary logs are kept on the sites until they are archived")
	}
	if p.PruneMessage != "" {
		drawn += o.paragraph(text{}, "nothing is removed from the archive, which grows: "+p.PruneMessage)
	}
	if p.Bad() && p.Message != "" {
		drawn += o.paragraph(text{}, p.Message+" ["+string(p.Reason)+"]")
	}
	return drawn
}

// gapWords names the newest gap, and counts all.
func gapWords(p *report.PITR) string {
	words := fmt.Sprintf("%d gaps", p.GapCount)
	if p.GapCount == 1 {
		words = "one gap"
	}
	if len(p.Gaps) == 0 {
		return words
	}
	g := p.Gaps[len(p.Gaps)-1]
	words += fmt.Sprintf(", the last of %d transactions", g.Transactions)
	if g.After != nil {
		words += " after " + instant(*g.After)
	}
	if g.Before != nil {
		words += " before " + instant(*g.Before)
	}
	return words
}

// explainedPITR draws the archive in an explanation, if something is wrong with it.
func (o Options) explainedPITR(e report.Explained) string {
	if e.PITR == nil || !e.PITR.Bad() || e.Explanation == nil { // without an explanation it is among the problems
		return ""
	}
	return o.paragraph(text{"Archive", warn}, "not as it should be, which keeps no failover from happening: "+e.PITR.Message+" ["+string(e.PITR.Reason)+"]")
}
