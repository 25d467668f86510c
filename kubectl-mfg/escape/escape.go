// SPDX-License-Identifier: Apache-2.0

// Package escape keeps text of the cluster from steering the terminal. Messages, names and annotations come from servers and from anyone
// who may write to the API server: a control sequence in one of them could move the cursor and rewrite the lines above. All that the
// plugin prints for people goes through a Writer; output for programs is not changed.
package escape

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Line makes a text that takes one line and steers nothing: control characters, also line breaks, and signs that are invisible or change
// the direction of writing become visible, as in \x1b.
func Line(s string) string {
	if harmless(s, false) {
		return s
	}
	return rewrite(s, false)
}

// Text is like Line, but leaves line breaks, tabs, and the colours of the plugin's own words.
func Text(s string) string {
	if harmless(s, true) {
		return s
	}
	return rewrite(s, true)
}

// harmless is a fast way past most texts.
func harmless(s string, lines bool) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 || c >= 0x7f) && (!lines || c != '\n' && c != '\t') {
			return false
		}
	}
	return true
}

func rewrite(s string, lines bool) string {
	var b strings.Builder
	for len(s) > 0 {
		if n := colour(s); lines && n > 0 {
			b.WriteString(s[:n])
			s = s[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0]) // also 0x9b, which is ESC [ to some terminals
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20, r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unseen(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

// unseen is true for signs that take no room, end a line, or change the direction of writing: with them a text can look like another one.
func unseen(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f
}

// colours are all colours that the plugin and its frames use. None of them hides anything or moves the cursor.
var colours = []string{"0", "1", "2", "7", "31", "32", "33", ""}

// colour returns the length of the colour with which a text begins, or 0.
func colour(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for _, c := range colours {
		if sequence := "\x1b[" + c + "m"; strings.HasPrefix(s, sequence) {
			return len(sequence)
		}
	}
	return 0
}
