// SPDX-License-Identifier: Apache-2.0

// Package resp speaks the protocol of Redis and its relatives, as far as the tests need it: commands and replies of version 2, and
// the raw bytes of replies of version 3. It retries nothing and knows no pool, because a witness must know what became of each
// command that it sent.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Limits of what is read: a peer that says more is not believed.
const (
	maxBulk  = 64 << 20
	maxItems = 1 << 20
	maxLine  = 64 << 10
	maxDepth = 8
)

// ErrProtocol is what a peer sends that is no command and no reply.
var ErrProtocol = errors.New("not the protocol of Redis")

// Value is one reply.
type Value struct {
	// Kind is the first byte of the reply: '+' text, '-' error, ':' number, '$' bulk text, '*' list.
	Kind  byte
	Text  string
	Int   int64
	Items []Value
	Null  bool
}

// Error is a server's word that it did not do what it was told.
type Error string

func (e Error) Error() string { return string(e) }

// Code is the first word of the error.
func (e Error) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// AppendCommand appends a command as clients send it.
func AppendCommand(b []byte, args ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = AppendBulk(b, a)
	}
	return b
}

// AppendBulk appends a bulk text.
func AppendBulk(b []byte, text string) []byte {
	return fmt.Appendf(b, "$%d\r\n%s\r\n", len(text), text)
}

// line reads up to the end of a line, which it leaves out.
func line(r *bufio.Reader) (string, error) {
	var all []byte
	for {
		part, err := r.ReadSlice('\n')
		all = append(all, part...)
		if len(all) > maxLine {
			return "", fmt.Errorf("read line: %w: longer than %d bytes", ErrProtocol, maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return "", err
		}
		return strings.TrimRight(string(all), "\r\n"), nil
	}
}

// count reads the number after the first byte of a line, from -1 to a limit.
func count(text string, limit int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n > limit {
		return 0, fmt.Errorf("%w: length %q", ErrProtocol, text)
	}
	return n, nil
}

// bulk reads n bytes and the end of the line after them.
func bulk(r *bufio.Reader, n int) (string, error) {
	// In parts, so that a peer has to send what it announces before it is given memory.
	var b strings.Builder
	if _, err := io.CopyN(&b, r, int64(n)+2); err != nil {
		return "", err
	}
	text := b.String()
	if !strings.HasSuffix(text, "\r\n") {
		return "", fmt.Errorf("%w: a bulk text without its end", ErrProtocol)
	}
	return text[:n], nil
}

// ReadCommand reads one command, in the form of clients or as a line. An empty line is a command without words.
func ReadCommand(r *bufio.Reader) ([]string, error) {
	head, err := line(r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(head, "*") {
		return strings.Fields(head), nil
	}
	n, err := count(head[1:], maxItems)
	if err != nil {
		return nil, err
	}
	var args []string
	for range max(n, 0) {
		head, err := line(r)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(head, "$") {
			return nil, fmt.Errorf("%w: %.20q in a command", ErrProtocol, head)
		}
		size, err := count(head[1:], maxBulk)
		if err != nil || size < 0 {
			return nil, errors.Join(ErrProtocol, err)
		}
		arg, err := bulk(r, size)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

// Read reads one reply of version 2. An error of the server is a value like others: see Err.
func Read(r *bufio.Reader) (Value, error) { return read(r, 0) }

func read(r *bufio.Reader, depth int) (Value, error) {
	head, err := line(r)
	if err != nil {
		return Value{}, err
	}
	if head == "" || depth > maxDepth {
		return Value{}, fmt.Errorf("%w: an empty or too deep reply", ErrProtocol)
	}
	v := Value{Kind: head[0]}
	switch v.Kind {
	case '+', '-':
		v.Text = head[1:]
	case ':':
		v.Int, err = strconv.ParseInt(head[1:], 10, 64)
	case '$':
		n, bad := count(head[1:], maxBulk)
		if v.Null = n < 0; v.Null || bad != nil {
			return v, bad
		}
		v.Text, err = bulk(r, n)
	case '*':
		n, bad := count(head[1:], maxItems)
		if v.Null = n < 0; v.Null || bad != nil {
			return v, bad
		}
		for range n {
			item, err := read(r, depth+1)
			if err != nil {
				return v, err
			}
			v.Items = append(v.Items, item)
		}
	default:
		err = fmt.Errorf("%w: reply %.20q", ErrProtocol, head)
	}
	return v, err
}

// Err is the error that the server told, if it did.
func (v Value) Err() error {
	if v.Kind == '-' {
		return Error(v.Text)
	}
	return nil
}

// CopyReply copies one reply of version 2 or 3 as it is, with the pushes and attributes that come before it.
func CopyReply(w io.Writer, r *bufio.Reader) error {
	for {
		kind, err := copyValue(w, r, 0)
		if err != nil || !slices.Contains([]byte{'>', '|'}, kind) {
			return err
		}
	}
}

func copyValue(w io.Writer, r *bufio.Reader, depth int) (byte, error) {
	head, err := line(r)
	if err != nil {
		return 0, err
	}
	if head == "" || depth > maxDepth {
		return 0, fmt.Errorf("%w: an empty or too deep reply", ErrProtocol)
	}
	if _, err := io.WriteString(w, head+"\r\n"); err != nil {
		return 0, err
	}
	items := 0
	switch kind := head[0]; kind {
	case '$', '!', '=':
		n, err := count(head[1:], maxBulk)
		if err != nil || n < 0 {
			return kind, err
		}
		_, err = io.CopyN(w, r, int64(n)+2)
		return kind, err
	case '*', '~', '>':
		items, err = count(head[1:], maxItems)
	case '%', '|':
		items, err = count(head[1:], maxItems/2)
		items *= 2
	case '+', '-', ':', '_', '#', ',', '(':
	default:
		err = fmt.Errorf("%w: reply %.20q", ErrProtocol, head)
	}
	if err != nil {
		return head[0], err
	}
	for range max(items, 0) {
		if _, err := copyValue(w, r, depth+1); err != nil {
			return head[0], err
		}
	}
	return head[0], nil
}
