// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package inspect

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/sample.binlog")

// TestSample makes the log that the tests without a server read.
func TestSample(t *testing.T) {
	w := newWorld(t, "binlog_row_metadata=FULL")
	w.s.Exec(t, "FLUSH BINARY LOGS")
	name := w.text("SELECT log_file FROM (SELECT JSON_UNQUOTE(JSON_EXTRACT(LOCAL, '$.binary_log_file')) AS log_file FROM performance_schema.log_status) x")
	w.s.Exec(t, zeroDates(append(everyType[:3:3], "INSERT INTO shop.t (id, ab) VALUES (5, JSON_ARRAY(-32769, 65536, -2147483649, 4294967296, 1.5, 'x'))",
		"SET GTID_NEXT = 'AUTOMATIC:tag'", "UPDATE shop.t SET d = 7", "SET GTID_NEXT = 'AUTOMATIC'", "SET SESSION binlog_transaction_compression = ON",
		"DELETE FROM shop.t WHERE id < 3", "DROP TABLE shop.t", "FLUSH BINARY LOGS"))...)
	raw, err := os.ReadFile(filepath.Join(w.s.Dir, "data", name))
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := look(raw); err != nil || rows < 10 {
		t.Fatalf("%d rows: %v", rows, err)
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "sample.binlog"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
