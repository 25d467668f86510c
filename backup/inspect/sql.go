// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// sqlHead makes a session in which the statements mean what they say: texts in UTF-8, times of TIMESTAMP in UTC, zeros in AUTO_INCREMENT
// columns kept, and an error instead of a value that is cut off.
const sqlHead = `-- Written by kubectl mfg backup lost. Read it before you run it: nothing here was checked against the data that is there now.
SET NAMES utf8mb4;
SET SESSION time_zone = '+00:00';
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES,ALLOW_INVALID_DATES';
`

// sqlOf is one change as a statement. Where the log says too little to make one, it is a comment that says why.
func sqlOf(t *table, ch change) string {
	var (
		text, why string
	)
	switch ch.op {
	case inserted:
		text, why = t.insertSQL("INSERT", ch.after)
	case deleted:
		text, why = t.deleteSQL(ch.before)
	case updated:
		text, why = t.updateSQL(ch.before, ch.after)
	}
	if why != "" {
		return fmt.Sprintf("-- %s of a row of %s cannot be written as a statement: %s\n", ch.op, oneLine(t.schema+"."+t.name), why)
	}
	return text + ";\n"
}

func (t *table) full() string { return identifier(t.schema) + "." + identifier(t.name) }

// insertSQL goes by position where the log has no names.
func (t *table) insertSQL(verb string, cells []cell) (text, why string) {
	var names, values []string
	for i, c := range cells {
		if c.absent {
			if !t.named {
				values = append(values, "DEFAULT")
			}
			continue
		}
		literal, why := t.columns[i].literal(c)
		if why != "" {
			return "", why
		}
		names, values = append(names, identifier(t.columns[i].name)), append(values, literal)
	}
	list := ""
	if t.named {
		list = " (" + strings.Join(names, ", ") + ")"
	}
	return verb + " INTO " + t.full() + list + " VALUES (" + strings.Join(values, ", ") + ")", ""
}

// updateSQL without names is a REPLACE, which needs the whole row and an unchanged key.
func (t *table) updateSQL(before, after []cell) (text, why string) {
	if !t.named {
		for _, c := range after {
			if c.absent {
				return "", noNames
			}
		}
		return t.insertSQL("REPLACE", after)
	}
	var set []string
	for i, c := range after {
		if c.absent {
			continue
		}
		literal, why := t.columns[i].literal(c)
		if why != "" {
			return "", why
		}
		set = append(set, identifier(t.columns[i].name)+" = "+literal)
	}
	where, why := t.where(before)
	if why != "" || len(set) == 0 {
		return "", why + strings.Repeat("nothing was changed", boolIndex(why == ""))
	}
	return "UPDATE " + t.full() + " SET " + strings.Join(set, ", ") + " WHERE " + where + " LIMIT 1", ""
}

func (t *table) deleteSQL(before []cell) (text, why string) {
	if !t.named {
		return "", noNames
	}
	where, why := t.where(before)
	return "DELETE FROM " + t.full() + " WHERE " + where + " LIMIT 1", why
}

const noNames = "the binary log has no names of columns; with binlog_row_metadata=FULL it would"

// where finds the row by its primary key, or by all of its values that can be compared exactly.
func (t *table) where(before []cell) (text, why string) {
	columns := t.key
	if len(columns) == 0 {
		for i, col := range t.columns {
			switch col.kind {
			case mysql.MYSQL_TYPE_JSON, mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_VECTOR:
			default:
				columns = append(columns, i)
			}
		}
	}
	var all []string
	for _, i := range columns {
		if i >= len(before) || before[i].absent {
			continue
		}
		literal, why := t.columns[i].literal(before[i])
		if why != "" {
			return "", why
		}
		all = append(all, identifier(t.columns[i].name)+" <=> "+literal)
	}
	if len(all) == 0 {
		return "", "nothing in the log says which row it was"
	}
	return strings.Join(all, " AND "), ""
}

// literal is a value in SQL; why says why there is none.
func (col column) literal(c cell) (text, why string) {
	if c.null {
		return "NULL", ""
	}
	if c.partial {
		return "", "the log has only what changed in a JSON document (binlog_row_value_options); mysqlbinlog -v shows it"
	}
	v, ok := col.read(c.raw)
	if !ok {
		return "", "a value in the log cannot be read"
	}
	switch v.kind {
	case numberValue:
		return v.text, ""
	case bytesValue:
		introducer := ""
		if v.charset != noCharset && v.charset != unsaidCharset {
			introducer = "_" + v.charset + " "
		}
		return introducer + "X'" + hex.EncodeToString(c.raw) + "'", ""
	case textValue:
		if obeyed(v.text) { // it may be shown in a terminal
			return "_utf8mb4 X'" + hex.EncodeToString(c.raw) + "'", ""
		}
	case momentValue, documentValue:
	}
	return quoteSQL(v.text), ""
}

// obeyed is true if a terminal would obey something in a text, beyond what quoteSQL escapes.
func obeyed(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\x00\t\n\r\x1a", r) || r >= 0x7f && r < 0xa0
	})
}

var sqlEscapes = strings.NewReplacer("\x00", `\0`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`, `\`, `\\`, `'`, `\'`)

func quoteSQL(text string) string { return "'" + sqlEscapes.Replace(text) + "'" }

// oneLine keeps a name within a comment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, text)
}
