// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// kindOf is how a value is written.
type kindOf int

const (
	// number needs no quotes; text is UTF-8; bytes are none, or of a character set that is not UTF-8; moment is text of digits.
	numberValue kindOf = iota
	textValue
	bytesValue
	momentValue
	documentValue
)

// value is a cell in words. text is empty for bytesValue: those are the cell's.
type value struct {
	kind kindOf
	text string
	// charset is of bytesValue; empty for bytes that are no text, and unknown if the log does not say it.
	charset string
}

// read says what a cell holds; ok is false if it is malformed. The cell is there, is not NULL and is no partial document.
func (col column) read(raw []byte) (value, bool) {
	switch col.kind {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_LONGLONG:
		return value{kind: numberValue, text: col.integer(raw)}, true
	case mysql.MYSQL_TYPE_FLOAT:
		// As the double that it is exactly, so that it is read back as the same.
		return real(float64(math.Float32frombits(uint32(little(raw)))))
	case mysql.MYSQL_TYPE_DOUBLE:
		return real(math.Float64frombits(little(raw)))
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		text, ok := decimal(raw, int(col.meta>>8), int(col.meta&0xff))
		return value{kind: numberValue, text: text}, ok
	case mysql.MYSQL_TYPE_YEAR:
		year := 0
		if len(raw) == 1 && raw[0] > 0 {
			year = 1900 + int(raw[0])
		}
		return value{kind: numberValue, text: strconv.Itoa(year)}, true
	case mysql.MYSQL_TYPE_BIT:
		return value{kind: numberValue, text: strconv.FormatUint(big(raw), 10)}, len(raw) <= 8
	case mysql.MYSQL_TYPE_ENUM, mysql.MYSQL_TYPE_SET:
		return value{kind: numberValue, text: strconv.FormatUint(little(raw), 10)}, true
	case mysql.MYSQL_TYPE_JSON:
		text, ok := document(raw)
		return value{kind: documentValue, text: string(text)}, ok
	case mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_VECTOR:
		return value{kind: bytesValue}, true
	}
	if col.text() {
		return col.words(raw), true
	}
	text, ok := col.when(raw)
	return value{kind: momentValue, text: text}, ok
}

func (col column) integer(raw []byte) string {
	v := little(raw)
	if col.unsigned {
		return strconv.FormatUint(v, 10)
	}
	shift := 64 - 8*len(raw)
	return strconv.FormatInt(int64(v<<shift)>>shift, 10)
}

func real(v float64) (value, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return value{}, false // MySQL stores none
	}
	return value{kind: numberValue, text: strconv.FormatFloat(v, 'e', -1, 64)}, true
}

func (col column) words(raw []byte) value {
	charset := charsetOf(col.collation)
	if utf8Charset(charset) && plainUTF8(raw) {
		return value{kind: textValue, text: string(raw)}
	}
	return value{kind: bytesValue, charset: charset}
}

// when is a date, a time or both, as MySQL writes them; of a TIMESTAMP in UTC.
func (col column) when(raw []byte) (string, bool) {
	switch col.kind {
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_NEWDATE:
		v := little(raw)
		return fmt.Sprintf("%04d-%02d-%02d", v>>9, v>>5&15, v&31), true
	case mysql.MYSQL_TYPE_DATETIME2:
		if len(raw) < 5 {
			return "", false
		}
		return moment((int64(big(raw[:5]))-0x8000000000)<<24+micros(raw[5:]), int(col.meta)), true
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		if len(raw) < 4 {
			return "", false
		}
		return stamp(int64(big(raw[:4])), micros(raw[4:]), int(col.meta)), true
	case mysql.MYSQL_TYPE_TIMESTAMP:
		return stamp(int64(little(raw)), 0, 0), true
	case mysql.MYSQL_TYPE_TIME2:
		if len(raw) < 3 {
			return "", false
		}
		return clock(packedTime(raw), int(col.meta)), true
	}
	return "", false // the forms of before MySQL 5.6: 9.7 has none
}

