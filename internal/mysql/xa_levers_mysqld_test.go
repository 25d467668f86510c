// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestNothingRefusesXACommitOnAReplica tries what a server offers that might keep an ordinary account from ending, on a running
// replica, an XA transaction that the applier has prepared, and lets the applier go on. It fails when one of them begins to:
// then offline_mode is not needed any more (decision 0011).
func TestNothingRefusesXACommitOnAReplica(t *testing.T) {
	source, replica := pair(t, mysqltest.Options{})
	root := replica.Root(t)
	tests := []struct {
		name string
		// on is done on the replica before the try, off after it; session is what the client does first.
		on, off, session []string
		refused          bool
		// applier: the applier stands still too, so it is no way.
		applier bool
	}{
		{name: "super_read_only alone"},
		{name: "transaction_read_only", on: []string{"SET GLOBAL transaction_read_only = ON"}, off: []string{"SET GLOBAL transaction_read_only = OFF"}},
		{name: "init_connect sets the session read-only", on: []string{"SET GLOBAL init_connect = 'SET SESSION transaction_read_only = ON'"}, off: []string{"SET GLOBAL init_connect = ''"}},
		{name: "init_connect begins a transaction", on: []string{"SET GLOBAL init_connect = 'START TRANSACTION READ ONLY'"}, off: []string{"SET GLOBAL init_connect = ''"}, session: []string{"COMMIT"}},
		{name: "xa_detach_on_prepare", on: []string{"SET GLOBAL xa_detach_on_prepare = OFF"}, off: []string{"SET GLOBAL xa_detach_on_prepare = ON"}},
		{name: "no rights at all", on: []string{"SET GLOBAL super_read_only = OFF", "SET SESSION sql_log_bin = 0", "REVOKE ALL, GRANT OPTION FROM app", "SET GLOBAL super_read_only = ON"},
			off: []string{"SET GLOBAL super_read_only = OFF", "SET SESSION sql_log_bin = 0", "GRANT ALL ON app.* TO app", "GRANT RELOAD, XA_RECOVER_ADMIN ON *.* TO app", "SET GLOBAL super_read_only = ON"}},
		{name: "no updates an hour", on: []string{"SET GLOBAL super_read_only = OFF", "SET SESSION sql_log_bin = 0", "ALTER USER app WITH MAX_UPDATES_PER_HOUR 1", "SET GLOBAL super_read_only = ON"},
			off: []string{"SET GLOBAL super_read_only = OFF", "SET SESSION sql_log_bin = 0", "ALTER USER app WITH MAX_UPDATES_PER_HOUR 0", "SET GLOBAL super_read_only = ON"}},
		{name: "backup lock", on: []string{"LOCK INSTANCE FOR BACKUP"}, off: []string{"UNLOCK INSTANCE"}},
		{name: "lock on its table", on: []string{"SET SESSION lock_wait_timeout = 1", "LOCK TABLES mysql.user READ"}, off: []string{"UNLOCK TABLES"}},
		{name: "offline_mode", on: []string{"SET GLOBAL offline_mode = ON"}, off: []string{"SET GLOBAL offline_mode = OFF"}, refused: true},
		// The last one: once the lock is released, what waited for it goes on, although its client has gone.
		{name: "global read lock", on: []string{"FLUSH TABLES WITH READ LOCK"}, refused: true, applier: true},
	}
	source.Exec(t, "CREATE TABLE app.u (id INT AUTO_INCREMENT PRIMARY KEY)")
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			xid := fmt.Sprintf("'x%d'", i)
			session(t, source.Client(t, app, app), "XA START "+xid, "INSERT INTO app.t (v) VALUES (9)", "XA END "+xid, "XA PREPARE "+xid)
			mysqltest.Eventually(t, "the replica has it prepared", func() bool {
				rows, err := root.QueryContext(t.Context(), "XA RECOVER")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = rows.Close() }()
				prepared := rows.Next()
				if err := rows.Err(); err != nil {
					t.Fatal(err)
				}
				return prepared
			})
			holder := session(t, root, test.on...)
			defer func() {
				for _, s := range test.off {
					if _, err := holder.ExecContext(t.Context(), s); err != nil {
						t.Errorf("%s: %v", s, err)
					}
				}
				if !test.applier {
					catchUp(t, source, replica)
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			client, err := replica.Client(t, app, app).Conn(ctx)
			for _, s := range test.session {
				if err == nil {
					_, err = client.ExecContext(ctx, s)
				}
			}
			if err == nil {
				_, err = client.ExecContext(ctx, "XA COMMIT "+xid)
			}
			if (err != nil) != test.refused {
				t.Errorf("XA COMMIT gives %v", err)
			}
			source.Exec(t, "INSERT INTO app.u VALUES ()")
			set := status(t, source.Operator(t)).Executed
			applied, err := replica.Operator(t).WaitApplied(budget(t), set, time.Second)
			if applied == test.applier {
				t.Errorf("the applier goes on: %v, %v", applied, err)
			}
			end := session(t, source.Root(t))
			if !test.refused {
				_, _ = end.ExecContext(t.Context(), "SET SESSION sql_log_bin = 0") // the replica has ended it for itself
			}
			if _, err := end.ExecContext(t.Context(), "XA ROLLBACK "+xid); err != nil {
				t.Error(err)
			}
		})
	}
}
