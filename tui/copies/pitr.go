// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"fmt"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/canvas"
)

// PITR draws until when the group can be restored to any moment, and what is missing. It draws nothing if there is no archive.
func (v View) PITR(width int) canvas.Block {
	p := v.Report.PITR
	if p == nil {
		return nil
	}
	label := canvas.Span{Text: "Recover"}
	if p.Bad() || p.GapCount > 0 {
		label.Style = canvas.Warn
	}
	out := v.Signs.Paragraph(label, v.recoverWords(p), width)
	for _, g := range p.Gaps[max(0, len(p.Gaps)-gapsShown):] {
		out = append(out, v.Signs.Paragraph(canvas.Span{}, gapWords(g), width)...)
	}
	if p.PruneMessage != "" {
		out = append(out, v.Signs.Paragraph(canvas.Span{}, "nothing is removed from the archive, which grows: "+p.PruneMessage, width)...)
	}
	if p.Bad() && p.Message != "" {
		out = append(out, v.Signs.Paragraph(canvas.Span{}, p.Message+" ["+string(p.Reason)+"]", width)...)
	}
	return out
}

// gapsShown is how many gaps the pane has room for.
const gapsShown = 3

func (v View) recoverWords(p *report.PITR) string {
	words := "no point in time yet"
	switch {
	case p.Latest != nil && p.Earliest != nil:
		words = "any moment until " + v.Ago(*p.Latest) + " ago, from " + v.Ago(*p.Earliest) + " ago on"
	case p.Latest != nil:
		words = "no point in time: no backup to begin with"
	}
	if p.Site != "" {
		words += ", archived by " + p.Site
	}
	if p.Bytes > 0 {
		words += " (" + report.Bytes(p.Bytes) + ")"
	}
	if p.GapCount > 0 {
		words += fmt.Sprintf(", %s", gaps(p.GapCount))
	}
	if p.Holding {
		words += ", binary logs are kept on the sites for it"
	}
	return words
}

func gapWords(g report.PITRGap) string {
	words := fmt.Sprintf("gap: %d transactions", g.Transactions)
	if g.Site != "" {
		words += fmt.Sprintf(" of %s in epoch %d", g.Site, g.Epoch)
	}
	if g.After != nil {
		words += ", after " + g.After.UTC().Format("2006-01-02 15:04:05Z")
	}
	if g.Before != nil {
		words += ", before " + g.Before.UTC().Format("2006-01-02 15:04:05Z")
	}
	return words
}

func gaps(n int32) string {
	if n == 1 {
		return "1 gap"
	}
	return fmt.Sprintf("%d gaps", n)
}
