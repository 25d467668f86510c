// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/mysql-mfg/mfg/tui/canvas"
)

// hints are the next commands, as kubectl mfg status names them. A command is there to be copied, so it is drawn whole or not
// at all: a screen cuts its lines off, and what is left of a command may be another one. One frame as text cuts nothing off.
func (m Model) hints(g *group, width int) canvas.Block {
	var out canvas.Block
	cutOff := false
	for _, h := range g.report.Hints {
		whole := m.height == 0 || canvas.Cells(h.Command) <= width
		words := h.Message + ":"
		if !whole {
			words, cutOff = h.Message, true
		}
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Hint", Style: canvas.Good}, words, width)...)
		if whole {
			out = append(out, m.commandLine(h.Command, width))
		}
	}
	if cutOff {
		out = append(out, m.signs.Paragraph(canvas.Span{Text: "Hint", Style: canvas.Good}, "commands that are wider than this screen are shown by:", width)...)
		out = append(out, m.commandLine("kubectl mfg status "+g.report.Metadata.Name+" -n "+g.report.Metadata.Namespace, width))
	}
	return out
}

// commandLine stands under the words about it, or at the edge where it fits only there.
func (m Model) commandLine(words string, width int) canvas.Line {
	if m.height > 0 && canvas.LabelWidth+canvas.Cells(words) > width {
		return canvas.Line{{Text: words}}
	}
	return canvas.Line{{Text: strings.Repeat(" ", canvas.LabelWidth)}, {Text: words}}
}
