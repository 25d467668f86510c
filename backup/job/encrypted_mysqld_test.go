// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"bytes"
	"database/sql"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// holding are the files below a folder that hold a text.
func holding(root, text string) (found []string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "backup" {
			return nil //nolint:nilerr // a file of a running server that is gone by now holds nothing
		}
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(text)) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// encryptedJob is a job of an encrypted group, with the storage and the identity of another one.
func encryptedJob(t *testing.T, other *job) *job {
	t.Helper()
	j := newJob(t, true)
	for _, name := range []string{"bucket", "identity"} {
		if out, err := exec.CommandContext(t.Context(), "cp", "-aT", filepath.Join(other.dir, name), filepath.Join(j.dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	j.identity, j.config.Recipients = other.identity, other.config.Recipients
	return j
}

var encryptionClause = regexp.MustCompile(`( /\*!80016)? ENCRYPTION='[YN]'( \*/)?`)

// sameButEncrypted compares digests but for what they say of encryption.
func sameButEncrypted(t *testing.T, want, got map[string]string) {
	t.Helper()
	for _, all := range []map[string]string{want, got} {
		for name, text := range all {
			all[name] = encryptionClause.ReplaceAllString(text, "")
		}
	}
	same(t, want, got)
}

// allEncrypted fails if a database, a tablespace or a file in a folder is in the clear.
func allEncrypted(t *testing.T, db *sql.DB, folder string) {
	t.Helper()
	for what, query := range map[string]string{
		"databases":   "SELECT IFNULL(GROUP_CONCAT(schema_name), '') FROM information_schema.schemata WHERE default_encryption <> 'YES' AND schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')",
		"tablespaces": "SELECT IFNULL(GROUP_CONCAT(name), '') FROM information_schema.innodb_tablespaces WHERE encryption <> 'Y' AND space_type IN ('Single', 'General') AND name NOT IN ('mysql', 'sys/sys_config')",
	} {
		var plain string
		if err := db.QueryRowContext(t.Context(), query).Scan(&plain); err != nil || plain != "" {
			t.Errorf("%s in the clear: %s, %v", what, plain, err)
		}
	}
	if found := holding(folder, marker); len(found) > 0 {
		t.Errorf("the marker is in %v", found)
	}
}

// Whatever a plain group chose, what a Logical backup brings from it into an encrypted group is encrypted, and so is what is made there later.
// Nothing of it was on the disk in the clear before. The scratch server of a verification is alike.
func TestAPlainGroupIntoAnEncryptedOne(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, nasty...)
	s.Exec(t, "CREATE DATABASE chosen ENCRYPTION = 'Y'", "CREATE TABLE chosen.plain (t TEXT COMMENT 'ENCRYPTION=''N''') ENCRYPTION = 'N'", "INSERT INTO chosen.plain VALUES ('"+marker+"')")
	plain := newJob(t, false).from(s)
	made := plain.must("make")
	j := encryptedJob(t, plain)
	j.must("verify")
	j.site(true)
	if err := os.RemoveAll(filepath.Join(j.dir, "keyring", "keyring")); err != nil {
		t.Fatal(err)
	}
	if loaded := j.must("load"); loaded.Rows != made.Rows || loaded.GTIDExecuted != made.GTIDExecuted {
		t.Errorf("loaded: %+v", loaded)
	}
	db := j.opened("/srv/volume/data.restored", true)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE empty_db.later (t TEXT)"); err != nil {
		t.Error(err)
	}
	allEncrypted(t, db, j.dir)
	if _, err := db.ExecContext(t.Context(), "DROP TABLE empty_db.later"); err != nil {
		t.Error(err)
	}
	sameButEncrypted(t, digests(t, s.Root(t)), digests(t, db))
}

// What an encrypted group has in the clear by choice, its own backup brings back as it was: a table in the system tablespace cannot be encrypted, and
// the backup must not be lost for it.
func TestAnEncryptedGroupKeepsWhatItChose(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{Keyring: true})
	s.Exec(t, "CREATE DATABASE d", "CREATE TABLE d.hidden (t TEXT)", "CREATE TABLE d.chosen (t TEXT) ENCRYPTION = 'N'",
		"CREATE TABLE d.stuck (id INT) TABLESPACE innodb_system ENCRYPTION = 'N'", "CREATE DATABASE open ENCRYPTION = 'N'", "CREATE TABLE open.t (id INT)",
		"INSERT INTO d.stuck VALUES (1)", "CREATE TABLE d.mine (id INT) ENGINE = MyISAM ENCRYPTION = 'N'", "INSERT INTO d.mine VALUES (1)")
	j := newJob(t, true).from(s)
	made := j.must("make")
	j.must("verify")
	j.site(true)
	if err := os.RemoveAll(filepath.Join(j.dir, "keyring", "keyring")); err != nil {
		t.Fatal(err)
	}
	if loaded := j.must("load"); loaded.Rows != made.Rows {
		t.Errorf("loaded: %+v", loaded)
	}
	same(t, digests(t, s.Root(t)), digests(t, j.opened("/srv/volume/data.restored", true)))
}

// What archived logs of a plain group make is encrypted before the group opens. A table that InnoDB cannot encrypt is refused, and people are
// told of one of another engine.
func TestPlainLogsIntoAnEncryptedGroup(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 11, false, "a")
	h.write("", "CREATE DATABASE d")
	h.some(5)
	h.backup("a", "first", bucket.Logical)
	for _, statement := range []string{
		"CREATE DATABASE e", "CREATE TABLE e.made (at DATE NOT NULL, t TEXT)", "INSERT INTO e.made VALUES ('2024-02-28', '" + marker + "')",
		"CREATE TABLE e.parts (id INT) PARTITION BY HASH (id) PARTITIONS 2", "CREATE TABLE e.mine (id INT) ENGINE = MyISAM",
	} {
		h.write("", statement)
	}
	h.archive(true)
	h.job = encryptedJob(t, h.job)
	res, db := h.load(1, terms.PointInTime{Latest: true}, true)
	allEncrypted(t, db, filepath.Join(h.job.dir, "volume", "p1.restored", "e"))
	sameButEncrypted(t, digests(t, h.sites["a"].Root(t)), digests(t, db))
	if !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, "e.mine") }) {
		t.Errorf("nobody is told of the table that is in the clear: %q", res.Warnings)
	}
	h.write("", "CREATE TABLE e.stuck (id INT) TABLESPACE innodb_system")
	h.archive(true)
	h.job.config.Backup, h.job.config.Server.Dir = "", "/srv/volume/p2.restored"
	h.job.fails("load", terms.LoadFailed, terms.ExitFailed)
}
