// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"github.com/mysql-mfg/mfg/tui/canvas"
)

// hints are the next commands, as kubectl mfg status names them. A command is there to be copied, so it is drawn whole or not
// at all: a screen cuts its lines off, and what is left of a command may be another one. One frame as text cuts nothing off.
func (v groupView) hints(width int) canvas.Block {
	var out canvas.Block
	cutOff := false
	for _, h := range v.g.report.Hints {
		whole := v.height == 0 || canvas.Cells(h.Command) <= width
		words := h.Message + ":"
		if !whole {
			words, cutOff = h.Message, true
		}
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Hint", Style: canvas.Good}, words, width)...)
		if whole {
			out = append(out, v.commandLine(h.Command, width))
		}
	}
	if cutOff {
		out = append(out, v.signs.Paragraph(canvas.Span{Text: "Hint", Style: canvas.Good}, "commands that are wider than this screen are shown by:", width)...)
		out = append(out, v.commandLine("kubectl mfg status "+v.g.report.Metadata.Name+" -n "+v.g.report.Metadata.Namespace, width))
	}
	return out
}
