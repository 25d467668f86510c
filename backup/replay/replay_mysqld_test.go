// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// origin is a server that takes writes.
func origin(t *testing.T, config ...string) *mysqltest.Server {
	t.Helper()
	s := mysqltest.Start(t, mysqltest.Options{Config: append([]string{"max_binlog_size=1M", "max_allowed_packet=64M"}, config...)})
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	return s
}

// empty is a server as a load leaves it, with what a replay needs.
func empty(t *testing.T, keyring bool, more ...string) *mysqltest.Server {
	t.Helper()
	var config []string
	for _, arg := range Args("/srv/data/"+RelayLogs, 4, keyring) {
		config = append(config, strings.TrimPrefix(arg, "--"))
	}
	return mysqltest.Start(t, mysqltest.Options{Keyring: keyring, Config: append(append(config, "super_read_only=OFF", "read_only=OFF", "innodb_redo_log_capacity=128M"), more...)})
}

func executed(t *testing.T, s *mysqltest.Server) gtid.Set {
	t.Helper()
	var text string
	root := s.Root(t)
	defer func() { _ = root.Close() }()
	if err := root.QueryRowContext(t.Context(), "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
		t.Fatal(err)
	}
	return gtid.MustParse(strings.ReplaceAll(text, "\n", ""))
}

// logs are all binary logs of a server.
func logs(t *testing.T, s *mysqltest.Server) []Log {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.Dir, "data", "binlog.0*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Log
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Log{
			Name: filepath.Base(name), Has: executed(t, s), Bytes: info.Size(),
			Open: func(context.Context) (io.ReadCloser, error) { return os.Open(name) },
		})
	}
	return out
}

// All of it at once: small and tagged transactions, and one that is larger than the relay logs may be, onto servers with and without
// encryption. Where it is on, no byte of it is on a disk in the clear, not while it runs either.
func TestTheArchiveIsApplied(t *testing.T) {
	for name, keyring := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := origin(t), empty(t, keyring, "relay_log_space_limit=8M", "max_relay_log_size=1M")
			all := []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGBLOB)", "INSERT INTO d.t VALUES (1, REPEAT('MARKER', 4000000))"}
			for i := range 200 {
				all = append(all, fmt.Sprintf("INSERT INTO d.t VALUES (%d, REPEAT('MARKER', 3000))", i+10))
			}
			s.Exec(t, append(all, "SET SESSION gtid_next = 'AUTOMATIC:tagged'", "INSERT INTO d.t VALUES (5, 'tagged')")...)
			seen, clear := 0, 0
			r := Replay{Pool: e.Root(t), Version: "9.7.4", Logs: logs(t, s), Have: executed(t, e), Target: executed(t, s), Progress: func(int64, int64) {}}
			r.Check = func() error {
				n, plain := relayLogs(t, e)
				seen, clear = seen+n, clear+plain
				return nil
			}
			got, err := r.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Transactions != 204 || got.Until.IsZero() || seen == 0 {
				t.Errorf("%+v, and %d relay logs were seen", got, seen)
			}
			if keyring && clear > 0 || !keyring && clear == 0 {
				t.Errorf("%d of %d relay logs are in the clear", clear, seen)
			}
			if n, _ := relayLogs(t, e); n > 0 {
				t.Errorf("%d relay logs are left", n)
			}
			var sums [2]string
			for i, server := range []*mysqltest.Server{s, e} {
				if err := server.Root(t).QueryRowContext(t.Context(), "SELECT CONCAT(COUNT(*), ' ', SUM(CRC32(v)), ' ', SUM(id)) FROM d.t").Scan(&sums[i]); err != nil {
					t.Fatal(err)
				}
			}
			if sums[0] != sums[1] {
				t.Errorf("there %s, here %s", sums[0], sums[1])
			}
		})
	}
}

// relayLogs counts those of the channel, and those of them in which the marker of the test can be read.
func relayLogs(t *testing.T, s *mysqltest.Server) (all, plain int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.Dir, "data", RelayLogs+"-"+channel+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, _ := os.ReadFile(name) // it may be purged meanwhile
		all++
		if bytes.Contains(raw, []byte("MARKER")) {
			plain++
		}
	}
	return all, plain
}

// What cannot be applied is told by its number and its GTID, and without the row that the server quotes.
func TestWhatCannotBeAppliedIsToldWithoutItsRow(t *testing.T) {
	t.Parallel()
	s, e := origin(t), empty(t, false)
	made := []string{"CREATE DATABASE d", "CREATE TABLE d.t (id VARCHAR(50) PRIMARY KEY)"}
	s.Exec(t, made...)
	e.Exec(t, append(made, "INSERT INTO d.t VALUES ('SECRET-ROW')", "SET GLOBAL gtid_purged = '"+executed(t, s).String()+"'")...)
	s.Exec(t, "INSERT INTO d.t VALUES ('SECRET-ROW')")
	r := Replay{Pool: e.Root(t), Version: "9.7.4", Logs: logs(t, s), Have: executed(t, e), Target: executed(t, s)}
	_, err := r.Run(t.Context())
	if !errors.Is(err, ErrApply) || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "error 1062") {
		t.Errorf("%v", err)
	}
}
