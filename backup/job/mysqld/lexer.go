// SPDX-License-Identifier: Apache-2.0

package mysqld

// Lexer tells, byte by byte, what of the text of statements is code, and what stands in quotes or in a comment. An account that
// may create something in one database chooses names and values, and these may hold lines that look like statements of a dump. The lexer reads text
// as the program mysql does.
type Lexer struct {
	// in is the quote of the name or string, or inLine, or inBlock; 0 is code.
	in      byte
	escaped bool
	// Literal is true if a backslash escapes nothing (NO_BACKSLASH_ESCAPES).
	Literal bool
	// version is true in a comment with a version, whose text is code.
	version bool
	// before and last are the two bytes before the next one; 0 for what was not of the same kind.
	before, last byte
}

const (
	inLine  = '-' // a comment to the end of the line
	inBlock = '*' // a comment in slashes and asterisks
)

// Code takes the next byte, and is true if that is code.
func (l *Lexer) Code(b byte) bool {
	switch l.in {
	case 0:
		return l.outside(b)
	case inLine:
		if b == '\n' {
			l.enter(0)
			return true
		}
	case inBlock:
		if l.last == '*' && b == '/' {
			l.enter(0)
			return false
		}
		l.last = b
	default:
		l.inside(b)
	}
	return false
}

// inside takes a byte of a name or a string. A doubled quote ends it and begins it again.
func (l *Lexer) inside(b byte) {
	switch {
	case l.escaped:
		l.escaped = false
	case b == '\\' && l.in != '`' && !l.Literal:
		l.escaped = true
	case b == l.in:
		l.enter(0)
	}
}

func (l *Lexer) outside(b byte) bool {
	before, last := l.before, l.last
	l.before, l.last = last, b
	switch {
	case before == '/' && last == '*' && b == '!':
		l.version = true
	case before == '/' && last == '*':
		l.enter(inBlock)
		l.last = b
		return false
	case l.version && last == '*' && b == '/':
		l.version = false
		l.before, l.last = 0, 0
	case before == '-' && last == '-' && b != '\n' && (b <= ' ' || b == 0x7f), b == '#':
		l.enter(inLine)
		return false
	case b == '\'' || b == '"' || b == '`':
		l.enter(b)
		return false
	}
	return true
}

func (l *Lexer) enter(in byte) { l.in, l.before, l.last = in, 0, 0 }
