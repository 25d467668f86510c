// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// applierOption sets something that MySQL changes only while the applier is stopped.
func applierOption(t *testing.T, replica *mysqltest.Server, statement string) {
	t.Helper()
	for _, s := range []string{"STOP REPLICA SQL_THREAD", statement, "START REPLICA SQL_THREAD"} {
		replica.Exec(t, s)
	}
}

// TestADelayEnds covers I8: a replica that is behind on purpose applies its relay log at once when it must, and loses none of it.
func TestADelayEnds(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	db := replica.Operator(t)
	for name, end := range map[string]func() error{
		"the source is there": func() error { return db.Follow(budget(t), sourceOf(source)) },
		"the source is gone": func() error {
			if err := db.StopReceiver(budget(t)); err != nil {
				return err
			}
			return db.StartApplier(budget(t))
		},
	} {
		if err := db.Follow(budget(t), sourceOf(source)); err != nil {
			t.Fatal(err)
		}
		applierOption(t, replica, "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600")
		source.Exec(t, insert)
		set := status(t, source.Operator(t)).Executed
		st := replicaStatus(t, db, name+": the transaction arrives", func(st mysql.Status) bool { return st.Executed.Union(st.Retrieved).Contains(set) })
		if applied, err := db.WaitApplied(budget(t), set, 300*time.Millisecond); applied || err != nil || st.Replica.Delay != 3600 {
			t.Fatalf("%s: the delay does not delay, or is not seen: %t, %v, %+v", name, applied, err, st.Replica)
		}
		source.Signal(t, syscall.SIGSTOP) // from here on, the relay log has the only copy
		err := end()
		applied, waited := db.WaitApplied(budget(t), set, 10*time.Second)
		source.Signal(t, syscall.SIGCONT)
		if err != nil || waited != nil || !applied {
			t.Fatalf("%s: the transaction is not applied: %v, %v, %t, %+v", name, err, waited, applied, status(t, db))
		}
		if st := status(t, db); st.Replica.Delay != 0 {
			t.Errorf("%s: the delay is still there: %+v", name, st.Replica)
		}
	}
}

// TestAFilterIsSeen covers I7: what a filter skips counts as executed, so nothing but the filter shows that a row is missing.
func TestAFilterIsSeen(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	db := replica.Operator(t)
	if status(t, db).Filtered {
		t.Fatal("a filter is seen where none is")
	}
	count := func(s *mysqltest.Server) (n int) {
		if err := s.Root(t).QueryRow("SELECT COUNT(*) FROM app.t").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	applierOption(t, replica, "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = (app.t)")
	source.Exec(t, insert)
	catchUp(t, source, replica)
	if st := status(t, db); !st.Filtered || !st.Executed.Equal(status(t, source.Operator(t)).Executed) || count(source) == count(replica) {
		t.Errorf("filtered %t, executed %s, %d rows of %d", st.Filtered, st.Executed, count(replica), count(source))
	}
	applierOption(t, replica, "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = ()")
	if status(t, db).Filtered {
		t.Error("a filter that was taken away is still seen")
	}
}
