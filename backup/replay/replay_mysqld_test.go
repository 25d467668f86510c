// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package replay

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
func empty(t *testing.T, keyring bool) *mysqltest.Server {
	t.Helper()
	var config []string
	for _, arg := range Args("/srv/data/"+RelayLogs, 4, keyring) {
		config = append(config, strings.TrimPrefix(arg, "--"))
	}
	return mysqltest.Start(t, mysqltest.Options{Keyring: keyring, Config: append(config, "super_read_only=OFF", "read_only=OFF")})
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

func TestTheArchiveIsApplied(t *testing.T) {
	for name, keyring := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			s, e := origin(t), empty(t, keyring)
			all := []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGBLOB)", "INSERT INTO d.t VALUES (1, REPEAT('MARKER', 4000000))"}
			for i := range 200 {
				all = append(all, fmt.Sprintf("INSERT INTO d.t VALUES (%d, REPEAT('x', 20000))", i+10))
			}
			s.Exec(t, append(all, "SET SESSION gtid_next = 'AUTOMATIC:tagged'", "INSERT INTO d.t VALUES (5, 'tagged')")...)
			r := Replay{Pool: e.Root(t), Version: "9.7.4", Logs: logs(t, s), Have: executed(t, e), Target: executed(t, s),
				Progress: func(b, n int64) { t.Log(b, n) }}
			r.Check = func() error {
				found, _ := filepath.Glob(filepath.Join(e.Dir, "data", RelayLogs+"*"))
				for _, f := range found {
					raw, _ := os.ReadFile(f)
					t.Log(filepath.Base(f), len(raw), fmt.Sprintf("%.4x", raw), strings.Contains(string(raw), "MARKER"))
				}
				return nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			got, err := r.Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", got)
			found, _ := filepath.Glob(filepath.Join(e.Dir, "data", RelayLogs+"*"))
			t.Log(found)
		})
	}
}
