// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package job_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// invalid fails unless the view is there, is not valid, and shows what is wanted of its definition.
func invalid(t *testing.T, db *sql.DB, view, shows string) {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+view).Scan(&n); mysqld.Number(err) != 1356 {
		t.Errorf("%s: %v", view, err)
	}
	var name, create, client, collation string
	if err := db.QueryRowContext(t.Context(), "SHOW CREATE VIEW "+view).Scan(&name, &create, &client, &collation); err != nil || !strings.Contains(create, shows) {
		t.Errorf("%s: %s, %v, want %s in it", view, create, err, shows)
	}
}

// A view whose table was dropped keeps no backup from being made, and is there again after a restore: not valid, as on the site, with the
// definition that it had. So it is after the restore of a backup of what was restored.
func TestViewsThatAreNotValid(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE `we\"ird d'b ü日`", "USE `we\"ird d'b ü日`", "CREATE TABLE t (id INT PRIMARY KEY, `it's` INT)", "CREATE TABLE stays (id INT PRIMARY KEY)",
		"INSERT INTO stays VALUES (1), (2)", "CREATE VIEW `v ü` AS SELECT `it's`, 'a\\\\b''日' AS x FROM t WHERE id > 41", "CREATE VIEW above AS SELECT * FROM `v ü`",
		"CREATE VIEW valid AS SELECT * FROM stays", "CREATE USER poor@'%'", "CREATE DEFINER = poor@'%' SQL SECURITY DEFINER VIEW poors AS SELECT id FROM stays",
		"CREATE USER app@'%'", "GRANT SELECT ON `we\"ird d'b ü日`.`v ü` TO app@'%'", "DROP TABLE t")
	j := newJob(t, false).from(s)
	made := j.must("make")
	if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "above") || made.Rows != 2 {
		t.Errorf("made: %+v", made)
	}
	j.site(false)
	if loaded := j.must("load"); len(loaded.Warnings) > 0 || loaded.GTIDExecuted != made.GTIDExecuted {
		t.Errorf("loaded: %+v", loaded)
	}
	db := j.opened("/srv/volume/data.restored", false)
	invalid(t, db, "`we\"ird d'b ü日`.`v ü`", "> 41")
	invalid(t, db, "`we\"ird d'b ü日`.above", "v ü")
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM `we\"ird d'b ü日`.valid").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows of a view that is valid: %v", n, err)
	}
	var tables int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema LIKE 'we%'").Scan(&tables); err != nil || tables != 5 {
		t.Errorf("%d tables and views: %v", tables, err)
	}
	if got := executed(t, db); got != made.GTIDExecuted {
		t.Errorf("executed %s, want %s", got, made.GTIDExecuted)
	}
	const shown = "SHOW CREATE VIEW `we\"ird d'b ü日`.above"
	// The next backup is of views that came back so. Its restore does not wrap them once more.
	var name, first, second, client, collation string
	if err := db.QueryRowContext(t.Context(), shown).Scan(&name, &first, &client, &collation); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "USE `we\"ird d'b ü日`", "CREATE TABLE `what this view needs was not there` (id INT PRIMARY KEY)", "DROP VIEW above", first, "DROP TABLE `what this view needs was not there`")
	k := newJob(t, false).from(s)
	k.must("make")
	k.site(false)
	k.must("load")
	if err := k.opened("/srv/volume/data.restored", false).QueryRowContext(t.Context(), shown).Scan(&name, &second, &client, &collation); err != nil || second != first {
		t.Errorf("%v, %s, want %s", err, second, first)
	}
	if _, err := db.ExecContext(t.Context(), "DROP VIEW `we\"ird d'b ü日`.`v ü`"); err != nil {
		t.Errorf("what drops it does not find it: %v", err)
	}
}

// mysqldump is told what to leave out as schema.name. Where that might name a table too, nothing is left out: the error says what to do.
func TestAViewThatIsNotValidWithADotInItsName(t *testing.T) {
	t.Parallel()
	s := origin(t, mysqltest.Options{})
	s.Exec(t, "CREATE DATABASE `a.b`", "CREATE DATABASE a", "CREATE TABLE a.`b.c` (id INT PRIMARY KEY)", "CREATE TABLE `a.b`.t (id INT)", "CREATE VIEW `a.b`.c AS SELECT * FROM `a.b`.t", "DROP TABLE `a.b`.t")
	if res := newJob(t, false).from(s).fails("make", terms.DumpFailed, terms.ExitSource); !strings.Contains(res.Message, "DROP VIEW `a.b`.`c`") {
		t.Errorf("%+v", res)
	}
}
