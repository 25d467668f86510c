// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const marker = "MARKER-PLAINTEXT"

// fill makes rows whose bytes do not compress away; about a kilobyte each.
func fill(t *testing.T, s *mysqltest.Server, thousands int) {
	t.Helper()
	s.Exec(t, "CREATE DATABASE big", "CREATE TABLE big.rows_ (id INT AUTO_INCREMENT PRIMARY KEY, t VARCHAR(1200), m VARCHAR(40))")
	for range thousands {
		s.Exec(t, "SET SESSION cte_max_recursion_depth = 10000", "INSERT INTO big.rows_ (t, m) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "+
			"SELECT CONCAT(SHA2(UUID(), 512), SHA2(UUID(), 512), SHA2(UUID(), 512), SHA2(UUID(), 512), SHA2(UUID(), 512), SHA2(UUID(), 512), SHA2(UUID(), 512), SHA2(UUID(), 512)), '"+marker+"' FROM n")
	}
}

// begun starts the program and waits until it is in a phase with bytes done.
func (j *job) begun(command string, phase terms.Phase) (out *bytes.Buffer, wait func() (terms.Result, int), signal func(syscall.Signal)) {
	j.t.Helper()
	_ = os.Remove(filepath.Join(j.dir, "run", "progress"))
	cmd := j.cmd(command)
	out = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	var once sync.Once
	done := func() { once.Do(func() { _ = cmd.Wait() }) }
	j.t.Cleanup(func() { _ = cmd.Cancel(); done() })
	mysqltest.Eventually(j.t, string(phase), func() bool {
		raw, _ := os.ReadFile(filepath.Join(j.dir, "run", "progress"))
		return bytes.Contains(raw, []byte(`"phase":"`+string(phase)+`"`)) || bytes.Contains(raw, []byte(`"result"`))
	})
	return out, func() (terms.Result, int) { done(); return j.result(out.Bytes()), cmd.ProcessState.ExitCode() },
		func(sig syscall.Signal) {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
			pid, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil || pid == 0 || syscall.Kill(pid, sig) != nil {
				j.t.Fatalf("signal %d: %v", pid, err)
			}
		}
}

