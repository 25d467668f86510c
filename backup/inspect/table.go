// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"github.com/go-mysql-org/go-mysql/mysql"
)

// table is a table as an event of its map tells it.
type table struct {
	schema, name string
	columns      []column
	// named is true if the log has the names of columns: binlog_row_metadata=FULL.
	named bool
	// key are the columns of the primary key; nil if the log does not say which they are.
	key []int
}

// column is one column of a table.
type column struct {
	// kind is mysql.MYSQL_TYPE_..., with ENUM and SET told apart from CHAR; meta is what the log says of it.
	kind byte
	meta uint16
	name string
	// unsigned is of numbers, collation of texts; 0 if the log does not say it.
	unsigned  bool
	collation uint64
	hidden    bool
}

// columnsMax is above what a table can have.
const columnsMax = 4096

// Kinds of optional metadata of a table.
const (
	metaSignedness     = 1
	metaDefaultCharset = 2
	metaColumnCharset  = 3
	metaColumnName     = 4
	metaKey            = 8
	metaKeyPrefix      = 9
	metaVisibility     = 12
)

// parseTable reads the body of an event of a table's map.
func parseTable(body []byte) (id uint64, t *table, ok bool) {
	c := &cursor{b: body}
	id = c.little(6)
	c.take(2)
	t = &table{}
	t.schema = string(c.take(int(c.little(1))))
	c.take(1)
	t.name = string(c.take(int(c.little(1))))
	c.take(1)
	n := c.length()
	if n > columnsMax {
		return 0, nil, false
	}
	kinds := c.take(n)
	meta := &cursor{b: c.take(c.length())}
	c.take(bitmapBytes(n))
	if c.bad {
		return 0, nil, false
	}
	t.columns = make([]column, n)
	for i, kind := range kinds {
		t.columns[i] = parseColumn(kind, meta)
	}
	if meta.bad {
		return 0, nil, false
	}
	t.describe(c)
	return id, t, !c.bad
}

func parseColumn(kind byte, meta *cursor) column {
	col := column{kind: kind}
	switch kind {
	case mysql.MYSQL_TYPE_STRING:
		high, low := meta.little(1), meta.little(1)
		switch {
		case byte(high) == mysql.MYSQL_TYPE_ENUM || byte(high) == mysql.MYSQL_TYPE_SET:
			col.kind, col.meta = byte(high), uint16(low)
		case high&0x30 != 0x30: // the length has two more bits, kept in the type
			col.meta = uint16(low | (high&0x30^0x30)<<4)
		default:
			col.meta = uint16(low)
		}
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		precision := meta.little(1)
		col.meta = uint16(precision<<8 | meta.little(1))
	case mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_BIT:
		col.meta = uint16(meta.little(2))
	case mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_GEOMETRY, mysql.MYSQL_TYPE_VECTOR, mysql.MYSQL_TYPE_JSON,
		mysql.MYSQL_TYPE_TIME2, mysql.MYSQL_TYPE_DATETIME2, mysql.MYSQL_TYPE_TIMESTAMP2:
		col.meta = uint16(meta.little(1))
	}
	return col
}

func (c column) numeric() bool {
	switch c.kind {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DECIMAL,
		mysql.MYSQL_TYPE_NEWDECIMAL, mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_YEAR:
		return true
	}
	return false
}

// texts are columns with a collation; of BLOB and VECTOR it is binary.
func (c column) text() bool {
	switch c.kind {
	case mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_VECTOR:
		return true
	}
	return false
}

// describe reads the optional metadata. What is unknown there is passed over.
func (t *table) describe(c *cursor) {
	for !c.bad && len(c.b) > 0 {
		kind := c.little(1)
		field := &cursor{b: c.take(c.length())}
		switch kind {
		case metaSignedness:
			t.signs(field.b)
		case metaDefaultCharset:
			t.defaultCharset(field)
		case metaColumnCharset:
			for i := range t.columns {
				if t.columns[i].text() && len(field.b) > 0 {
					t.columns[i].collation = field.packed()
				}
			}
		case metaColumnName:
			t.named = len(field.b) > 0
			for i := range t.columns {
				t.columns[i].name = string(field.take(int(field.little(1))))
			}
		case metaKey, metaKeyPrefix:
			t.primaryKey(field, kind == metaKeyPrefix)
		case metaVisibility:
			for i := range t.columns {
				t.columns[i].hidden = i>>3 < len(field.b) && field.b[i>>3]&(0x80>>(i&7)) == 0
			}
		}
		c.bad = c.bad || field.bad
	}
}

func (t *table) signs(bits []byte) {
	at := 0
	for i := range t.columns {
		if t.columns[i].numeric() {
			t.columns[i].unsigned = at>>3 < len(bits) && bits[at>>3]&(0x80>>(at&7)) != 0
			at++
		}
	}
}

// defaultCharset is one collation for all texts, and then pairs of those that have another, counted among the texts.
func (t *table) defaultCharset(field *cursor) {
	common, others := field.packed(), map[uint64]uint64{}
	for len(field.b) > 0 && len(others) <= columnsMax {
		at := field.packed()
		others[at] = field.packed()
	}
	at := uint64(0)
	for i := range t.columns {
		if !t.columns[i].text() {
			continue
		}
		t.columns[i].collation = common
		if other, is := others[at]; is {
			t.columns[i].collation = other
		}
		at++
	}
}

func (t *table) primaryKey(field *cursor, prefixes bool) {
	for len(field.b) > 0 && len(t.key) <= columnsMax {
		at := field.packed()
		if prefixes {
			field.packed()
		}
		if at >= uint64(len(t.columns)) {
			field.bad = true
			return
		}
		t.key = append(t.key, int(at))
	}
}
