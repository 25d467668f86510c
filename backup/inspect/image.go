// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// operation is what happened to a row.
type operation string

const (
	inserted operation = "insert"
	updated  operation = "update"
	deleted  operation = "delete"
)

// cell is the value of one column in an image of a row, as the log has it.
type cell struct {
	// absent is true if the image leaves the column out: binlog_row_image=MINIMAL.
	absent, null bool
	// partial is true if raw says how a JSON document changed: binlog_row_value_options=PARTIAL_JSON.
	partial bool
	raw     []byte
}

// change is what happened to one row. before is nil of an insert, after of a delete.
type change struct {
	op            operation
	before, after []cell
}

// rowsHead is the beginning of an event of rows.
type rowsHead struct {
	table         *table
	op            operation
	columns       int
	first, second []byte
	partial       bool
	last          bool
}

const stmtEnd = 1

func parseRowsHead(kind replication.EventType, c *cursor, tables map[uint64]*table) (rowsHead, bool) {
	id := c.little(6)
	flags := c.little(2)
	extra := int(c.little(2)) // its own two bytes are counted in
	c.take(extra - 2)
	h := rowsHead{table: tables[id], columns: int(min(c.packed(), columnsMax+1)), last: flags&stmtEnd != 0}
	h.first = c.take(bitmapBytes(h.columns))
	switch kind { //nolint:exhaustive // the others are no rows of this version
	case replication.WRITE_ROWS_EVENTv2:
		h.op = inserted
	case replication.DELETE_ROWS_EVENTv2:
		h.op = deleted
	case replication.UPDATE_ROWS_EVENTv2, replication.PARTIAL_UPDATE_ROWS_EVENT:
		h.op, h.partial = updated, kind == replication.PARTIAL_UPDATE_ROWS_EVENT
		h.second = c.take(bitmapBytes(h.columns))
	}
	return h, !c.bad && h.table != nil && h.op != "" && h.columns <= len(h.table.columns)
}

// next reads the next row; ok is false if it is malformed.
func (h *rowsHead) next(c *cursor) (change, bool) {
	ch := change{op: h.op}
	switch h.op {
	case inserted:
		ch.after = h.image(c, h.first, false)
	case deleted:
		ch.before = h.image(c, h.first, false)
	case updated:
		ch.before = h.image(c, h.first, false)
		ch.after = h.image(c, h.second, h.partial)
	}
	return ch, !c.bad
}

// partialJSON is the bit of the options of a row that says that JSON may be told as a change.
const partialJSON = 1

func (h *rowsHead) image(c *cursor, present []byte, partial bool) []cell {
	var parts []byte
	if partial && c.packed()&partialJSON != 0 {
		documents := 0
		for _, col := range h.table.columns {
			if col.kind == mysql.MYSQL_TYPE_JSON {
				documents++
			}
		}
		parts = c.take(bitmapBytes(documents))
	}
	nulls := c.take(bitmapBytes(countBits(present, h.columns)))
	if c.bad {
		return nil
	}
	cells := make([]cell, len(h.table.columns))
	at, document := 0, 0
	for i, col := range h.table.columns {
		if col.kind == mysql.MYSQL_TYPE_JSON {
			cells[i].partial = bit(parts, document)
			document++
		}
		if i >= h.columns || !bit(present, i) { // an image of few columns may not tell of those behind them
			cells[i].absent = true
			continue
		}
		cells[i].null = bit(nulls, at)
		at++
		if !cells[i].null {
			cells[i].raw = col.raw(c)
		}
	}
	return cells
}

// raw is the value of a column without what says how long it is.
func (col column) raw(c *cursor) []byte {
	switch col.kind {
	case mysql.MYSQL_TYPE_NULL:
		return nil
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_YEAR:
		return c.take(1)
	case mysql.MYSQL_TYPE_SHORT:
		return c.take(2)
	case mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_NEWDATE, mysql.MYSQL_TYPE_TIME:
		return c.take(3)
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_TIMESTAMP:
		return c.take(4)
	case mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_DATETIME:
		return c.take(8)
	case mysql.MYSQL_TYPE_TIME2:
		return c.take(3 + fraction(col.meta))
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		return c.take(4 + fraction(col.meta))
	case mysql.MYSQL_TYPE_DATETIME2:
		return c.take(5 + fraction(col.meta))
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		return c.take(decimalBytes(int(col.meta>>8), int(col.meta&0xff)))
	case mysql.MYSQL_TYPE_BIT:
		return c.take((int(col.meta>>8)*8 + int(col.meta&0xff) + 7) / 8)
	case mysql.MYSQL_TYPE_ENUM, mysql.MYSQL_TYPE_SET:
		return c.take(min(8, int(col.meta)))
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING:
		if col.meta < 256 {
			return c.take(int(c.little(1)))
		}
		return c.take(int(c.little(2)))
	case mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_VECTOR, mysql.MYSQL_TYPE_JSON:
		n := c.little(min(4, int(col.meta)))
		if n > uint64(len(c.b)) {
			c.bad, c.b = true, nil
			return nil
		}
		return c.take(int(n))
	}
	c.bad, c.b = true, nil
	return nil
}

// fraction is how many bytes a fraction of a second of so many digits takes.
func fraction(digits uint16) int { return (int(min(6, digits)) + 1) / 2 }
