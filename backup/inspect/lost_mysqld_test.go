// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package inspect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// everyType is a table with all common types of columns, and rows at their ends.
var everyType = []string{
	`CREATE TABLE shop.t (id BIGINT UNSIGNED PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT, e BIGINT, f DECIMAL(30,10), g DECIMAL(5,0), h FLOAT, i DOUBLE,
	 j BIT(1), k BIT(64), l DATE, m TIME, n TIME(6), o DATETIME(3), p TIMESTAMP(6) NULL, q YEAR, r CHAR(10), s VARCHAR(300), u VARCHAR(20) CHARACTER SET latin1,
	 v TEXT CHARACTER SET utf16, w BINARY(4), x VARBINARY(300), y LONGBLOB, z ENUM('x','y','it''s'), aa SET('p','q','r'), ab JSON, ac GEOMETRY, ad VECTOR(3),
	 ae VARCHAR(10) CHARACTER SET binary, af TINYTEXT, ag CHAR(5) CHARACTER SET gbk, ah TIME(2), ai DATETIME, aj MEDIUMTEXT)`,
	`INSERT INTO shop.t VALUES (18446744073709551615, -128, 65535, -8388608, -2147483648, -9223372036854775808, -12345678901234567890.0123456789, 99999, 0.1, -1.7976931348623157e308,
	 1, 18446744073709551615, '1000-01-01', '-838:59:59', '-00:00:00.000001', '9999-12-31 23:59:59.999', '2038-01-19 03:14:07.123456', 2155, 'äöü', REPEAT('Ü', 300), 'café',
	 'emoji 😀', X'00FF0000', REPEAT(X'00', 300), X'FF00FE', 'it''s', 'p,r', '{"a": 1, "b": 1.0, "c": [1e300, -0.5, true, null, "x\\"y\\u0000"], "d": 18446744073709551615, "e": {}}',
	 ST_GeomFromText('POINT(1 2)', 4326), STRING_TO_VECTOR('[1,2,-3.5]'), 'raw', 'tiny', '中文', '-00:00:00.99', '0000-00-00 00:00:00', 'back\\slash ''quote'' "double"
line	tab')`,
	`INSERT INTO shop.t (id, h, i, ab, p) VALUES (0, 3.4028234e38, 5e-324, '[]', '1970-01-01 00:00:01'), (1, -0, 1e22, '"x"', NULL), (2, 16777216, 0.1, '123456789012', NULL)`,
	`INSERT INTO shop.t (id, ab) VALUES (3, JSON_OBJECT('big', REPEAT('x', 70000), 'n', 7)), (4, CAST(1.5 AS JSON)), (5, JSON_ARRAY(-32769, 65536, -2147483649, 4294967296))`,
}