// micros is a fraction of a second of one to three bytes, in microseconds.
func micros(raw []byte) int64 {
	switch v := int64(big(raw)); len(raw) {
	case 1:
		return v * 10000
	case 2:
		return v * 100
	default:
		return v
	}
}

// stamp is a TIMESTAMP in UTC.
func stamp(seconds, micros int64, digits int) string {
	if seconds == 0 && micros == 0 {
		return withFraction("0000-00-00 00:00:00", 0, digits)
	}
	return withFraction(time.Unix(seconds, 0).UTC().Format(time.DateTime), micros, digits)
}

func withFraction(text string, micros int64, digits int) string {
	if digits <= 0 {
		return text
	}
	return text + "." + fmt.Sprintf("%06d", micros%1000000)[:min(6, digits)]
}

// moment is a date and a time as MySQL packs them: year and month times 13, day, hour, minute, second, microseconds.
func moment(packed int64, digits int) string {
	if packed < 0 {
		packed = -packed
	}
	fraction, rest := packed&(1<<24-1), packed>>24
	clock, day := rest&(1<<17-1), rest>>17
	months := day >> 5
	return withFraction(fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", months/13%10000, months%13, day&31, clock>>12, clock>>6&63, clock&63), fraction, digits)
}

// packedTime is a TIME as MySQL packs it. A fraction of one below zero counts up to the next second in the log.
func packedTime(raw []byte) int64 {
	if len(raw) == 6 {
		return int64(big(raw)) - 0x800000000000
	}
	whole, part := int64(big(raw[:3]))-0x800000, int64(big(raw[3:]))
	if whole < 0 && part != 0 {
		whole++
		part -= 1 << (8 * (len(raw) - 3))
	}
	switch len(raw) {
	case 4:
		part *= 10000
	case 5:
		part *= 100
	}
	return whole<<24 + part
}

// clock is a TIME.
func clock(packed int64, digits int) string {
	sign := ""
	if packed < 0 {
		sign, packed = "-", -packed
	}
	rest := packed >> 24
	return sign + withFraction(fmt.Sprintf("%02d:%02d:%02d", rest>>12&1023, rest>>6&63, rest&63), packed&(1<<24-1), digits)
}

const digitsInFour = 9

var bytesOfDigits = [digitsInFour + 1]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// decimalBytes is how long a DECIMAL is; 0 if there is none such.
func decimalBytes(precision, scale int) int {
	whole := precision - scale
	if whole < 0 || scale < 0 {
		return 0
	}
	return whole/digitsInFour*4 + bytesOfDigits[whole%digitsInFour] + scale/digitsInFour*4 + bytesOfDigits[scale%digitsInFour]
}

// decimal is a DECIMAL: groups of nine digits in four bytes, the odd ones at both ends in fewer; below zero all bits are turned, and the
// first is turned in any case.
func decimal(raw []byte, precision, scale int) (string, bool) {
	n := decimalBytes(precision, scale)
	if n == 0 || len(raw) < n {
		return "", false
	}
	b := append([]byte(nil), raw[:n]...)
	negative := b[0]&0x80 == 0
	b[0] ^= 0x80
	if negative {
		for i := range b {
			b[i] ^= 0xff
		}
	}
	var digits strings.Builder
	c := &cursor{b: b}
	group := func(n int) {
		if n > 0 {
			fmt.Fprintf(&digits, "%0*d", n, big(c.take(bytesOfDigits[n])))
		}
	}
	whole := precision - scale
	group(whole % digitsInFour)
	for range whole / digitsInFour {
		group(digitsInFour)
	}
	text := strings.TrimLeft(digits.String(), "0")
	if text == "" {
		text = "0"
	}
	digits.Reset()
	for range scale / digitsInFour {
		group(digitsInFour)
	}
	group(scale % digitsInFour)
	if scale > 0 {
		text += "." + digits.String()
	}
	if negative {
		text = "-" + text
	}
	return text, !c.bad
}
