// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for name, tc := range map[string]struct{ in, line, text string }{
		"Plain":       {"paris is active, 3 ✓ é", "paris is active, 3 ✓ é", "paris is active, 3 ✓ é"},
		"Lines":       {"a\nb\tc", `a\nb\tc`, "a\nb\tc"},
		"Cursor":      {"x\x1b[2J\x1b[Hy", `x\x1b[2J\x1b[Hy`, `x\x1b[2J\x1b[Hy`},
		"Return":      {"ok\rbad", `ok\x0dbad`, `ok\x0dbad`},
		"Title":       {"\x1b]0;owned\a", `\x1b]0;owned\x07`, `\x1b]0;owned\x07`},
		"OwnColour":   {"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, "\x1b[31mred\x1b[0m"},
		"Concealed":   {"\x1b[8mhidden", `\x1b[8mhidden`, `\x1b[8mhidden`},
		"C1":          {"a\u009b2Jb", `a\x9b2Jb`, `a\x9b2Jb`},
		"RawC1":       {"a\x9b2Jb", `a\x9b2Jb`, `a\x9b2Jb`},
		"Delete":      {"a\x7f", `a\x7f`, `a\x7f`},
		"Direction":   {"a\u202eb\u2066c\ufeff\u200b", `a\u202eb\u2066c\ufeff\u200b`, `a\u202eb\u2066c\ufeff\u200b`},
		"Separator":   {"a\u2028b", `a\u2028b`, `a\u2028b`},
		"HalfASign":   {"a\xe2\x9c", `a\xe2\x9c`, `a\xe2\x9c`},
		"NoBackspace": {"yes\b\b\bno", `yes\x08\x08\x08no`, `yes\x08\x08\x08no`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.in); got != tc.line {
				t.Errorf("line %q, want %q", got, tc.line)
			}
			if got := Text(tc.in); got != tc.text {
				t.Errorf("text %q, want %q", got, tc.text)
			}
		})
	}
}

// TestWriterInPieces: it makes no difference in which pieces a text comes.
func TestWriterInPieces(t *testing.T) {
	const whole = "é \x1b[31mred\x1b[0m \x1b[2J ✓ \xe2\x9c"
	for size := 1; size <= len(whole); size++ {
		var got bytes.Buffer
		w := NewWriter(&got, true)
		for rest := whole; rest != ""; {
			n := min(size, len(rest))
			if m, err := io.WriteString(w, rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil || got.String() != Text(whole) {
			t.Errorf("pieces of %d: %q, want %q", size, got.String(), Text(whole))
		}
	}
}

// TestRawAndExact: what programs read is not changed, except where it goes to a terminal.
func TestRawAndExact(t *testing.T) {
	var out bytes.Buffer
	if Raw(NewWriter(&out, true)) != io.Writer(&out) || Raw(&out) != io.Writer(&out) || Exact(NewWriter(&out, false)) != io.Writer(&out) {
		t.Error("something stands between")
	}
	if w := NewWriter(&out, true); Exact(w) != io.Writer(w) {
		t.Error("a terminal is not shielded")
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[2J\x1b[31m")
	f.Add("\x1b\x1b[31m[2J")
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Line(s), Text(s)} {
			bare := got
			for _, c := range colours {
				bare = strings.ReplaceAll(bare, "\x1b["+c+"m", "")
			}
			if !utf8.ValidString(bare) || strings.ContainsFunc(bare, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
				t.Errorf("%q of %q", got, s)
			}
		}
	})
}
