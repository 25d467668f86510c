// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// The operator sees how much room binary logs take and keeps them from being purged, with its own rights, on a server that takes no writes.
func TestBinlogsAreKeptAndPurged(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	db := s.Operator(t)
	before, err := db.Binlogs(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	if !before.Purges || before.Bytes <= 0 {
		t.Errorf("a fresh server: %+v", before)
	}
	for _, purge := range []bool{false, false, true} {
		if err := db.PurgeBinlogs(budget(t), purge); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Binlogs(budget(t)); err != nil || got.Purges != purge {
			t.Errorf("purges: %+v, %v, want %t", got, err, purge)
		}
	}
	logs := func() (n int) {
		rows, err := s.Root(t).QueryContext(budget(t), "SHOW BINARY LOGS")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			n++
		}
		return n
	}
	had := logs()
	if err := db.RotateBinlog(budget(t)); err != nil || logs() != had+1 {
		t.Errorf("another log was asked for: %d, then %d: %v", had, logs(), err)
	}
	if st := status(t, db); !st.Executed.IsEmpty() || !st.SuperReadOnly {
		t.Errorf("it made transactions, or opened the server: %s", st.Executed)
	}
}
