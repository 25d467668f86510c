// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// site has the load make the data directory of a site.
func (j *job) site(keyring bool) {
	j.t.Helper()
	accounts := filepath.Join(j.dir, "accounts")
	if err := os.MkdirAll(accounts, 0o755); err != nil {
		j.t.Fatal(err)
	}
	p := mysqltest.Passwords
	for name, text := range map[string]string{"operator": p.Operator, "replication": p.Replication, "clone": p.Clone, "sidecar": p.Sidecar, "root": p.Root} {
		if err := os.WriteFile(filepath.Join(accounts, name), []byte(text+"\n"), 0o644); err != nil {
			j.t.Fatal(err)
		}
	}
	conf := "[mysqld]\nsocket=/srv/mysqld.sock\nserver_id=7\ngtid_mode=ON\nenforce_gtid_consistency=ON\nlog_bin=binlog\n" +
		"super_read_only=ON\nread_only=ON\noffline_mode=ON\nskip_replica_start=ON\nrequire_secure_transport=ON\nplugin_load_add=mysql_clone.so\n" +
		// What spec.mysqlConf may set for clients; a table of the backup has no key.
		"max_execution_time=1\nsql_require_primary_key=ON\nsql_generate_invisible_primary_key=ON\ndisabled_storage_engines=MyISAM,ARCHIVE\n"
	if keyring {
		// As on an encrypted site: temporary tablespaces are in memory, and what a killed server leaves there outlives a container.
		conf += strings.Join(mysqltest.Encrypted, "\n") + "\ninnodb_temp_tablespaces_dir=/srv/tmp\ninnodb_temp_data_file_path=/srv/tmp/ibtmp1:12M:autoextend\n"
	}
	if err := os.WriteFile(filepath.Join(j.dir, "my.cnf"), []byte(conf), 0o644); err != nil {
		j.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(j.dir, "volume"), 0o777); err != nil {
		j.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(j.dir, "volume"), 0o777); err != nil {
		j.t.Fatal(err)
	}
	j.config.Server.Dir, j.config.Server.DefaultsFile, j.config.AccountsDir = "/srv/volume/data.restored", "/srv/my.cnf", "/srv/accounts"
}

// ours fails unless our accounts are those of the group.
func ours(t *testing.T, j *job) {
	t.Helper()
	taken, err := mysql.Accepts(t.Context(), mysql.Target{Addr: filepath.Join(j.dir, "opened.sock"), User: mysql.AccountOperator, Password: mysqltest.Passwords.Operator})
	if err != nil || !taken {
		t.Errorf("the operator's account: %t, %v", taken, err)
	}
}

func TestLogicalRoundTrip(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, nasty...)
	j := newJob(t, false).from(s)
	made := j.must("make")
	if made.GTIDExecuted != executed(t, s.Root(t)) || !made.Encrypted || made.Rows == 0 {
		t.Errorf("made: %+v, executed %s", made, executed(t, s.Root(t)))
	}
	j.site(false)
	loaded := j.must("load")
	if loaded.Rows != made.Rows || loaded.GTIDExecuted != made.GTIDExecuted || len(loaded.Warnings) != 1 {
		t.Errorf("loaded: %+v", loaded)
	}
	db := j.opened("/srv/volume/data.restored", false)
	same(t, digests(t, s.Root(t)), digests(t, db))
	if got := executed(t, db); got != made.GTIDExecuted {
		t.Errorf("executed %s", got)
	}
	ours(t, j)
	j.config.Server.Dir, j.config.Server.DefaultsFile = "/srv/scratch/data", ""
	j.config.Query = "SELECT COUNT(*) FROM `we\"ird d'b ü日`.bytes"
	verified := j.must("verify")
	if verified.RestoreSeconds <= 0 || verified.Tables != made.Tables {
		t.Errorf("verified: %+v", verified)
	}
	if left, _ := os.ReadDir(filepath.Join(j.dir, "scratch", "data")); len(left) > 0 {
		t.Errorf("the verification left %d files", len(left))
	}
	j.must("list")
}

// TestAnAccountWithoutItsPlugin: no restored server has a plugin that somebody installed, and that keeps no data from coming back. Nor does a
// table of an engine that mysqldump writes no rows of.
func TestAnAccountWithoutItsPlugin(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE shop", "CREATE TABLE shop.kept (id INT PRIMARY KEY) ENGINE = MyISAM", "INSERT INTO shop.kept VALUES (1)",
		"CREATE TABLE shop.all_kept (id INT PRIMARY KEY) ENGINE = MERGE UNION = (shop.kept)",
		"INSTALL PLUGIN mysql_no_login SONAME 'mysql_no_login.so'", "CREATE USER 'batch'@'%' IDENTIFIED WITH mysql_no_login",
		"GRANT SELECT ON shop.* TO 'batch'@'%'", "CREATE USER 'app'@'%' IDENTIFIED BY 'x'", "GRANT SELECT ON shop.* TO 'app'@'%'")
	j := newJob(t, false).from(s)
	j.must("make")
	j.site(false)
	loaded := j.must("load")
	if len(loaded.Warnings) == 0 || !strings.Contains(strings.Join(loaded.Warnings, " "), "error 1524") {
		t.Errorf("nobody is told of the account: %q", loaded.Warnings)
	}
	var rows, accounts int
	if err := j.opened("/srv/volume/data.restored", false).QueryRowContext(t.Context(),
		"SELECT (SELECT COUNT(*) FROM shop.all_kept), (SELECT COUNT(*) FROM mysql.user WHERE user IN ('app', 'batch'))").Scan(&rows, &accounts); err != nil || rows != 1 || accounts != 1 {
		t.Errorf("%d rows, %d accounts: %v", rows, accounts, err)
	}
}

func TestPhysicalRoundTrip(t *testing.T) {
	for name, keyring := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := origin(t, mysqltest.Options{Keyring: keyring})
			s.Exec(t, nasty...)
			j := newJob(t, keyring).from(s)
			j.config.Method = bucket.Physical
			made := j.must("make")
			if made.GTIDExecuted != executed(t, s.Root(t)) || made.Rows == 0 {
				t.Errorf("made: %+v, executed %s", made, executed(t, s.Root(t)))
			}
			if err := os.RemoveAll(filepath.Join(j.dir, "keyring", "keyring")); err != nil {
				t.Fatal(err)
			}
			j.must("verify")
			j.site(keyring)
			if err := os.RemoveAll(filepath.Join(j.dir, "keyring", "keyring")); err != nil {
				t.Fatal(err)
			}
			j.must("load")
			db := j.opened("/srv/volume/data.restored", keyring)
			same(t, digests(t, s.Root(t)), digests(t, db))
			if got := executed(t, db); got != made.GTIDExecuted {
				t.Errorf("executed %s", got)
			}
			ours(t, j)
			var uuid string
			if err := db.QueryRowContext(t.Context(), "SELECT @@server_uuid").Scan(&uuid); err != nil || strings.Contains(made.GTIDExecuted, uuid) {
				t.Errorf("server_uuid %s: %v", uuid, err)
			}
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE empty_db.after_restore (id INT)"); err != nil {
				t.Error(err)
			}
		})
	}
}
