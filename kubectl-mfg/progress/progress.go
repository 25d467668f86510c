// SPDX-License-Identifier: Apache-2.0

// Package progress tells on stderr how far slow work is: by a bar that is redrawn on a terminal, and else by a line now and then.
package progress

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

const (
	barWidth = 20
	// step is how many percent lie between two lines without a terminal.
	step = 10
	// redraw is the least time between two redraws of the time on a terminal.
	redraw = time.Second
)

// Teller tells it.
type Teller struct {
	env   cli.Environment
	began time.Time
	live  bool
	drawn bool
	said  string
	at    int32
	last  time.Time
}

// New makes a Teller. On a terminal it redraws the bar, unless stdout gets an answer for programs.
func New(env cli.Environment, out cli.Output) *Teller {
	_, terminal := env.Terminal()
	return &Teller{env: env, began: env.Now(), live: terminal && !out.Machine(), at: -step}
}

// Tell says what is happening; percent is how much is done, below 0 if unknown.
func (t *Teller) Tell(words string, percent int32) {
	now := t.env.Now()
	same := words == t.said
	if t.live {
		if same && percent == t.at && now.Sub(t.last) < redraw {
			return
		}
		t.draw(now, words, percent)
		return
	}
	if same && (percent < 0 || percent < t.at+step) {
		return
	}
	t.said, t.at = words, percent
	fmt.Fprintf(t.env.ErrOut, "%6.1fs  %s%s\n", now.Sub(t.began).Seconds(), words, percentWords(percent))
}

func (t *Teller) draw(now time.Time, words string, percent int32) {
	if t.drawn && words != t.said {
		fmt.Fprintln(t.env.ErrOut) // the last words stay
	}
	bar := ""
	if percent >= 0 {
		bar = screen.Bar(percent, barWidth) + fmt.Sprintf(" %3d%%  ", percent)
	}
	line := fmt.Sprintf("%6.0fs  %s%s", now.Sub(t.began).Seconds(), bar, words)
	if width, _ := t.env.Terminal(); width > 1 && len([]rune(line)) >= width {
		line = string([]rune(line)[:width-1]) // a line that wraps cannot be redrawn
	}
	fmt.Fprint(escape.Raw(t.env.ErrOut), "\r"+cli.ClearLine+escape.Line(line))
	t.drawn, t.said, t.at, t.last = true, words, percent, now
}

// End leaves the line of the bar.
func (t *Teller) End() {
	if t.drawn {
		fmt.Fprintln(t.env.ErrOut)
		t.drawn = false
	}
}

func percentWords(percent int32) string {
	if percent < 0 {
		return ""
	}
	return fmt.Sprintf(" %d%%", percent)
}
