// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

var encrypted = mysqltest.Options{Keyring: true}

func digest(t *testing.T, s *mysqltest.Server) [sha256.Size]byte {
	t.Helper()
	raw, err := os.ReadFile(s.Keyring())
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(raw)
}

func keyring(t *testing.T, db *mysql.DB) mysql.KeyringStatus {
	t.Helper()
	st, err := db.Keyring(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestKeyringStatus(t *testing.T) {
	s := mysqltest.Start(t, encrypted)
	st := keyring(t, s.Sidecar(t))
	if st.Component != "component_keyring_file" || !st.Active || st.ReadOnly || st.DataFile != "/srv/keyring/keyring" || len(st.Keys) < 3 {
		t.Errorf("got %+v", st)
	}
	if !slices.ContainsFunc(st.Keys, func(k mysql.Key) bool { return strings.HasPrefix(k.ID, "INNODBKey-") }) {
		t.Errorf("no master key of InnoDB: %+v", st.Keys)
	}
	plain := mysqltest.Start(t, mysqltest.Options{})
	if st := keyring(t, plain.Sidecar(t)); st.Component != "" || st.Active || len(st.Keys) != 0 {
		t.Errorf("without a keyring: %+v", st)
	}
}

// window opens the window of a rotation on a replica.
func window(t *testing.T, db *mysql.DB) {
	t.Helper()
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.EndWindow(context.WithoutCancel(t.Context())) })
}

// TestRotationAddsNoTransaction covers I20: in a window, on a replica that has transactions of its own, both master keys are
// new afterwards, and the executed set is what it was.
func TestRotationAddsNoTransactionI20(t *testing.T) {
	s := writable(t, encrypted)
	s.Exec(t, insert, "SET GLOBAL super_read_only = ON")
	db := s.Operator(t)
	before, keys, file := status(t, db), keyring(t, db).Keys, digest(t, s)
	window(t, db)
	if err := db.RotateMasterKeys(budget(t)); err != nil {
		t.Fatal(err)
	}
	if after := status(t, db); !after.Executed.Equal(before.Executed) {
		t.Errorf("executed %s, before the rotation %s", after.Executed, before.Executed)
	}
	if digest(t, s) == file {
		t.Error("the keyring is the same")
	}
	after := keyring(t, db).Keys
	for _, kind := range []string{"INNODBKey-", "MySQLReplicationKey_"} {
		fresh := slices.ContainsFunc(after, func(k mysql.Key) bool { return strings.HasPrefix(k.ID, kind) && !slices.Contains(keys, k) })
		if !fresh {
			t.Errorf("no new key %s…: before %v, after %v", kind, keys, after)
		}
	}
	if err := db.EndWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	// What the keyring holds now opens the data.
	s.Kill(t, func() {})
	if n := count(t, s); n != 4 {
		t.Errorf("%d rows after a restart", n)
	}
}

// TestLostMasterKeys is what the operator takes for lost keys (operator/keyring/lost.go): with the keyring from before a
// rotation mysqld ends at every start, and leaves that keyring as it is. With the new one the data is whole.
func TestLostMasterKeys(t *testing.T) {
	s := writable(t, encrypted)
	s.Exec(t, insert, "SET GLOBAL super_read_only = ON")
	db := s.Operator(t)
	seed, err := os.ReadFile(s.Keyring())
	if err != nil {
		t.Fatal(err)
	}
	old := digest(t, s)
	window(t, db)
	if err := db.RotateMasterKeys(budget(t)); err != nil {
		t.Fatal(err)
	}
	rotated, err := os.ReadFile(s.Keyring())
	if err != nil {
		t.Fatal(err)
	}
	ends := len(s.Exits())
	overwrite(t, s.Keyring(), seed)
	s.Signal(t, syscall.SIGKILL)
	mysqltest.Eventually(t, "mysqld ends twice more", func() bool { return len(s.Exits()) > ends+2 })
	for _, code := range s.Exits()[ends+1:] {
		if code != 1 {
			t.Errorf("mysqld ended with %d", code)
		}
	}
	if digest(t, s) != old {
		t.Error("the keyring was written")
	}
	overwrite(t, s.Keyring(), rotated)
	s.WaitReady(t)
	if n := count(t, s); n != 4 {
		t.Errorf("%d rows", n)
	}
}

