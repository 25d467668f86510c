// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// imageJSON is a row as JSON: numbers as numbers, but DECIMAL and integers above 63 bits as strings, which no reader rounds; texts, dates and times as strings; documents as they are; bytes, and texts of
// another character set than UTF-8, as {"hex": "..."}. Columns without a name are @1, @2 and so on, as mysqlbinlog has them.
func (t *table) imageJSON(cells []cell) (json.RawMessage, bool) {
	if cells == nil {
		return nil, true
	}
	out := []byte{'{'}
	for i, c := range cells {
		if c.absent {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name := t.columns[i].name
		if !t.named {
			name = "@" + strconv.Itoa(i+1)
		}
		quoted, err := json.Marshal(name)
		text, ok := t.columns[i].json(c)
		if err != nil || !ok {
			return nil, false
		}
		out = append(append(append(out, quoted...), ':'), text...)
	}
	return append(out, '}'), true
}

func (col column) json(c cell) ([]byte, bool) {
	if c.null {
		return []byte("null"), true
	}
	v, ok := value{}, true
	if !c.partial {
		v, ok = col.read(c.raw)
	}
	switch {
	case !ok:
		return nil, false
	case c.partial:
		return []byte(`{"partial":"` + hex.EncodeToString(c.raw) + `"}`), true
	case v.kind == numberValue && col.kind != mysql.MYSQL_TYPE_NEWDECIMAL && exact(v.text), v.kind == documentValue:
		return []byte(v.text), true
	case v.kind == bytesValue && (v.charset == noCharset || v.charset == unsaidCharset):
		return []byte(`{"hex":"` + hex.EncodeToString(c.raw) + `"}`), true
	case v.kind == bytesValue:
		return []byte(`{"hex":"` + hex.EncodeToString(c.raw) + `","charset":"` + v.charset + `"}`), true
	}
	return quoteJSON([]byte(v.text)), true
}

// exact is true for numbers that readers of JSON keep as they are.
func exact(text string) bool {
	if strings.ContainsRune(text, 'e') {
		return true // a double, written so that it is read as the same
	}
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}
