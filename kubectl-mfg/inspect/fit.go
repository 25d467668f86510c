// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/tui/canvas"
)

// size is that of a terminal; 0 is not known, and then nothing is cut.
type size struct{ width, height int }

func sizeOf(env cli.Environment) (s size) {
	s.width, _ = env.Terminal()
	if env.Height != nil {
		s.height = env.Height()
	}
	return s
}

// fit cuts an answer to the screen, from below: a terminal that scrolls shows the end alone. A warning stays, and the last line says where
// the rest can be seen.
func (s size) fit(drawn, warning, rest string) string {
	lines := strings.Split(strings.TrimSuffix(escape.Text(drawn), "\n"), "\n")
	below := []string{}
	if warning != "" {
		below = strings.Split("\n"+escape.Text(warning), "\n")
	}
	if room := s.height - 1; s.height > 0 && s.rows(lines)+s.rows(below) > room { // the cursor has a line too
		if warning != "" {
			below = []string{s.cut(below[1])}
		}
		kept := s.within(lines, room-1-len(below))
		more := fmt.Sprintf("... %d more lines: see %s", len(lines)-kept, rest)
		lines = append(lines[:kept:kept], s.cut(more))
	}
	return strings.Join(append(lines, below...), "\n") + "\n"
}

// within returns how many of the lines have room.
func (s size) within(lines []string, room int) int {
	for i, line := range lines {
		if room -= s.rows([]string{line}); room < 0 {
			return i
		}
	}
	return len(lines)
}

// rows is how many rows of the terminal the lines take: it continues a long one on the next row.
func (s size) rows(lines []string) (n int) {
	for _, line := range lines {
		n++
		if cells := canvas.Cells(uncoloured(line)); s.width > 0 && cells > s.width {
			n += (cells - 1) / s.width
		}
	}
	return n
}

// cut makes a line without colours take one row.
func (s size) cut(line string) string {
	line = uncoloured(line)
	for s.width > 0 && canvas.Cells(line) > s.width {
		_, last := utf8.DecodeLastRuneInString(line)
		line = line[:len(line)-last]
	}
	return line
}

// uncoloured leaves out the colours, the only control sequences that a line of the plugin has.
func uncoloured(line string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(line, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, line, _ = strings.Cut(after, "m")
	}
}
