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

	backup "github.com/mysql-mfg/mfg/backup/job"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql"
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
func (j *job) begun(command string, phase backup.Phase) (out *bytes.Buffer, wait func() (backup.Result, int), signal func(syscall.Signal)) {
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
	return out, func() (backup.Result, int) { done(); return j.result(out.Bytes()), cmd.ProcessState.ExitCode() },
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
			_, wait, signal := j.begun("make", backup.Dumping)
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
			began := time.Now()
			switch how {
			case "signal":
				signal(syscall.SIGTERM)
			case "file":
				if err := os.WriteFile(filepath.Join(j.dir, "run", "yield"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				if n, err := s.Operator(t).EndBackups(t.Context()); err != nil || n < 3 {
					t.Errorf("ended %d sessions: %v", n, err)
				}
			}
			took := (<-altered).Sub(began)
			t.Logf("%s: the ALTER went on after %s", how, took.Round(time.Millisecond))
			if took > 3*time.Second { // a second, on a machine that does nothing else
				t.Errorf("the ALTER waited for %s", took)
			}
			res, code := wait()
			want := map[string]int{"signal": backup.ExitYielded, "file": backup.ExitYielded, "operator": backup.ExitSource}[how]
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
	_, wait, signal := j.begun("make", backup.Cloning)
	signal(syscall.SIGTERM)
	began := time.Now()
	if res, code := wait(); code != backup.ExitYielded {
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
	for how, reason := range map[string]backup.Reason{"program": backup.DumpFailed, "session": backup.SourceLost} {
		j := newJob(t, false).from(s)
		_, wait, _ := j.begun("make", backup.Dumping)
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
		if res, code := wait(); res.Reason != reason || code != backup.ExitSource {
			t.Errorf("%s: code %d: %+v", how, code, res)
		}
		if names, others := j.backups(); len(names)+others > 0 {
			t.Errorf("%s left: %v and %d objects", how, names, others)
		}
	}
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

// holding are the files below a folder that hold a text.
func holding(root, text string) (found []string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "backup" {
			return nil
		}
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(text)) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// Nothing in the clear is on a disk, for an encrypted site by either method, while a backup is made and after it; and no password is an
// argument of anybody. The controls find both.
func TestNoPlaintext(t *testing.T) {
	s := origin(t, mysqltest.Options{Keyring: true})
	fill(t, s, 20)
	for _, method := range []string{bucket.Logical, bucket.Physical} {
		j := newJob(t, true).from(s)
		j.config.Method = method
		first := map[string]backup.Phase{bucket.Logical: backup.Dumping, bucket.Physical: backup.Cloning}[method]
		_, wait, _ := j.begun("make", first)
		over, looks, seen := make(chan struct{}), 0, 0
		var all []byte
		var looked sync.WaitGroup
		looked.Go(func() {
			for {
				if found := holding(j.dir, marker); len(found) > 0 {
					t.Errorf("%s: plaintext in %v", method, found)
				}
				pids, args := processes(t, "--defaults-file=/proc/self/fd/3\x00--databases")
				looks, seen, all = looks+1, seen+len(pids), append(all, args...)
				select {
				case <-over:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
		if res, code := wait(); code != 0 {
			t.Errorf("%s: %+v", method, res)
		}
		close(over)
		looked.Wait()
		if bytes.Contains(all, []byte(password)) || bytes.Contains(all, []byte(mysqltest.Passwords.Root)) {
			t.Errorf("%s: a password is in an argument", method)
		}
		t.Logf("%s: %d looks, mysqldump seen in %d", method, looks, seen)
		if method == bucket.Logical && seen == 0 {
			t.Error("the control does not see mysqldump: nothing is proven")
		}
		j.must("verify")
		if found := holding(j.dir, marker); len(found) > 0 {
			t.Errorf("%s: plaintext after the verification in %v", method, found)
		}
	}
	// The controls: a server without encryption, and a backup without recipients that does not compress the marker away.
	plain := origin(t, mysqltest.Options{})
	fill(t, plain, 1)
	plain.Exec(t, "FLUSH TABLES big.rows_ FOR EXPORT", "UNLOCK TABLES")
	if len(holding(plain.Dir, marker)) == 0 {
		t.Error("the control finds no plaintext where there is some")
	}
}

// What is wrong with a backup or with the place is found before anything is touched, or leaves a directory that nobody takes for data.
func TestLoadRefuses(t *testing.T) {
	s := origin(t, mysqltest.Options{})
	fill(t, s, 5)
	j := newJob(t, false).from(s)
	j.must("make")
	j.fails("make", backup.Reason(bucket.Exists), backup.ExitStorage)
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
	j.fails("load", backup.WrongIdentity, backup.ExitRefused)
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
	j.fails("load", backup.Reason(bucket.Damaged), backup.ExitDamaged)
	untouched()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)*2/3] ^= 1
	put(flipped)
	j.fails("load", backup.Reason(bucket.Damaged), backup.ExitDamaged)
	if _, err := os.Stat(target + backup.PartialSuffix); err != nil {
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
	j.fails("verify", backup.TargetNotEmpty, backup.ExitRefused)
	if _, err := os.Stat(filepath.Join(mine, "keep")); err != nil {
		t.Error(err)
	}
	_ = os.RemoveAll(mine)
	j.config.Query = "SELECT 0"
	j.fails("verify", backup.QueryFailed, backup.ExitDamaged)
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
		j.fails("make", backup.SourceRefused, backup.ExitSource)
		s.Exec(t, "GRANT "+right+" ON *.* TO mfg_backup")
	}
	if err := os.WriteFile(filepath.Join(j.dir, "password"), []byte("wrong"), 0o644); err != nil {
		t.Fatal(err)
	}
	j.fails("make", backup.SourceRefused, backup.ExitSource)
	j.config.Source.Port = 1
	j.fails("make", backup.SourceUnreachable, backup.ExitSource)
}

// Under writes the GTID set fits the data exactly: what is missing, and nothing else, can be replayed on top, and both are then the same.
func TestGTIDFitsUnderWrites(t *testing.T) {
	for _, method := range []string{bucket.Logical, bucket.Physical} {
		t.Run(method, func(t *testing.T) {
			s := origin(t, mysqltest.Options{})
			fill(t, s, 10)
			s.Exec(t, "CREATE TABLE big.w (id INT AUTO_INCREMENT PRIMARY KEY, n INT)", "CREATE TABLE big.c (n INT)", "INSERT INTO big.c VALUES (0)")
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for range 4 {
				writers.Go(func() {
					db := s.Root(t)
					for {
						select {
						case <-stop:
							return
						default:
						}
						tx, err := db.BeginTx(t.Context(), nil)
						if err != nil {
							continue
						}
						_, _ = tx.ExecContext(t.Context(), "UPDATE big.c SET n = n + 1")
						_, _ = tx.ExecContext(t.Context(), "INSERT INTO big.w (n) SELECT n FROM big.c")
						_ = tx.Commit()
					}
				})
			}
			j := newJob(t, false).from(s)
			j.config.Method = method
			res := j.must("make")
			close(stop)
			writers.Wait()
			j.site(false)
			j.must("load")
			db := j.opened("/srv/volume/data.restored", false)
			var rows, n int
			if err := db.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM big.w), (SELECT n FROM big.c)").Scan(&rows, &n); err != nil || rows != n || n == 0 {
				t.Errorf("%d rows, %d counted: %v", rows, n, err)
			}
			before := executed(t, db)
			if before != res.GTIDExecuted || before == executed(t, s.Root(t)) {
				t.Errorf("nothing is proven: %s", before)
			}
			for _, statement := range []string{
				fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1",
					s.Port, mysql.AccountReplication, strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(mysqltest.Passwords.Replication)),
				"START REPLICA",
			} {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			mysqltest.Eventually(t, "the rest is replayed", func() bool { return executed(t, db) == executed(t, s.Root(t)) })
			if _, err := db.ExecContext(t.Context(), "STOP REPLICA"); err != nil {
				t.Error(err)
			}
			same(t, digests(t, s.Root(t)), digests(t, db))
		})
	}
}
