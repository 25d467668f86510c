// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/mysql-mfg/mfg/tui/canvas"
	"github.com/mysql-mfg/mfg/tui/paint"
)

// painter is what every view draws with, and knows how far to trust what is shown.
type painter struct {
	paint.Painter
	connection
}

// newsBlock draws the newest items first, one line each.
func (p painter) newsBlock(all []item, rows int, named bool) canvas.Block {
	var out canvas.Block
	for i := len(all) - 1; i >= 0 && len(out) < rows; i-- {
		l := canvas.Line{{Text: all[i].at.UTC().Format("15:04:05") + "  ", Style: canvas.Faint}}
		if named {
			l = append(l, canvas.Span{Text: all[i].group + "  ", Style: canvas.Strong})
		}
		out = append(out, append(l, canvas.Span{Text: strings.ReplaceAll(all[i].words, "\n", " "), Style: all[i].st}))
	}
	if len(out) == 0 && rows > 0 {
		words := "nothing since the dashboard was opened"
		if p.Height == 0 { // a single frame has no history of its own
			words = "no events are kept"
		}
		out = append(out, canvas.Line{{Text: words, Style: canvas.Faint}})
	}
	return out
}
