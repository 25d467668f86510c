// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

func TestValues(t *testing.T) {
	tests := map[string]struct {
		col  column
		raw  []byte
		want string
	}{
		"tiny":              {column{kind: mysql.MYSQL_TYPE_TINY}, []byte{0xff}, "-1"},
		"tiny unsigned":     {column{kind: mysql.MYSQL_TYPE_TINY, unsigned: true}, []byte{0xff}, "255"},
		"mediumint":         {column{kind: mysql.MYSQL_TYPE_INT24}, []byte{0, 0, 0x80}, "-8388608"},
		"bigint unsigned":   {column{kind: mysql.MYSQL_TYPE_LONGLONG, unsigned: true}, []byte{255, 255, 255, 255, 255, 255, 255, 255}, "18446744073709551615"},
		"decimal":           {column{kind: mysql.MYSQL_TYPE_NEWDECIMAL, meta: 10<<8 | 2}, []byte{0x80, 0x00, 0x04, 0xd2, 0x05}, "1234.05"},
		"decimal below 0":   {column{kind: mysql.MYSQL_TYPE_NEWDECIMAL, meta: 10<<8 | 2}, []byte{0x7f, 0xff, 0xfb, 0x2d, 0xfa}, "-1234.05"},
		"time":              {column{kind: mysql.MYSQL_TYPE_TIME2}, []byte{0x80, 0x10, 0x83}, "'01:02:03'"},
		"time below 0 (2)":  {column{kind: mysql.MYSQL_TYPE_TIME2, meta: 2}, []byte{0x7f, 0xff, 0xff, 0x9d}, "'-00:00:00.99'"},
		"zero timestamp":    {column{kind: mysql.MYSQL_TYPE_TIMESTAMP2}, []byte{0, 0, 0, 0}, "'0000-00-00 00:00:00'"},
		"timestamp (3)":     {column{kind: mysql.MYSQL_TYPE_TIMESTAMP2, meta: 3}, []byte{0, 0, 0, 1, 0x04, 0xce}, "'1970-01-01 00:00:01.123'"},
		"latin1":            {column{kind: mysql.MYSQL_TYPE_VARCHAR, collation: 8}, []byte{0xe9}, "_latin1 X'e9'"},
		"utf8mb4":           {column{kind: mysql.MYSQL_TYPE_VARCHAR, collation: 255}, []byte("it's\n"), `'it\'s\n'`},
		"an escape":         {column{kind: mysql.MYSQL_TYPE_VARCHAR, collation: 255}, []byte("\x1b[2J"), "_utf8mb4 X'1b5b324a'"},
		"damaged utf8mb4":   {column{kind: mysql.MYSQL_TYPE_VARCHAR, collation: 255}, []byte{0xff}, "_utf8mb4 X'ff'"},
		"blob":              {column{kind: mysql.MYSQL_TYPE_BLOB, collation: 63}, []byte("ab"), "X'6162'"},
		"bit":               {column{kind: mysql.MYSQL_TYPE_BIT}, []byte{1, 2}, "258"},
		"float":             {column{kind: mysql.MYSQL_TYPE_FLOAT}, []byte{0xcd, 0xcc, 0xcc, 0x3d}, "1.0000000149011612e-01"},
		"a document as int": {column{kind: mysql.MYSQL_TYPE_JSON}, []byte{jsonInt16, 7, 0}, "'7'"},
		"a double in JSON":  {column{kind: mysql.MYSQL_TYPE_JSON}, []byte{jsonDouble, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, "'1.0'"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, why := tt.col.literal(cell{raw: tt.raw})
			if got != tt.want || why != "" {
				t.Errorf("got %s (%s), want %s", got, why, tt.want)
			}
		})
	}
}
