// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const password = `ba'ck"up\pass#word`

func columns(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("c%d INT", i))
	}
	return strings.Join(all, ", ")
}

// job is a folder that stands for the pod of a Job: the program, secrets, memory, a scratch volume and the storage.
type job struct {
	t        *testing.T
	dir      string
	identity *age.X25519Identity
	config   terms.Config
	// closed ends the server that opened opened last.
	closed func()
}

var building sync.Mutex

// program builds the program once for all tests.
func program(t *testing.T) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	if file := os.Getenv("MFG_BACKUP_PROGRAM"); file != "" {
		return file
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("mfg-backup-%d", os.Getpid()))
	file := filepath.Join(dir, "backup")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", file, "github.com/mysql-mfg/mfg/backup")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(filepath.Join(os.TempDir(), fmt.Sprintf("mfg-backup-%d", os.Getpid())))
	os.Exit(code)
}

func newJob(t *testing.T, keyring bool) *job {
	t.Helper()
	j := &job{t: t, dir: mysqltest.Folder(t, keyring)}
	var err error
	if j.identity, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	mysqltest.WriteCA(t, j.dir)
	raw, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"backup": string(raw), "password": password + "\n", "identity": j.identity.String() + "\n"} {
		if err := os.WriteFile(filepath.Join(j.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bucket", "run", "scratch"} {
		if err := os.Mkdir(filepath.Join(j.dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "chown", "-R", "999:999", j.dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	j.config = terms.Config{
		Bucket: bucket.Config{Folder: "/srv/bucket", Namespace: "shop", Group: "orders"}, Backup: "nightly-1", GroupUID: "uid", Profile: "nightly",
		Site: "a", Epoch: 3, Method: bucket.Logical, Recipients: []string{j.identity.Recipient().String()}, IdentityFile: "/srv/identity",
		Server: terms.Server{Dir: "/srv/scratch/data", RunDir: "/srv/run", TmpDir: "/srv/tmp"}, TimeoutSeconds: 600, ResultFile: "/srv/run/result",
		ProgressFile: "/srv/run/progress",
	}
	if keyring {
		j.config.Server.KeyringFile = "/srv/keyring/keyring"
	}
	return j
}

// from has the job copy a server.
func (j *job) from(s *mysqltest.Server) *job {
	j.config.Source = terms.Source{Host: "127.0.0.1", Port: s.Port, User: mysql.AccountBackup, PasswordFile: "/srv/password", CAFile: "/srv/ca.crt"}
	return j
}

// cmd is the program with a command.
func (j *job) cmd(command string) *exec.Cmd {
	j.t.Helper()
	raw, err := json.Marshal(j.config)
	if err != nil {
		j.t.Fatal(err)
	}
	cmd := mysqltest.Command(j.t, j.dir, "/srv/backup", command)
	cmd.Env = append(cmd.Env, "MFG_BACKUP_CONFIG="+string(raw), "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	return cmd
}

// run runs the program to its end.
func (j *job) run(command string) (terms.Result, int) {
	j.t.Helper()
	began := time.Now()
	cmd := j.cmd(command)
	out, err := cmd.CombinedOutput()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	for _, secret := range []string{password, j.identity.String()} {
		if bytes.Contains(out, []byte(secret)) {
			j.t.Errorf("%s shows a secret", command)
		}
	}
	res := j.result(out)
	j.t.Logf("%s: %s after %s: %s", command, res.Reason, time.Since(began).Round(10*time.Millisecond), res.Message)
	return res, cmd.ProcessState.ExitCode()
}

// must runs the program, which must succeed.
func (j *job) must(command string) terms.Result {
	j.t.Helper()
	res, code := j.run(command)
	if code != 0 || res.Reason != terms.Succeeded {
		j.t.Fatalf("%s: code %d: %+v", command, code, res)
	}
	return res
}

// fails runs the program, which must end so.
func (j *job) fails(command string, want terms.Reason, code int) terms.Result {
	j.t.Helper()
	res, got := j.run(command)
	if res.Reason != want || got != code || res.Message == "" {
		j.t.Errorf("%s: code %d: %+v, want %s", command, got, res, want)
	}
	return res
}

// result is that of the last line of progress.
func (j *job) result(out []byte) terms.Result {
	j.t.Helper()
	var last terms.Result
	for line := range bytes.Lines(out) {
		var p terms.Progress
		if json.Unmarshal(line, &p) == nil && p.Result != nil {
			last = *p.Result
		}
	}
	if last.Reason == "" {
		j.t.Fatalf("no result in\n%s", out)
	}
	return last
}

// backups are the names of backups in the storage, and how many objects there are besides.
func (j *job) backups() (names []string, others int) {
	j.t.Helper()
	root := filepath.Join(j.dir, "bucket")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir() || d.Name() == "owner.json":
		case d.Name() == "manifest.json":
			names = append(names, filepath.Base(filepath.Dir(path)))
		default:
			others++
		}
		return nil //nolint:nilerr // what is gone meanwhile is not counted
	})
	return names, others
}

// origin is a server with TLS that takes writes and has the account of backups.
func origin(t *testing.T, opts mysqltest.Options) *mysqltest.Server {
	t.Helper()
	opts.TLS = true
	opts.Config = append(opts.Config, "innodb_redo_log_capacity=64M", "max_allowed_packet=64M")
	s := mysqltest.Start(t, opts)
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	s.Exec(t, mysql.BackupAccountStatements(password, true)...)
	return s
}

// opened is the data directory of a load, opened by a server.
func (j *job) opened(dir string, keyring bool) *sql.DB {
	t := j.t
	t.Helper()
	socket := filepath.Join(j.dir, "opened.sock")
	args := []string{"mysqld", "--no-defaults", "--datadir=" + dir, "--socket=/srv/opened.sock", "--skip-networking", "--mysqlx=OFF", "--pid-file=/srv/opened.pid",
		"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog", "--server-id=77", "--tmpdir=/srv/tmp", "--secure-file-priv=NULL", "--event-scheduler=OFF"}
	if keyring {
		args = append(args, "--default-table-encryption=ON", "--binlog-encryption=ON", "--innodb-redo-log-encrypt=ON", "--innodb-undo-log-encrypt=ON")
	}
	cmd := mysqltest.Command(t, j.dir, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j.closed = sync.OnceFunc(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the loaded server says:\n%s", said.String())
		}
	})
	t.Cleanup(j.closed)
	db, err := mysql.Pool(mysql.Target{Addr: socket, User: "root", Password: mysqltest.Passwords.Root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	mysqltest.Eventually(t, "the loaded server answers", func() bool { return db.PingContext(context.Background()) == nil })
	return db
}

// digests are those of every table, view, routine, trigger, event and account, by name.
func digests(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	out := map[string]string{}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "SET SESSION sql_mode = '', SESSION time_zone = '+00:00', SESSION print_identified_with_as_hex = ON"); err != nil {
		t.Fatal(err)
	}
	each := func(query string, do func(row []string)) {
		rows, err := conn.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer func() { _ = rows.Close() }()
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			raw, into := make([]sql.RawBytes, len(names)), make([]any, len(names))
			for i := range raw {
				into[i] = &raw[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			row := make([]string, len(names))
			for i := range raw {
				row[i] = fmt.Sprintf("%t:%s", raw[i] == nil, raw[i])
			}
			do(row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	plain := func(value string) string { return strings.TrimPrefix(value, "false:") }
	quoted := func(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
	var tables []string
	each("SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN ('mysql','sys','information_schema','performance_schema')", func(row []string) {
		tables = append(tables, quoted(plain(row[0]))+"."+quoted(plain(row[1])))
	})
	slices.Sort(tables)
	for _, table := range tables {
		each("SHOW CREATE TABLE "+table, func(row []string) { out["create "+table] = row[1] })
		var all []string
		each("SELECT * FROM "+table, func(row []string) {
			sum := sha256.Sum256([]byte(strings.Join(row, "|")))
			all = append(all, hex.EncodeToString(sum[:]))
		})
		slices.Sort(all)
		sum := sha256.Sum256([]byte(strings.Join(all, "")))
		out["rows "+table] = fmt.Sprintf("%d %x", len(all), sum)
	}
	for what, query := range map[string]string{
		"routine": "SELECT routine_schema, routine_name, routine_definition, definer, sql_mode, security_type FROM information_schema.routines WHERE routine_schema <> 'sys'",
		"trigger": "SELECT trigger_schema, trigger_name, action_statement, definer, sql_mode FROM information_schema.triggers WHERE trigger_schema <> 'sys'",
		"event":   "SELECT event_schema, event_name, event_definition, definer, interval_value, starts, status, event_comment FROM information_schema.events",
		"schema":  "SELECT schema_name, schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata",
	} {
		each(query, func(row []string) { out[what+" "+row[0]+"."+row[1]] = strings.Join(row, "|") })
	}
	var users []string
	each("SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user WHERE user NOT LIKE 'mfg%' AND user NOT LIKE 'mysql.%' AND user <> 'root'", func(row []string) {
		users = append(users, plain(row[0]))
	})
	for _, user := range users {
		each("SHOW CREATE USER "+user, func(row []string) { out["user "+user] = row[0] })
		n := 0
		each("SHOW GRANTS FOR "+user, func(row []string) {
			if !strings.Contains(row[0], "`dropped`") {
				out[fmt.Sprintf("grant %s %d", user, n)] = row[0]
				n++
			}
		})
	}
	return out
}

// same compares digests.
func same(t *testing.T, want, got map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs:\n%.600s\n%.600s", name, text, got[name])
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s was not there before", name)
		}
	}
}

func executed(t *testing.T, db *sql.DB) string {
	t.Helper()
	var text string
	if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, "\n", "")
}
