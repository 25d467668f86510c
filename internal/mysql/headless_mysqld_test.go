// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
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

// beheaded is the kind of event with which a relay log begins in the middle of a transaction; empty if it does not.
func beheaded(t *testing.T, root *sql.DB, path string) string {
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
			return ""
		case "Query", "Table_map", "Write_rows", "Xid":
			return kind
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ""
}

// TestFollowHealsARelayLogWithoutAHead covers I8: an applier that must begin with such a log stops at once, and what is in it is fetched
// again from a source that lives.
func TestFollowHealsARelayLogWithoutAHead(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	root := replica.Root(t)
	replica.Exec(t, "STOP REPLICA SQL_THREAD") // which throws logs away
	writing(t, source)
	log := ""
	mysqltest.Eventually(t, "a relay log begins in the middle of a transaction", func() bool {
		if _, err := root.ExecContext(t.Context(), "FLUSH LOCAL RELAY LOGS"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		logs := relayLogs(t, replica)
		log = logs[len(logs)-1]
		kind := beheaded(t, root, log)
		return kind != "" && kind != "Xid" // with nothing but the end of a transaction the applier does not stop: see docs/guarantees.md
	})
	// As mysqld itself has it after a while: it has thrown away what was before.
	replica.Kill(t, func() {
		for _, before := range relayLogs(t, replica) {
			if before < log {
				remove(t, before)
			}
		}
		index := strings.SplitN(log, ".0", 2)[0] + ".index"
		edit(t, index, func(b []byte) []byte { return b[bytes.Index(b, []byte(filepath.Base(log)))-len("./"):] })
	})
	db, want := replica.Operator(t), status(t, source.Operator(t)).Executed
	mysqltest.Eventually(t, "the replica heals", func() bool {
		if err := db.Follow(budget(t), sourceOf(source)); err != nil {
			t.Error(err)
		}
		time.Sleep(200 * time.Millisecond)
		return status(t, db).Executed.Contains(want)
	})
	said, err := os.ReadFile(filepath.Join(replica.Dir, "mysqld.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), "cannot be set to ANONYMOUS") {
		t.Error("mysqld did not find a transaction without its head: nothing is proven")
	}
}

// TestRotationLeavesNoRelayLogWithoutAHead covers I8. mysqld 9.7.4 rotates a relay log between a transaction's GTID and the rest of
// it: about one rotation of the key in thirteen under load, and one FLUSH in seven. It throws the log with the GTID away once the
// applier is past it, and begins with the rest when the applier starts again: error 1782 for ever. With the source lost, what is
// in such a log would be applied by nobody.
func TestRotationLeavesNoRelayLogWithoutAHead(t *testing.T) {
	t.Parallel()
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
		if beheaded(t, root, log) != "" {
			t.Errorf("I8: %s begins in the middle of a transaction", filepath.Base(log))
		}
	}
	replicaStatus(t, db, "it receives again", func(st mysql.Status) bool { return st.Replica != nil && st.Replica.IORunning })
}
