// SPDX-License-Identifier: Apache-2.0

package canvas

import (
	"math"
	"strings"

	"github.com/NimbleMarkets/ntcharts/v2/sparkline"
)

// History is how many samples are kept of each plot, one a second.
const History = 180

// UnknownSample marks a second without a known value.
var UnknownSample = math.NaN()

// Trace is a ring of samples, the newest last.
type Trace struct {
	ring []float64
	next int
	// pushed counts samples; drawn is the plot of that many, as last asked for.
	pushed int
	drawn  struct {
		as   drawnAs
		plot Block
	}
}

// drawnAs is all that a plot depends on.
type drawnAs struct {
	pushed, width, height int
	top                   float64
	ascii                 bool
}

// Push adds a sample, and drops the oldest if there are too many.
func (t *Trace) Push(v float64) {
	t.pushed++
	if len(t.ring) < History {
		t.ring = append(t.ring, v)
		return
	}
	t.ring[t.next] = v
	t.next = (t.next + 1) % History
}

// Last returns the newest n samples, the oldest of them first.
func (t *Trace) Last(n int) []float64 {
	n = min(n, len(t.ring))
	out := make([]float64, 0, n)
	for i := len(t.ring) - n; i < len(t.ring); i++ {
		out = append(out, t.ring[(t.next+i)%len(t.ring)])
	}
	return out
}

// Greatest returns the greatest known sample, but at least the floor: jitter near 0 must not look large.
func Greatest(samples []float64, floor float64) float64 {
	for _, v := range samples {
		if !math.IsNaN(v) {
			floor = max(floor, v)
		}
	}
	return floor
}

// Course plots a trace. A screen is drawn several times between two samples, so the last plot is kept.
func (g Glyphs) Course(t *Trace, width, height int, top float64) Block {
	as := drawnAs{t.pushed, width, height, top, g.IsASCII}
	if t.drawn.as != as {
		t.drawn.as, t.drawn.plot = as, g.Spark(t.Last(width), width, height, top)
	}
	return t.drawn.plot
}

// Levels of a plot of one line, from a known 0 to the top.
var (
	unicodeLevels = []rune("▁▂▃▄▅▆▇█")
	asciiLevels   = []rune("_.:-=+*#")
)

// Spark plots samples, the newest at the right. A known 0 is a thin line, an unknown value is blank. Plots of one line
// are drawn here: there are a hundred on a screen, and a canvas for each would take most of a frame's time.
func (g Glyphs) Spark(samples []float64, width, height int, top float64) Block {
	if width <= 0 {
		return nil
	}
	if height == 1 || g.IsASCII {
		return Block{{{Text: g.oneLine(samples, width, top)}}}
	}
	least := top / float64(8*height) // one eighth of a cell
	m := sparkline.New(width, height, sparkline.WithMaxValue(top), sparkline.WithNoAutoMaxValue())
	for _, v := range samples {
		if math.IsNaN(v) {
			m.Push(0)
			continue
		}
		m.Push(min(top, max(v, least)))
	}
	m.Draw()
	var out Block
	for row := range strings.SplitSeq(m.View(), "\n") {
		out = append(out, Line{{Text: row}})
	}
	return out
}

func (g Glyphs) oneLine(samples []float64, width int, top float64) string {
	levels := unicodeLevels
	if g.IsASCII {
		levels = asciiLevels
	}
	n := min(width, len(samples))
	out := make([]rune, 0, width)
	for range width - n {
		out = append(out, ' ')
	}
	for _, v := range samples[len(samples)-n:] {
		level := ' '
		if !math.IsNaN(v) {
			level = levels[int(min(1, max(0, v/top))*float64(len(levels)-1)+0.5)]
		}
		out = append(out, level)
	}
	return string(out)
}

// Bar shows a share of 1. A share above 0 never looks empty, one below 1 never full.
func (g Glyphs) Bar(share float64, width int) string {
	n := int(math.Round(min(1, max(0, share)) * float64(width)))
	switch {
	case share > 0 && n == 0:
		n = 1
	case share < 1 && n == width:
		n = width - 1
	}
	return strings.Repeat(g.full, n) + strings.Repeat(g.empty, width-n)
}