// Told to give way, the dump's sessions are gone at once, and with them whatever waited behind them.
func TestYield(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	fill(t, s, 60)
	root := s.Root(t)
	for _, how := range []string{"signal", "file", "operator"} {
		t.Run(how, func(t *testing.T) {
			j := newJob(t, false).from(s)
			j.config.YieldFile = "/srv/run/yield"
			_, wait, signal := j.begun("make", terms.Dumping)
			altered := make(chan time.Time, 1)
			go func() {
				_, _ = root.ExecContext(t.Context(), "ALTER TABLE big.rows_ COMMENT = '"+how+"'")
				altered <- time.Now()
			}()
			mysqltest.Eventually(t, "the ALTER waits", func() bool {
				var n int
				err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE info LIKE 'ALTER TABLE big%' AND state LIKE 'Waiting for%'").Scan(&n)
				return err == nil && n == 1
			})
			mysqltest.Eventually(t, "mysqldump is connected", func() bool {
				var n int
				err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE user = 'mfg_backup'").Scan(&n)
				return err == nil && n == 3
			})
			began := time.Now()
			switch how {
			case "signal":
				signal(syscall.SIGTERM)
			case "file":
				if err := os.WriteFile(filepath.Join(j.dir, "run", "yield"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				if n, err := s.Operator(t).EndBackups(t.Context()); err != nil || n != 3 {
					t.Errorf("ended %d sessions: %v", n, err)
				}
			}
			took := (<-altered).Sub(began)
			t.Logf("%s: the ALTER went on after %s", how, took.Round(time.Millisecond))
			if took > 3*time.Second { // a second, on a machine that does nothing else
				t.Errorf("the ALTER waited for %s", took)
			}
			res, code := wait()
			want := map[string]int{"signal": terms.ExitYielded, "file": terms.ExitYielded, "operator": terms.ExitSource}[how]
			if code != want {
				t.Errorf("code %d: %+v", code, res)
			}
			if names, others := j.backups(); len(names)+others > 0 {
				t.Errorf("left: %v and %d objects", names, others)
			}
			var sessions int
			if err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE user = 'mfg_backup'").Scan(&sessions); err != nil || sessions != 0 {
				t.Errorf("%d sessions are left: %v", sessions, err)
			}
			j.config.Backup = "nightly-2"
			_ = os.Remove(filepath.Join(j.dir, "run", "yield"))
			if how == "signal" {
				j.must("make") // the next one works
			}
		})
	}
}

// A clone gives way too.
func TestYieldClone(t *testing.T) {
	s := origin(t, mysqltest.Options{Config: []string{"clone_max_data_bandwidth=10"}})
	fill(t, s, 60)
	j := newJob(t, false).from(s)
	j.config.Method = bucket.Physical
	_, wait, signal := j.begun("make", terms.Cloning)
	signal(syscall.SIGTERM)
	began := time.Now()
	if res, code := wait(); code != terms.ExitYielded {
		t.Errorf("code %d: %+v", code, res)
	}
	t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
	mysqltest.Eventually(t, "the donor has no session of ours", func() bool {
		var n int
		return s.Root(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM performance_schema.processlist WHERE user = 'mfg_backup'").Scan(&n) == nil && n == 0
	})
	if names, others := j.backups(); len(names)+others > 0 {
		t.Errorf("left: %v and %d objects", names, others)
	}
}

// A mysqldump that dies leaves no backup, and a site that ends the session neither.
func TestDumpDies(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	fill(t, s, 60)
	for how, reason := range map[string]terms.Reason{"program": terms.DumpFailed, "session": terms.SourceLost} {
		j := newJob(t, false).from(s)
		_, wait, _ := j.begun("make", terms.Dumping)
		if how == "program" {
			mysqltest.Eventually(t, "mysqldump is killed", func() bool {
				pids, _ := processes(t, "--defaults-file=/proc/self/fd/3\x00--databases")
				for _, pid := range pids {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				return len(pids) > 0
			})
		} else {
			root := s.Root(t)
			mysqltest.Eventually(t, "the session is ended", func() bool {
				var id int
				if root.QueryRowContext(t.Context(), "SELECT id FROM performance_schema.processlist WHERE user = 'mfg_backup' AND info LIKE 'SELECT%rows%'").Scan(&id) != nil {
					return false
				}
				_, err := root.ExecContext(t.Context(), "KILL "+strconv.Itoa(id))
				return err == nil
			})
		}
		if res, code := wait(); res.Reason != reason || code != terms.ExitSource {
			t.Errorf("%s: code %d: %+v", how, code, res)
		}
		if names, others := j.backups(); len(names)+others > 0 {
			t.Errorf("%s left: %v and %d objects", how, names, others)
		}
	}
}

// What is wrong with a backup or with the place is found before anything is touched, or leaves a directory that nobody takes for data.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	fill(t, s, 5)
	j := newJob(t, false).from(s)
	first, ours := j.must("make"), j.config.GroupUID
	// An attempt whose outcome was lost is made again: what is there is its own. A group of another UID has no place there.
	if again := j.must("make"); again.GTIDExecuted != first.GTIDExecuted || len(again.Warnings) == 0 {
		t.Errorf("made again: %+v, want what %+v stored, with a warning", again, first)
	}
	j.config.GroupUID = "another"
	j.fails("make", terms.Reason(bucket.Foreign), terms.ExitStorage)
	j.config.GroupUID = ours
	j.site(false)
	target := filepath.Join(j.dir, "volume", "data.restored")
	untouched := func() {
		t.Helper()
		if _, err := os.Stat(target); err == nil {
			t.Error("something was touched")
		}
	}
	wrong := newJob(t, false)
	j.config.IdentityFile = "/srv/wrong"
	if err := os.WriteFile(filepath.Join(j.dir, "wrong"), []byte(wrong.identity.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	j.fails("load", terms.WrongIdentity, terms.ExitRefused)
	untouched()
	j.config.IdentityFile = "/srv/identity"
	var object string
	_ = filepath.WalkDir(filepath.Join(j.dir, "bucket"), func(path string, d fs.DirEntry, _ error) error {
		if strings.HasPrefix(d.Name(), "dump.") {
			object = path
		}
		return nil
	})
	whole, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	put := func(raw []byte) {
		if err := os.WriteFile(object, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(whole[:len(whole)/2])
	j.fails("load", terms.Reason(bucket.Damaged), terms.ExitDamaged)
	untouched()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)*2/3] ^= 1
	put(flipped)
	j.fails("load", terms.Reason(bucket.Damaged), terms.ExitDamaged)
	if _, err := os.Stat(target + mysqld.PartialSuffix); err != nil {
		t.Errorf("half a load has no mark: %v", err)
	}
	put(whole)
	j.must("load")
	if _, err := os.Stat(filepath.Join(j.dir, "volume", "data.restored", "big")); err != nil {
		t.Error(err)
	}
	began := time.Now()
	j.must("load") // a pod that starts again: there is nothing to do
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("what is loaded was loaded again, in %s", took)
	}
	// A scratch directory with something else in it is not ours.
	j.config.Server.Dir, j.config.Server.DefaultsFile = "/srv/scratch/data", ""
	mine := filepath.Join(j.dir, "scratch", "data")
	if err := os.MkdirAll(mine, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mine, "keep"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	j.fails("verify", terms.TargetNotEmpty, terms.ExitRefused)
	if _, err := os.Stat(filepath.Join(mine, "keep")); err != nil {
		t.Error(err)
	}
	_ = os.RemoveAll(mine)
	j.config.Query = "SELECT 0"
	j.fails("verify", terms.QueryFailed, terms.ExitDamaged)
	j.must("sweep")
	j.must("delete")
	if names, others := j.backups(); len(names)+others > 0 {
		t.Errorf("left: %v and %d objects", names, others)
	}
}

// An account that would leave something out is refused: mysqldump says nothing of it.
func TestRightsAreChecked(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	j := newJob(t, false).from(s)
	for _, right := range []string{"TRIGGER", "SHOW_ROUTINE", "SHOW VIEW"} {
		s.Exec(t, "REVOKE "+right+" ON *.* FROM mfg_backup")
		j.fails("make", terms.SourceRefused, terms.ExitSource)
		s.Exec(t, "GRANT "+right+" ON *.* TO mfg_backup")
	}
	if err := os.WriteFile(filepath.Join(j.dir, "password"), []byte("wrong"), 0o644); err != nil {
		t.Fatal(err)
	}
	j.fails("make", terms.SourceRefused, terms.ExitSource)
	j.config.Source.Port = 1
	j.fails("make", terms.SourceUnreachable, terms.ExitSource)
}

// processes are those whose arguments hold a text, and all arguments of all processes.
func processes(t *testing.T, text string) (pids []int, all []byte) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		all = append(append(all, raw...), '\n')
		if bytes.Contains(raw, []byte(text)) {
			pids = append(pids, pid)
		}
	}
	return pids, all
}
