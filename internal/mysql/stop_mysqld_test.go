// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestABusyApplierGathersNoSessions: an applier that waits, here for a reader, does not stop. Each poll tries to have the replica follow another
// source, and gives up. mysqld does not notice that the client has gone, and no KILL ends its session, so its statement has to give up.
func TestABusyApplierGathersNoSessions(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	other := sourceOf(mysqltest.Start(t, mysqltest.Options{}))
	idle := session(t, replica.Client(t, app, app), "START TRANSACTION", "SELECT COUNT(*) FROM app.t")
	source.Exec(t, "ALTER TABLE app.t ADD COLUMN w INT")
	root := replica.Root(t)
	const sessions = "SELECT COUNT(*) FROM performance_schema.processlist WHERE "
	count := func(where string) (n int) {
		if err := root.QueryRowContext(t.Context(), sessions+where).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	mysqltest.Eventually(t, "the applier waits for the reader", func() bool { return count("state LIKE 'Waiting for table metadata lock'") > 0 })
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := replica.Operator(t).Follow(ctx, other)
		cancel()
		if err == nil {
			t.Fatal("the applier stopped in the middle of an ALTER")
		}
	}
	if count("info LIKE 'STOP REPLICA%'") == 0 {
		t.Fatal("no statement waits for the applier: this test shows nothing")
	}
	mysqltest.Eventually(t, "the sessions of callers that have gone end", func() bool { return count("info LIKE 'STOP REPLICA%'") == 0 })
	if count("state LIKE 'Waiting for table metadata lock'") == 0 {
		t.Error("they ended because the applier did")
	}
	if _, err := idle.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := replica.Operator(t).Follow(budget(t), other); err != nil {
		t.Errorf("nothing is in the way any more: %v", err)
	}
}