// overwrite keeps the owner of a file.
func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, s *mysqltest.Server) (n int) {
	t.Helper()
	if err := s.Root(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM app.t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRotationNeedsAWindow covers I20: on an open server, and on one that is fenced and not in a window, nothing is rotated.
func TestRotationNeedsAWindowI20(t *testing.T) {
	s := writable(t, encrypted)
	db := s.Operator(t)
	file := digest(t, s)
	for state, statement := range map[string]string{
		"open": "DO 0", "open, offline": "SET GLOBAL offline_mode = ON", "fenced": "SET GLOBAL super_read_only = ON",
	} {
		s.Exec(t, "SET GLOBAL offline_mode = OFF", "SET GLOBAL read_only = OFF", statement)
		if err := db.RotateMasterKeys(budget(t)); !errors.Is(err, mysql.ErrNoWindow) {
			t.Errorf("%s: %v", state, err)
		}
	}
	if digest(t, s) != file {
		t.Error("the keyring was written")
	}
}

// I20: a rotation that a backup or DDL keeps waiting gives way, for the window must end, and is not carried out after that.
func TestRotationGivesWayI20(t *testing.T) {
	t.Parallel()
	s := writable(t, encrypted)
	s.Exec(t, "SET GLOBAL super_read_only = ON")
	db := s.Operator(t)
	file := digest(t, s)
	window(t, db)
	t.Run("backup", func(t *testing.T) {
		blocker := session(t, s.Root(t), "LOCK INSTANCE FOR BACKUP")
		givesWay(t, s, db)
		end(t, blocker, "UNLOCK INSTANCE")
	})
	t.Run("DDL", func(t *testing.T) {
		// It holds the backup lock while it waits for the table.
		blocker := session(t, s.Root(t), "LOCK TABLES app.t WRITE")
		altered := background(t, s, session(t, s.Root(t)), "ALTER TABLE app.t ADD COLUMN w INT")
		givesWay(t, s, db)
		end(t, blocker, "UNLOCK TABLES")
		if err := <-altered; err != nil {
			t.Errorf("the DDL itself: %v", err)
		}
	})
	if digest(t, s) != file {
		t.Error("the keyring was written")
	}
}

// I8: whatever comes of a rotation, the replica receives again, and nothing is left to be rotated twice.
func TestReplicaReceivesAgainAfterARotationThatFailedI8(t *testing.T) {
	source, replica := pair(t, encrypted)
	db := replica.Operator(t)
	window(t, db)
	// The receiver is stopped before the key of the binary logs is asked for, which a backup that begins then keeps waiting.
	blocker := session(t, replica.Root(t), "LOCK INSTANCE FOR BACKUP")
	if err := db.RotateBinaryLogKey(budget(t)); err != nil && !errors.Is(err, mysql.ErrHalfRotated) {
		t.Errorf("got %v", err)
	}
	replicaStatus(t, db, "it receives again", func(st mysql.Status) bool { return st.Replica != nil && st.Replica.IORunning })
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_ = db.RotateBinaryLogKey(short)
	replicaStatus(t, db, "it receives again after a caller who has gone", func(st mysql.Status) bool { return st.Replica != nil && st.Replica.IORunning })
	end(t, blocker, "UNLOCK INSTANCE")
	innodb := func() (n int) {
		for _, k := range keyring(t, db).Keys {
			if strings.HasPrefix(k.ID, "INNODBKey-") {
				n++
			}
		}
		return n
	}
	before := innodb()
	if err := db.RotateBinaryLogKey(budget(t)); err != nil || innodb() != before {
		t.Errorf("%v; %d keys of InnoDB, %d before", err, innodb(), before)
	}
	source.Exec(t, insert)
	want := status(t, source.Operator(t)).Executed
	replicaStatus(t, db, "it has what the source commits", func(st mysql.Status) bool { return st.Executed.Contains(want) })
}

func givesWay(t *testing.T, s *mysqltest.Server, db *mysql.DB) {
	t.Helper()
	if err := db.RotateMasterKeys(budget(t)); !errors.Is(err, mysql.ErrLocked) {
		t.Errorf("got %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := db.RotateMasterKeys(short); err == nil || errors.Is(err, mysql.ErrLocked) {
		t.Errorf("without the time to be refused: %v", err)
	}
	var left int
	const rotations = "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_INFO LIKE 'ALTER INSTANCE%'"
	if err := s.Root(t).QueryRowContext(t.Context(), rotations).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rotations go on: %v", left, err)
	}
}

func end(t *testing.T, conn *sql.Conn, statement string) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestSealedKeyring: with the keyring mounted read-only nothing is rotated, and the server works.
func TestSealedKeyring(t *testing.T) {
	s := mysqltest.Start(t, encrypted)
	s.Seal(t, true)
	db := s.Operator(t)
	if st := keyring(t, db); !st.Active || !st.ReadOnly {
		t.Errorf("sealed: %+v", st)
	}
	file := digest(t, s)
	window(t, db)
	err := db.RotateMasterKeys(budget(t))
	if !errors.Is(err, mysql.ErrSealed) || serverNumber(err) != 3185 {
		t.Errorf("a sealed server must refuse with 3185, got %v", err)
	}
	if digest(t, s) != file {
		t.Error("the keyring was written")
	}
	s.Exec(t, "SET sql_log_bin = 0", "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO app.t VALUES ()")
	s.Seal(t, false)
	if n := count(t, s); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestReadOnlyProvesNothing is why a site is sealed by its mount: the component says Read_only and writes all the same.
func TestReadOnlyProvesNothing(t *testing.T) {
	s := mysqltest.Start(t, encrypted)
	s.ConfigureReadOnly(t)
	db := s.Operator(t)
	if st := keyring(t, db); !st.ReadOnly {
		t.Fatalf("got %+v", st)
	}
	file := digest(t, s)
	window(t, db)
	if err := db.RotateMasterKeys(budget(t)); err != nil {
		t.Fatalf("MySQL got better, and the check of the mount may be too strict: %v", err)
	}
	if digest(t, s) == file {
		t.Error("the keyring is the same")
	}
}

func TestCoverage(t *testing.T) {
	s := mysqltest.Start(t, encrypted)
	db := s.Sidecar(t)
	// A replica never gets the statement from its own sidecar: it would be a transaction that nobody else has.
	if err := db.EncryptSystemTablespaces(budget(t)); !errors.Is(err, mysql.ErrNotOpen) {
		t.Errorf("on a fenced server: %v", err)
	}
	operator := s.Operator(t)
	if err := operator.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.EncryptSystemTablespaces(budget(t)); !errors.Is(err, mysql.ErrNotOpen) {
		t.Errorf("in a window: %v", err)
	}
	if st := status(t, operator); !st.Executed.IsEmpty() {
		t.Errorf("a replica has a transaction of its own: %s", st.Executed)
	}
	s.Exec(t, "SET GLOBAL read_only = OFF", "SET GLOBAL offline_mode = OFF",
		"CREATE DATABASE app", "CREATE TABLE app.t (id INT)", "CREATE TABLE app.plain (id INT) ENCRYPTION = 'N'", "CREATE TABLE app.clear (id INT) ENCRYPTION = 'N'",
		"CREATE TABLESPACE shared ENCRYPTION = 'N'")
	got := coverage(t, db)
	want := mysql.Coverage{Unencrypted: 3, RedoLog: true, UndoLog: got.UndoLog, BinaryLog: true}
	if diff := diffCoverage(want, got); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		if err := db.EncryptSystemTablespaces(budget(t)); err != nil {
			t.Fatal(err)
		}
	}
	s.Exec(t, "DROP TABLE app.plain, app.clear", "DROP TABLESPACE shared")
	got = coverage(t, db)
	want = mysql.Coverage{SystemTablespace: true, RedoLog: true, UndoLog: got.UndoLog, BinaryLog: true}
	if diff := diffCoverage(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCoverageOfSharedTablespaces: InnoDB's system tablespace cannot be encrypted, so each table that somebody put there is in the
// clear, and is counted; in a general tablespace, that tablespace is.
func TestCoverageOfSharedTablespaces(t *testing.T) {
	s := writable(t, encrypted)
	db := s.Sidecar(t)
	before := coverage(t, db).Unencrypted
	for i, step := range []struct{ reason, statement string }{
		{"named", "CREATE TABLE app.named (id INT) TABLESPACE innodb_system ENCRYPTION = 'N'"},
		{"by a setting of the server", "SET GLOBAL innodb_file_per_table = OFF; CREATE TABLE app.setting (id INT) ENCRYPTION = 'N'"},
		{"a general tablespace", "CREATE TABLESPACE open ENCRYPTION = 'N'"},
		{"a table in it is there already", "CREATE TABLE app.general (id INT) TABLESPACE open ENCRYPTION = 'N'"},
	} {
		s.Exec(t, strings.Split(step.statement, "; ")...)
		if got, want := coverage(t, db).Unencrypted-before, []int{1, 2, 3, 3}[i]; got != want {
			t.Errorf("%s: %d in the clear, want %d", step.reason, got, want)
		}
	}
	// With the privilege check, which the operator sets, nobody gets there without TABLE_ENCRYPTION_ADMIN.
	client := s.Client(t, "app", "app")
	for _, encryption := range []string{"", "ENCRYPTION = 'N'", "ENCRYPTION = 'Y'"} {
		if _, err := client.ExecContext(t.Context(), "CREATE TABLE app.sneaked (id INT) TABLESPACE innodb_system "+encryption); err == nil {
			t.Errorf("an ordinary account made a table in the system tablespace with %q", encryption)
		}
	}
	s.Exec(t, "DROP TABLE app.named, app.setting, app.general", "DROP TABLESPACE open")
	if got := coverage(t, db).Unencrypted; got != before {
		t.Errorf("%d in the clear after all was dropped, %d before", got, before)
	}
}

func coverage(t *testing.T, db *mysql.DB) mysql.Coverage {
	t.Helper()
	c, err := db.Coverage(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCloneBetweenEncryptedServers: the recipient gets the data under a key of its own, and the same keyring opens it after a restart.
func TestCloneBetweenEncryptedServers(t *testing.T) {
	t.Parallel()
	options := mysqltest.Options{Keyring: true, TLS: true}
	donor, recipient := writable(t, options), mysqltest.Start(t, options)
	donor.Exec(t, insert)
	if err := donor.Sidecar(t).EncryptSystemTablespaces(budget(t)); err != nil {
		t.Fatal(err)
	}
	db := recipient.Operator(t)
	own, keys := keyring(t, db).Keys, keyring(t, donor.Operator(t)).Keys
	if err := db.Clone(budget(t), donorOf(donor)); err != nil {
		t.Fatal(err)
	}
	backAfter(t, recipient, 0)
	for _, k := range keyring(t, db).Keys {
		if slices.Contains(keys, k) {
			t.Errorf("a key of the donor: %v", k)
		}
	}
	for _, k := range own {
		if !slices.Contains(keyring(t, db).Keys, k) {
			t.Errorf("its own key is gone: %v", k)
		}
	}
	recipient.Seal(t, true)
	if n := count(t, recipient); n != 4 {
		t.Errorf("%d rows", n)
	}
	if c := coverage(t, recipient.Sidecar(t)); !c.SystemTablespace || c.Unencrypted != 0 {
		t.Errorf("got %+v", c)
	}
}

func diffCoverage(want, got mysql.Coverage) string {
	if diff := cmp.Diff(want, got); diff != "" {
		return "coverage (-want +got):\n" + diff
	}
	return ""
}
