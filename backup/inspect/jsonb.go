// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Types of values in MySQL's binary JSON.
const (
	jsonSmallObject = iota
	jsonLargeObject
	jsonSmallArray
	jsonLargeArray
	jsonLiteral
	jsonInt16
	jsonUint16
	jsonInt32
	jsonUint32
	jsonInt64
	jsonUint64
	jsonDouble
	jsonString
	jsonOpaque = 0x0f
)

// documentDepth is what MySQL allows.
const documentDepth = 100

// document writes a JSON document of a column as text, as MySQL would read it back: a number with a fraction stays one. What JSON has no
// type for, such as a date, is text, as mysqldump has it. ok is false if it is malformed.
func document(raw []byte) (text []byte, ok bool) {
	if len(raw) == 0 { // what INSERT IGNORE makes of NULL in a NOT NULL column
		return []byte("null"), true
	}
	// A malformed document can name one value many times; what is written is bounded by what a well-formed one could be.
	d := &documentWriter{left: 16*len(raw) + 1024}
	d.value(raw[0], raw[1:], 0)
	return d.out, !d.bad
}

type documentWriter struct {
	out  []byte
	left int
	bad  bool
}

func (d *documentWriter) add(text ...byte) {
	if d.left -= len(text); d.left < 0 {
		d.bad = true
	}
	if !d.bad {
		d.out = append(d.out, text...)
	}
}

func (d *documentWriter) fail() { d.bad = true }

func (d *documentWriter) value(kind byte, data []byte, depth int) {
	if d.bad || depth > documentDepth {
		d.fail()
		return
	}
	c := &cursor{b: data}
	switch kind {
	case jsonSmallObject, jsonLargeObject, jsonSmallArray, jsonLargeArray:
		d.container(kind, data, depth)
		return
	case jsonLiteral:
		d.literal(c.little(1))
	case jsonInt16:
		d.add(strconv.AppendInt(nil, int64(int16(c.little(2))), 10)...)
	case jsonUint16:
		d.add(strconv.AppendUint(nil, c.little(2), 10)...)
	case jsonInt32:
		d.add(strconv.AppendInt(nil, int64(int32(c.little(4))), 10)...)
	case jsonUint32:
		d.add(strconv.AppendUint(nil, c.little(4), 10)...)
	case jsonInt64:
		d.add(strconv.AppendInt(nil, int64(c.little(8)), 10)...)
	case jsonUint64:
		d.add(strconv.AppendUint(nil, c.little(8), 10)...)
	case jsonDouble:
		d.double(math.Float64frombits(c.little(8)))
	case jsonString:
		d.text(c.take(variable(c)))
	case jsonOpaque:
		d.opaque(c)
	default:
		d.fail()
	}
	d.bad = d.bad || c.bad
}

func (d *documentWriter) literal(which uint64) {
	switch which {
	case 0:
		d.add([]byte("null")...)
	case 1:
		d.add([]byte("true")...)
	case 2:
		d.add([]byte("false")...)
	default:
		d.fail()
	}
}

// double keeps what makes MySQL read a double: a fraction or an exponent.
func (d *documentWriter) double(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		d.fail()
		return
	}
	text := strconv.AppendFloat(nil, v, 'g', -1, 64)
	for _, c := range text {
		if c == '.' || c == 'e' {
			d.add([]byte(text)...)
			return
		}
	}
	d.add(append(text, ".0"...)...)
}

func (d *documentWriter) text(raw []byte) {
	if !utf8.Valid(raw) {
		d.fail()
		return
	}
	d.add(quoteJSON(raw)...)
}

// quoteJSON writes valid UTF-8 as a string of JSON.
func quoteJSON(raw []byte) []byte {
	out := append(make([]byte, 0, len(raw)+2), '"')
	for _, c := range raw {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

const hexDigits = "0123456789abcdef"

// variable is a length in groups of seven bits.
func variable(c *cursor) int {
	n := uint64(0)
	for i := range 5 {
		b := c.little(1)
		n |= b & 0x7f << (7 * i)
		if b&0x80 == 0 {
			return int(min(n, math.MaxInt32+1))
		}
	}
	c.bad = true
	return 0
}

func (d *documentWriter) opaque(c *cursor) {
	kind := byte(c.little(1))
	raw := c.take(variable(c))
	switch {
	case kind == mysql.MYSQL_TYPE_NEWDECIMAL && len(raw) > 2:
		if text, ok := decimal(raw[2:], int(raw[0]), int(raw[1])); ok {
			d.add([]byte(text)...)
			return
		}
		d.fail()
	case kind == mysql.MYSQL_TYPE_TIME && len(raw) == 8:
		d.text([]byte(clock(int64(little(raw)), 6)))
	case kind == mysql.MYSQL_TYPE_DATE && len(raw) == 8:
		d.text([]byte(moment(int64(little(raw)), 6)[:len("2006-01-02")]))
	case (kind == mysql.MYSQL_TYPE_DATETIME || kind == mysql.MYSQL_TYPE_TIMESTAMP) && len(raw) == 8:
		d.text([]byte(moment(int64(little(raw)), 6)))
	default:
		d.text([]byte("base64:type" + strconv.Itoa(int(kind)) + ":" + base64.StdEncoding.EncodeToString(raw)))
	}
}

// container is an object or an array: how many members, how many bytes, keys, values.
func (d *documentWriter) container(kind byte, data []byte, depth int) {
	object, size := kind == jsonSmallObject || kind == jsonLargeObject, 2
	if kind == jsonLargeObject || kind == jsonLargeArray {
		size = 4
	}
	head := &cursor{b: data}
	count, bytes := head.little(size), head.little(size)
	if head.bad || bytes > uint64(len(data)) || count > bytes {
		d.fail()
		return
	}
	data = data[:bytes]
	keys := &cursor{b: head.b}
	if object {
		keys.b = head.take(int(count) * (size + 2))
	}
	d.add([]byte{'[', '{'}[boolIndex(object)])
	for i := range int(count) {
		if i > 0 {
			d.add(',', ' ')
		}
		if object {
			d.text(part(data, keys.little(size), keys.little(2)))
			d.add(':', ' ')
		}
		kind := byte(head.little(1))
		entry := head.take(size)
		if head.bad || keys.bad || d.bad {
			d.fail()
			return
		}
		if inline(kind, size) {
			d.value(kind, entry, depth+1)
			continue
		}
		at := little(entry)
		if at >= uint64(len(data)) {
			d.fail()
			return
		}
		d.value(kind, data[at:], depth+1)
	}
	d.add([]byte{']', '}'}[boolIndex(object)])
}

func boolIndex(is bool) int {
	if is {
		return 1
	}
	return 0
}

// part is a part of a container; not UTF-8, and so refused, if it is out of bounds.
func part(data []byte, at, n uint64) []byte {
	if at > uint64(len(data)) || n > uint64(len(data))-at {
		return []byte{0xff}
	}
	return data[at : at+n]
}

// inline is true for values that are in place of where they would be.
func inline(kind byte, size int) bool {
	switch kind {
	case jsonLiteral, jsonInt16, jsonUint16:
		return true
	case jsonInt32, jsonUint32:
		return size == 4
	}
	return false
}
