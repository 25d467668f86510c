// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"net"
	"strconv"
)

// The bounds of an answer. INFO has some eight kilobytes; a server that announces more is none of the engines, and would make the
// client library reserve what it announces.
const (
	longestAnswer  = 1 << 20
	longestLine    = 8 << 10
	mostElements   = 1 << 10
	longestMessage = 200
)

var errTooMuch = errors.New("the answer is larger than any answer of a cache engine")

// bounded is a connection that ends when the other side announces more than an answer can hold. It follows the protocol (RESP) only
// far enough to tell lengths from data.
type bounded struct {
	net.Conn
	line []byte
	// heard is true from the end of the first line on.
	heard bool
	data  int64 // how many bytes of data follow before the next line
	total int64
	// elements are those that were announced. The client library reserves room for all of a list when it reads how many it has, and a list
	// may have lists in it.
	elements int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if bad := b.scan(p[:n]); bad != nil {
		_ = b.Close()
		return 0, bad
	}
	return n, err
}

// Write begins a new command: the bounds on the sum of what is read count from here.
func (b *bounded) Write(p []byte) (int, error) {
	b.total, b.elements = 0, 0
	return b.Conn.Write(p)
}

func (b *bounded) scan(p []byte) error {
	if b.total += int64(len(p)); b.total > longestAnswer {
		return errTooMuch
	}
	for len(p) > 0 {
		if b.data > 0 {
			skip := min(b.data, int64(len(p)))
			b.data, p = b.data-skip, p[skip:]
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			b.line = append(b.line, p...)
			if len(b.line) > longestLine {
				return errTooMuch
			}
			return nil
		}
		b.line = append(b.line, p[:end]...)
		p = p[end+1:]
		if err := b.header(); err != nil {
			return err
		}
		b.line = b.line[:0]
	}
	return nil
}

// header reads a whole line: a length says how much data comes, or how many elements.
func (b *bounded) header() error {
	line := bytes.TrimSuffix(b.line, []byte("\r"))
	if len(line) == 0 || len(line) > longestLine {
		return errTooMuch
	}
	if first := !b.heard; first && isRefusal(line) {
		return ErrFull
	}
	b.heard = true
	kind, text := line[0], string(line[1:])
	most := int64(longestAnswer)
	switch kind {
	case '$', '=', '!', ';': // text of a length
	case '*', '%', '~', '>', '|': // elements
		most = mostElements
	default:
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > most {
		return errTooMuch
	}
	switch {
	case n < 0: // nothing
	case most == longestAnswer:
		b.data = n + 2
	default:
		if b.elements += n; b.elements > mostElements {
			return errTooMuch
		}
	}
	return nil
}
