// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// writing has a source written to until the test is over.
func writing(t *testing.T, source *mysqltest.Server) {
	t.Helper()
	db, stop, done := source.Root(t), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = db.ExecContext(t.Context(), insert)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// isHeadless is true for a relay log that begins in the middle of a transaction.
func isHeadless(t *testing.T, root *sql.DB, path string) bool {
	t.Helper()
	rows, err := root.QueryContext(t.Context(), "SHOW RELAYLOG EVENTS IN '"+filepath.Base(path)+"' LIMIT 9")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var log, pos, kind, server, end, info string
		if err := rows.Scan(&log, &pos, &kind, &server, &end, &info); err != nil {
			t.Fatal(err)
		}
		switch kind {
		case "Gtid":
			return false
		case "Query", "Table_map", "Write_rows", "Xid":
			return true
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return false
}

// TestRotationLeavesNoRelayLogWithoutAHead covers I8. mysqld 9.7.4 rotates a relay log between a transaction's GTID and the rest of
// it: about one rotation of the key in thirteen under load, and one FLUSH in seven. It throws the log with the GTID away once the
// applier is past it, and begins with the rest when the applier starts again: error 1782 for ever. From a source that lives such a log
// is fetched again (TestUnreadable); with the source lost, what is in it would be applied by nobody.
func TestRotationLeavesNoRelayLogWithoutAHead(t *testing.T) {
	source, replica := pair(t, encrypted)
	db := replica.Operator(t)
	replica.Exec(t, "STOP REPLICA SQL_THREAD") // which throws logs away
	writing(t, source)
	window(t, db)
	for range 60 {
		if err := db.RotateMasterKeys(budget(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	logs, root := relayLogs(t, replica), replica.Root(t)
	if len(logs) < 60 {
		t.Errorf("%d relay logs: not every rotation has begun a new one, and nothing is proven", len(logs))
	}
	for _, log := range logs {
		if isHeadless(t, root, log) {
			t.Errorf("I8: %s begins in the middle of a transaction", filepath.Base(log))
		}
	}
	replicaStatus(t, db, "it receives again", func(st mysql.Status) bool { return st.Replica != nil && st.Replica.IORunning })
}
