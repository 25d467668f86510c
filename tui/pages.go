// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/drill"
	"github.com/mysql-mfg/mfg/tui/help"
)

// whyPage draws what the operator says about its decision, as kubectl mfg explain does.
func (m Model) whyPage(width int) canvas.Block {
	if m.why.name() != m.open {
		return canvas.Block{nil, {{Text: "  asking the operator" + m.signs.Ellipsis, Style: canvas.Faint}}}
	}
	if m.why.Error != "" {
		return append(canvas.Block{nil}, m.signs.Paragraph(canvas.Span{Text: "Error", Style: canvas.Bad}, m.why.Error, width)...)
	}
	out := canvas.Block{nil}
	for l := range strings.SplitSeq(strings.TrimRight(m.why.Why, "\n"), "\n") {
		out = append(out, canvas.Line{{Text: l}})
	}
	return out
}

// drillPage draws what is below a site.
func (m Model) drillPage(width int) canvas.Block {
	var f drill.Facts
	if g := m.fleet.groups[m.open]; g != nil {
		f = drill.Facts{Report: g.report, Events: g.events}
	}
	return m.drill.Draw(m.painter().Painter, f, width)
}

func (m Model) helpPage(width int) canvas.Block {
	return help.Draw(m.signs, m.options.AllowActions, width)
}
