// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package binlog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/binlog"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

var limits = binlog.Limits{Tables: 63, Bytes: 64 << 20, EventBytes: 8 << 20}

func start(t *testing.T, tls bool, config ...string) *mysqltest.Server {
	t.Helper()
	s := mysqltest.Start(t, mysqltest.Options{TLS: tls, Config: config})
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "CREATE DATABASE shop",
		"CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(100), doc JSON, v VECTOR(3))",
		"CREATE TABLE shop.log (line LONGTEXT)")
	return s
}

func target(s *mysqltest.Server, tls bool) mysql.Target {
	to := mysql.Target{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)), User: mysql.AccountReplication,
		Password: mysqltest.Passwords.Replication, DialTimeout: 2 * time.Second}
	if tls {
		to.TLS = mysqltest.ClientTLS()
		to.TLS.ServerName = "127.0.0.1"
	}
	return to
}

func executed(t *testing.T, s *mysqltest.Server) gtid.Set {
	t.Helper()
	st, err := s.Operator(t).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Executed
}

// lost runs statements and returns the transactions that they made.
func lost(t *testing.T, s *mysqltest.Server, statements ...string) gtid.Set {
	t.Helper()
	before := executed(t, s)
	s.Exec(t, statements...)
	return executed(t, s).Subtract(before)
}

// change touches rows of two tables in three transactions.
var change = []string{
	"INSERT INTO shop.orders (id, note, doc) VALUES (1, 'a', '{\"x\": 1}'), (2, 'b', '{\"x\": 2, \"y\": \"long enough to be worth a patch\"}'), (3, 'c', NULL)",
	"BEGIN", "UPDATE shop.orders SET note = 'z' WHERE id < 3", "DELETE FROM shop.orders WHERE id = 3",
	"INSERT INTO shop.log VALUES ('x')", "COMMIT",
	"UPDATE shop.orders SET doc = JSON_SET(doc, '$.x', 7) WHERE id = 2",
}

var changed = []binlog.Table{
	{Schema: "shop", Name: "orders", Inserted: 3, Updated: 3, Deleted: 1},
	{Schema: "shop", Name: "log", Inserted: 1},
}

func TestCount(t *testing.T) {
	tests := map[string]struct {
		tls    bool
		config []string
	}{
		"as it is":     {},
		"TLS":          {tls: true},
		"compressed":   {config: []string{"binlog_transaction_compression=ON"}},
		"minimal rows": {config: []string{"binlog_row_image=MINIMAL", "binlog_row_value_options=PARTIAL_JSON", "binlog_checksum=NONE"}},
		"split events": {config: []string{"binlog_row_event_max_size=256", "binlog_rows_query_log_events=ON"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, tt.tls, tt.config...)
			s.Exec(t, "INSERT INTO shop.log VALUES ('before, not asked for')", "FLUSH BINARY LOGS")
			want := lost(t, s, change...)
			s.Exec(t, "FLUSH BINARY LOGS", "INSERT INTO shop.log VALUES ('after, not asked for')")
			got, err := binlog.Count(t.Context(), target(s, tt.tls), want, limits)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(binlog.Counts{Tables: changed}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountWhatIsNoRow(t *testing.T) {
	s := start(t, false)
	want := lost(t, s, "CREATE TABLE shop.more (id INT)", "INSERT INTO shop.more VALUES (1)", "TRUNCATE TABLE shop.more",
		"SET SESSION binlog_format = STATEMENT", "INSERT INTO shop.more VALUES (2)")
	got, err := binlog.Count(t.Context(), target(s, false), want, limits)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(binlog.Counts{Tables: []binlog.Table{{Schema: "shop", Name: "more", Inserted: 1}}, Statements: 3}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountTaggedAndXA(t *testing.T) {
	s := start(t, false)
	want := lost(t, s, "SET SESSION gtid_next = 'AUTOMATIC:import'", "INSERT INTO shop.orders (id) VALUES (10), (11)",
		"INSERT INTO shop.orders (id) VALUES (12)", "SET SESSION gtid_next = 'AUTOMATIC'",
		"XA START 'x'", "INSERT INTO shop.orders (id) VALUES (13)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
	got, err := binlog.Count(t.Context(), target(s, false), want, limits)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(binlog.Counts{Tables: []binlog.Table{{Schema: "shop", Name: "orders", Inserted: 4}}}, got); diff != "" {
		t.Errorf("%s: (-want +got):\n%s", want, diff)
	}
	// What is tagged and not wanted is left out as well.
	want = lost(t, s, "INSERT INTO shop.log VALUES ('x')")
	if got, err = binlog.Count(t.Context(), target(s, false), want, limits); err != nil || len(got.Tables) != 1 || got.Tables[0].Inserted != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCountSumsUpWhatDoesNotFit(t *testing.T) {
	s := start(t, false)
	var statements []string
	for i := range 40 {
		statements = append(statements, fmt.Sprintf("INSERT INTO shop.t%d VALUES (1)", i))
		s.Exec(t, fmt.Sprintf("CREATE TABLE shop.t%d (id INT)", i))
	}
	want := lost(t, s, append(statements, "INSERT INTO shop.t39 VALUES (2)")...)
	few := limits
	few.Tables = 2
	got, err := binlog.Count(t.Context(), target(s, false), want, few)
	if err != nil {
		t.Fatal(err)
	}
	sum := got.Rest.Inserted
	for _, table := range got.Tables {
		sum += table.Inserted
	}
	if len(got.Tables) != 2 || sum != 41 || got.RestTables != 38 {
		t.Errorf("%+v", got)
	}
}

func TestCountRefuses(t *testing.T) {
	s := start(t, false)
	gone := lost(t, s, "INSERT INTO shop.log VALUES ('x')")
	s.Exec(t, "FLUSH BINARY LOGS")
	there := lost(t, s, "INSERT INTO shop.log VALUES (REPEAT('x', 100000))")
	s.Exec(t, "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
	small := limits
	small.EventBytes = 50_000
	few := limits
	few.Bytes = 50_000
	tests := map[string]struct {
		want   gtid.Set
		limits binlog.Limits
		err    error
	}{
		"purged":       {gone, limits, binlog.ErrPurged},
		"never had":    {gtid.MustParse("11111111-1111-1111-1111-111111111111:1"), limits, binlog.ErrUnknown},
		"large event":  {there, small, binlog.ErrTooLarge},
		"much to read": {there, few, binlog.ErrTooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := binlog.Count(t.Context(), target(s, false), tt.want, tt.limits); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
		})
	}
	t.Run("compressed bomb", func(t *testing.T) {
		want := lost(t, s, "SET SESSION binlog_transaction_compression = ON", "INSERT INTO shop.log VALUES (REPEAT('x', 10000000))")
		if _, err := binlog.Count(t.Context(), target(s, false), want, limits); !errors.Is(err, binlog.ErrTooLarge) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := binlog.Count(ctx, target(s, false), there, limits); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}
