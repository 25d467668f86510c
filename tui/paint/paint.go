// SPDX-License-Identifier: Apache-2.0

// Package paint is what every view of the dashboard draws with: the signs of the terminal, its height, the operator's clock, and
// the words for times, amounts and commands.
package paint

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/tui/canvas"
)

// Painter draws for one terminal, at one moment.
type Painter struct {
	Signs canvas.Glyphs
	// Height is 0 for one frame as text.
	Height int
	// Now is the operator's time, which countdowns use.
	Now time.Time
}

// Move is from where to where something goes.
func (p Painter) Move(from, to string) string {
	if from == "" {
		return "to " + to
	}
	return from + " " + p.Signs.Arrow + " " + to
}

// Ago returns the age of a time of the cluster's clock.
func (p Painter) Ago(t time.Time) string { return duration.HumanDuration(max(0, p.Now.Sub(t))) }

// Left returns how long it is until a time of the cluster's clock.
func (p Painter) Left(t time.Time) string { return Seconds(max(0, t.Sub(p.Now))) }

// BodyRows is how many rows are left between header and footer.
func (p Painter) BodyRows() int { return p.Height - 2 }

// Seconds returns a duration as a countdown shows it.
func Seconds(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return duration.HumanDuration(d)
}

// Millis returns a short measured time.
func Millis(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%dms", ms)
	}
	return fmt.Sprintf("%.1fs", float64(ms)/1000)
}

// OrNone returns s, or a dash if it is empty.
func OrNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// OrUnknown returns s, or a question mark if it is unknown.
func OrUnknown(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

// Command draws a command so that it can be copied: whole, and if it is wider than the screen, on several lines, each but the last
// with the backslash by which a shell continues a line. One frame as text leaves it in one line.
func (p Painter) Command(words string, width int) canvas.Block {
	words = canvas.Clean(words)
	indent := strings.Repeat(" ", canvas.LabelWidth)
	if p.Height == 0 || canvas.LabelWidth+canvas.Cells(words) <= width {
		return canvas.Block{{{Text: indent}, {Text: words}}}
	}
	var out canvas.Block
	for rest := words; rest != ""; {
		line, more := cut(rest, width)
		out, rest = append(out, canvas.Line{{Text: line}}), more
	}
	return out.Whole() // half a command does harm
}

// cut splits off what fits, at a blank outside of quotes if there is one, with a backslash after it. The rest starts at the edge: a blank
// before it would become part of a word that was cut in two.
func cut(words string, width int) (line, rest string) {
	if canvas.Cells(words) <= width {
		return words, ""
	}
	used, fits, blank := 0, 0, -1
	var quote rune
	for i, r := range words {
		n := canvas.Cells(string(r))
		if used+n > width-1 {
			break
		}
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			blank = i + 1
		}
		used, fits = used+n, i+len(string(r))
	}
	if 2*blank > fits || blank > 0 && quote == '\'' {
		fits = blank // inside of single quotes a backslash stands for itself
	}
	return words[:fits] + `\`, words[fits:]
}
