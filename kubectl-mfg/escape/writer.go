// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer writes Text. It is safe for use by several goroutines if the writer behind it is.
type Writer struct {
	out io.Writer
	// terminal is true if the output shows at once.
	terminal bool

	mu sync.Mutex
	// rest is the beginning of a sign, or of a colour, that the next write may end. It is at most four bytes long.
	rest string
}

// NewWriter makes a Writer to out; terminal is true if that is one.
func NewWriter(out io.Writer, terminal bool) *Writer { return &Writer{out: out, terminal: terminal} }

// Write escapes p.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.rest + string(p)
	whole := len(s) - unfinished(s)
	w.rest = s[whole:]
	if _, err := io.WriteString(w.out, Text(s[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes an unfinished rest. It does not close the writer behind it.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.rest
	w.rest = ""
	_, err := io.WriteString(w.out, Text(rest))
	return err
}

// unfinished returns how many bytes at the end of a text are the beginning of a sign, or of a colour.
func unfinished(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if tail := s[len(s)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return n
			}
			break
		}
	}
	const longest = len("\x1b[31")
	i := strings.LastIndexByte(s, '\x1b')
	if i < 0 || len(s)-i > longest {
		return 0
	}
	for _, c := range colours {
		if sequence := "\x1b[" + c + "m"; s[i:] != sequence && strings.HasPrefix(sequence, s[i:]) {
			return len(s) - i
		}
	}
	return 0
}

// Raw returns what is behind a Writer, for output that is not ours to change: that of a program in a pod, an archive, and the
// plugin's own moves of the cursor.
func Raw(w io.Writer) io.Writer {
	if own, is := w.(*Writer); is {
		return own.out
	}
	return w
}

// Exact is for output that programs read: it stays unchanged, unless it goes to a terminal after all.
func Exact(w io.Writer) io.Writer {
	if own, is := w.(*Writer); is && own.terminal {
		return w
	}
	return Raw(w)
}