func zeroDates(statements []string) []string {
	return append([]string{"SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "SET SESSION time_zone = '+00:00'"}, statements...)
}

// TestLostRowsLoadAgain: what is written out makes the rows that were lost, to the bit.
func TestLostRowsLoadAgain(t *testing.T) {
	tests := map[string]struct {
		config []string
		more   []string
	}{
		"without names": {more: []string{"UPDATE shop.t SET d = 7, ab = JSON_SET(ab, '$.n', 8) WHERE id = 3"}},
		"with names": {config: []string{"binlog_row_metadata=FULL"},
			more: []string{"UPDATE shop.t SET d = 7, s = NULL WHERE id > 2", "UPDATE shop.t SET id = 99 WHERE id = 1", "DELETE FROM shop.t WHERE id = 2"}},
		"compressed":      {config: []string{"binlog_transaction_compression=ON", "binlog_row_metadata=FULL"}, more: []string{"UPDATE shop.t SET d = 7 WHERE id > 2"}},
		"minimal images":  {config: []string{"binlog_row_image=MINIMAL", "binlog_row_metadata=FULL"}, more: []string{"UPDATE shop.t SET d = 7 WHERE id > 2", "DELETE FROM shop.t WHERE id = 4"}},
		"no checksums":    {config: []string{"binlog_checksum=NONE"}},
		"events of 256 B": {config: []string{"binlog_row_event_max_size=256"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.config...)
			w.s.Exec(t, zeroDates(everyType[:1])...)
			w.archive(1, "a")
			began := w.executed()
			w.s.Exec(t, zeroDates(append(everyType[1:len(everyType):len(everyType)], tt.more...))...)
			lost := w.executed().Subtract(began)
			w.archive(1, "a")
			w.epoch(2, "b", began)
			want := w.digest("shop.t")

			got := w.ask(wire.InspectLost, wire.InspectRequest{Lost: &wire.AskLost{Rows: wire.RowsSQL}})
			if got.code != 0 || int64(len(got.transactions())) != lost.Count() {
				t.Fatalf("%+v, %d transactions", got.end, len(got.transactions()))
			}
			w.s.Exec(t, "RENAME TABLE shop.t TO shop.was", "CREATE TABLE shop.t LIKE shop.was")
			w.load(got.text)
			if have := w.digest("shop.t"); have != want {
				t.Errorf("%s, want %s\n%.6000s", have, want, got.text)
			}
		})
	}
}

// TestLostRowsAsJSON: every change is one line that is JSON, and nothing of rows is told unless it is asked for.
func TestLostRowsAsJSON(t *testing.T) {
	w := newWorld(t, "binlog_row_metadata=FULL")
	w.s.Exec(t, zeroDates(everyType[:1])...)
	began := w.executed()
	w.s.Exec(t, zeroDates(append(everyType[1:len(everyType):len(everyType)], "DELETE FROM shop.t WHERE id = 5", "CREATE USER secret IDENTIFIED BY 'hunter2'"))...)
	w.archive(7, "a")
	w.epoch(8, "b", began)
	got := w.ask(wire.InspectLost, wire.InspectRequest{Lost: &wire.AskLost{Epoch: 7, Rows: wire.RowsJSON}})
	var changes []wire.ArchivedChange
	for _, line := range strings.Split(strings.TrimSpace(got.text), "\n") {
		var c wire.ArchivedChange
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		changes = append(changes, c)
	}
	if len(changes) != 8 || changes[7].Op != "delete" || changes[7].After != nil {
		t.Fatalf("%d changes: %s", len(changes), got.text)
	}
	var first map[string]any
	if err := json.Unmarshal(changes[0].After, &first); err != nil {
		t.Fatal(err)
	}
	if first["u"] == "café" || first["r"] != "äöü" || first["n"] != "-00:00:00.000001" || first["l"] != "1000-01-01" {
		t.Errorf("%v", first)
	}
	plain := w.ask(wire.InspectLost, wire.InspectRequest{Lost: &wire.AskLost{}})
	all := plain.transactions()
	if plain.text != "" || len(all) != 5 {
		t.Fatalf("%q, %+v", plain.text, all)
	}
	if s := all[4].Statements; len(s) != 1 || s[0] != "CREATE USER" {
		t.Errorf("%q", s)
	}
	if tb := all[3].Tables; len(tb) != 1 || tb[0].Deleted != 1 || tb[0].Table != "t" {
		t.Errorf("%+v", tb)
	}
	if got := w.ask(wire.InspectLost, wire.InspectRequest{Lost: &wire.AskLost{Epoch: 6}}); got.end.Reason != reasonBadRequest {
		t.Errorf("%+v", got.end)
	}
	if got := w.ask(wire.InspectLost, wire.InspectRequest{Lost: &wire.AskLost{Most: 2}}); !got.end.Truncated || len(got.transactions()) != 2 {
		t.Errorf("%+v", got.end)
	}
}

// TestBigRows: a row of megabytes is written out, and one that is too large is said to be left out.
func TestBigRows(t *testing.T) {
	w := newWorld(t, "max_allowed_packet=128M")
	w.s.Exec(t, "CREATE TABLE shop.t (id INT PRIMARY KEY, b LONGBLOB)")
	began := w.executed()
	w.s.Exec(t, "INSERT INTO shop.t VALUES (1, REPEAT('x', 8000000))", "SET SESSION binlog_transaction_compression = ON", "INSERT INTO shop.t VALUES (2, REPEAT('y', 8000000))")
	w.archive(1, "a")
	w.epoch(2, "b", began)
	want := w.digest("shop.t")
	got := w.ask(wire.InspectLost, wire.InspectRequest{Lost: &wire.AskLost{Rows: wire.RowsSQL}})
	w.s.Exec(t, "TRUNCATE shop.t")
	w.load(got.text)
	if have := w.digest("shop.t"); have != want {
		t.Errorf("%s, want %s", have, want)
	}

	w.s.Exec(t, "INSERT INTO shop.t VALUES (3, REPEAT('z', 30000000))", "SET SESSION binlog_transaction_compression = ON", "INSERT INTO shop.t VALUES (4, REPEAT('z', 30000000))")
	w.archive(1, "a")
	got = w.ask(wire.InspectLost, wire.InspectRequest{Lost: &wire.AskLost{Rows: wire.RowsSQL}})
	if n := strings.Count(got.text, "-- Left out, of "); got.code != 0 || n != 2 {
		t.Errorf("%+v, %d rows are said to be left out", got.end, n)
	}
}

// TestCharsets: each collation of the server has the character set that is written before its texts.
func TestCharsets(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	rows, err := s.Root(t).QueryContext(t.Context(), "SELECT id, character_set_name FROM information_schema.collations")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id uint64
		var want string
		if err := rows.Scan(&id, &want); err != nil {
			t.Fatal(err)
		}
		if want == "binary" {
			want = noCharset
		}
		if got := charsetOf(id); got != want {
			t.Errorf("collation %d: %q, want %q", id, got, want)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
