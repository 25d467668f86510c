// SPDX-License-Identifier: Apache-2.0

//go:build mysqld && long

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// replayFigures is what `make bench-replay` writes. Seconds are of one run after the other on the same machine.
type replayFigures struct {
	Processors   int   `json:"processors"`
	Workers      int   `json:"workers"`
	Transactions int64 `json:"transactions"`
	LogBytes     int64 `json:"logBytes"`
	// Replay is by relay logs, with the settings of a load. PipeAlike is mysqlbinlog | mysql into a server with the same settings, and
	// PipeDurable the same into one with the settings of a site: its binary log on, and every commit synced.
	Replay      replayFigure `json:"replay"`
	PipeAlike   replayFigure `json:"pipeAlike"`
	PipeDurable replayFigure `json:"pipeDurable"`
	// FasterThanAlike and FasterThanDurable are how many times faster the replay is; Target is what is aimed at.
	FasterThanAlike   float64 `json:"fasterThanAlike"`
	FasterThanDurable float64 `json:"fasterThanDurable"`
	Target            float64 `json:"target"`
}

type replayFigure struct {
	Seconds               float64 `json:"seconds"`
	TransactionsPerSecond float64 `json:"transactionsPerSecond"`
	MBPerSecond           float64 `json:"mbPerSecond"`
}

// TestReplayBesideAPipe measures, and writes the figures to $MFG_BENCH_REPLAY. $MFG_BENCH_TRANSACTIONS is how many there are.
func TestReplayBesideAPipe(t *testing.T) {
	out := os.Getenv("MFG_BENCH_REPLAY")
	if out == "" {
		t.Skip("run it by `make bench-replay`")
	}
	n := 40000
	if text := os.Getenv("MFG_BENCH_TRANSACTIONS"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	source := origin(t, "innodb_flush_log_at_trx_commit=2", "sync_binlog=0", "innodb_redo_log_capacity=512M", "innodb_buffer_pool_size=512M", "max_binlog_size=64M")
	load(t, source, n)
	from, files := executed(t, source), logs(t, source)
	f := replayFigures{Processors: processors(), Workers: 4, Transactions: from.Count(), Target: 5}
	for _, log := range files {
		f.LogBytes += log.Bytes
	}
	f.Replay = f.figure(replayed(t, files, from))
	f.PipeAlike = f.figure(piped(t, source, from, alike(Args("/srv/data/"+RelayLogs, 4, false))))
	f.PipeDurable = f.figure(piped(t, source, from, []string{"innodb_redo_log_capacity=512M", "innodb_buffer_pool_size=512M", "innodb_flush_method=O_DIRECT", "max_allowed_packet=64M"}))
	f.FasterThanAlike, f.FasterThanDurable = f.PipeAlike.Seconds/f.Replay.Seconds, f.PipeDurable.Seconds/f.Replay.Seconds
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", raw)
	if err := os.WriteFile(out, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func processors() int {
	out, _ := exec.Command("nproc").Output()
	n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return n
}

func (f *replayFigures) figure(seconds float64) replayFigure {
	return replayFigure{Seconds: seconds, TransactionsPerSecond: float64(f.Transactions) / seconds, MBPerSecond: float64(f.LogBytes) / 1e6 / seconds}
}

// load has eight clients write small transactions: an insert and two updates of random rows.
func load(t *testing.T, s *mysqltest.Server, n int) {
	t.Helper()
	s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT, v VARCHAR(400), KEY (k))",
		"INSERT INTO d.t (k, v) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, REPEAT('a', 300) FROM n")
	root := s.Root(t)
	var all sync.WaitGroup
	for c := range 8 {
		all.Go(func() {
			conn, err := root.Conn(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			for i := range n / 8 {
				for _, statement := range []string{
					"BEGIN", fmt.Sprintf("INSERT INTO d.t (k, v) VALUES (%d, REPEAT(CHAR(%d), 300))", i*8+c, 65+i%26),
					fmt.Sprintf("UPDATE d.t SET k = k + 1, v = REPEAT(CHAR(%d), 300) WHERE id = %d", 65+i%26, (i*7919+c)%1000+1), "COMMIT",
				} {
					if _, err := conn.ExecContext(t.Context(), statement); err != nil && !strings.Contains(err.Error(), "1213") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

func alike(args []string) []string {
	config := []string{"super_read_only=OFF", "read_only=OFF", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0", "max_allowed_packet=64M",
		"innodb_redo_log_capacity=512M", "innodb_buffer_pool_size=512M"}
	for _, arg := range args {
		config = append(config, strings.TrimPrefix(arg, "--"))
	}
	return config
}

func replayed(t *testing.T, files []Log, target gtid.Set) float64 {
	t.Helper()
	e := mysqltest.Start(t, mysqltest.Options{Config: alike(Args("/srv/data/"+RelayLogs, 4, false))})
	e.Exec(t, "ALTER INSTANCE DISABLE INNODB REDO_LOG")
	r := Replay{Pool: e.Root(t), Version: "9.7.4", Logs: files, Have: executed(t, e), Target: target}
	began := time.Now()
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Exec(t, "ALTER INSTANCE ENABLE INNODB REDO_LOG")
	return time.Since(began).Seconds()
}

// piped is mysqlbinlog | mysql, in the root file system of the server.
func piped(t *testing.T, source *mysqltest.Server, target gtid.Set, config []string) float64 {
	t.Helper()
	e := mysqltest.Start(t, mysqltest.Options{Config: config})
	e.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	names, err := filepath.Glob(filepath.Join(source.Dir, "data", "binlog.0*"))
	if err != nil {
		t.Fatal(err)
	}
	var inside []string
	for _, name := range names {
		copied := filepath.Join(e.Dir, filepath.Base(name))
		if out, err := exec.CommandContext(t.Context(), "cp", name, copied).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := exec.CommandContext(t.Context(), "chown", "999:999", copied).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		inside = append(inside, "/srv/"+filepath.Base(name))
	}
	if err := os.WriteFile(filepath.Join(e.Dir, "client.cnf"), []byte("[client]\nuser=root\nsocket=/srv/mysqld.sock\npassword=\""+mysqltest.Passwords.Root+"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := mysqltest.Command(t, e.Dir, "sh", "-c", "mysqlbinlog "+strings.Join(inside, " ")+" | mysql --defaults-file=/srv/client.cnf --binary-mode")
	cmd.Stderr, cmd.Stdout = &said, &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	seconds := time.Since(began).Seconds()
	if got := executed(t, e); !got.Contains(target) {
		t.Fatalf("the pipe left out %s\n%s", target.Subtract(got), said.String())
	}
	return seconds
}
