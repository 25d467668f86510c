// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// A replica holds every event back, also those that are disabled on its source. What is restored from a backup of it has them as the active
// site has them, with nothing else about them changed; where that one cannot be asked they stay disabled, which is told.
func TestEventsOfAReplica(t *testing.T) {
	for _, method := range []string{bucket.Logical, bucket.Physical} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			active, replica := origin(t, mysqltest.Options{}), mysqltest.Start(t, mysqltest.Options{TLS: true})
			replica.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
			active.Exec(t, "CREATE DATABASE app", "USE app", "CREATE TABLE t (id INT PRIMARY KEY)",
				"SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES', SESSION time_zone = '+05:00'",
				"CREATE DEFINER = 'gone'@'no%where' EVENT `runs \"ü` ON SCHEDULE EVERY 1 DAY STARTS '2099-01-01 00:00:00' ON COMPLETION PRESERVE COMMENT 'it is' DO DELETE FROM t WHERE id = 1",
				"SET SESSION sql_mode = '', SESSION time_zone = '+00:00'",
				"CREATE EVENT rests ON SCHEDULE EVERY 1 DAY STARTS '2099-01-01 00:00:00' DISABLE DO DELETE FROM t",
				"SET NAMES latin1", "CREATE EVENT latin ON SCHEDULE EVERY 1 DAY STARTS '2099-01-01 00:00:00' DO DELETE FROM t", "SET NAMES utf8mb4")
			want := eventsOf(t, active.Root(t))
			replica.Exec(t, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1",
				active.Port, mysql.AccountReplication, strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(mysqltest.Passwords.Replication)), "START REPLICA")
			mysqltest.Eventually(t, "the replica has it", func() bool { return executed(t, replica.Root(t)) == executed(t, active.Root(t)) })
			for name, text := range eventsOf(t, replica.Root(t)) {
				if !strings.Contains(text, "REPLICA_SIDE_DISABLED") {
					t.Fatalf("%s on a replica: %s: what this is for has changed", name, text)
				}
			}
			j := newJob(t, false).from(replica)
			j.config.Method, j.config.Source.ActiveHost, j.config.Source.ActivePort = method, "127.0.0.1", active.Port
			if made := j.must("make"); len(made.Warnings) > 0 {
				t.Errorf("made: %+v", made)
			}
			j.site(false)
			loaded := j.must("load")
			if got := eventsOf(t, j.opened("/srv/volume/data.restored", false)); !maps.Equal(got, want) || len(loaded.Warnings) > 0 {
				t.Errorf("restored: %v, want %v; warnings %q", got, want, loaded.Warnings)
			}

			k := newJob(t, false).from(replica)
			k.config.Method, k.config.Source.ActiveHost, k.config.Source.ActivePort = method, "127.0.0.1", 1
			if made := k.must("make"); len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "3 events") {
				t.Errorf("made without the active site: %+v", made)
			}
			k.site(false)
			if loaded := k.must("load"); len(loaded.Warnings) != 1 || !strings.Contains(loaded.Warnings[0], "3 events") {
				t.Errorf("loaded: %+v", loaded)
			}
		})
	}
}

// eventsOf are all that is to be known of each event.
func eventsOf(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	out := map[string]string{}
	rows, err := db.QueryContext(t.Context(), "SELECT event_name, CONCAT_WS('|', status, definer, sql_mode, time_zone, character_set_client, collation_connection, "+
		"event_definition, interval_value, starts, on_completion, event_comment) FROM information_schema.events")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		out[name] = text
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
