// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/tui/canvas"
)

// painter is what every view draws with: the signs of the terminal, its height, and how far what is shown is to be believed.
type painter struct {
	signs canvas.Glyphs
	// height is 0 for one frame as text.
	height int
	connection
}

func (p painter) move(from, to string) string {
	if from == "" {
		return "to " + to
	}
	return from + " " + p.signs.Arrow + " " + to
}

// ago is the age of a time of the cluster's clock.
func (p painter) ago(t time.Time) string { return duration.HumanDuration(max(0, p.clock().Sub(t))) }

func (p painter) left(t time.Time) string { return seconds(max(0, t.Sub(p.clock()))) }

// commandLine stands under the words about it, or at the edge where it fits only there.
func (p painter) commandLine(words string, width int) canvas.Line {
	if p.height > 0 && canvas.LabelWidth+canvas.Cells(words) > width {
		return canvas.Line{{Text: words}}
	}
	return canvas.Line{{Text: strings.Repeat(" ", canvas.LabelWidth)}, {Text: words}}
}

// newsBlock draws the newest items first, one line each.
func (p painter) newsBlock(all []item, rows int, named bool) canvas.Block {
	var out canvas.Block
	for _, i := range slices.Backward(all) {
		if len(out) == rows {
			break
		}
		l := canvas.Line{{Text: i.at.UTC().Format("15:04:05") + "  ", Style: canvas.Faint}}
		if named {
			l = append(l, canvas.Span{Text: i.group + "  ", Style: canvas.Strong})
		}
		out = append(out, append(l, canvas.Span{Text: strings.ReplaceAll(i.words, "\n", " "), Style: i.st}))
	}
	if len(out) == 0 && rows > 0 {
		words := "nothing since the dashboard was opened"
		if p.height == 0 { // one frame was not open for any time
			words = "no events are kept"
		}
		out = append(out, canvas.Line{{Text: words, Style: canvas.Faint}})
	}
	return out
}

// bodyRows is what is left between header and footer.
func (p painter) bodyRows() int { return p.height - 2 }
