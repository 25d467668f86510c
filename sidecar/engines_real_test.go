// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package main

import (
	"path/filepath"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestRealEngines: what mysqld leaves on disk of tables outside InnoDB is what is looked for.
func TestRealEngines(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	s.Exec(t, "SET GLOBAL read_only = OFF", "SET GLOBAL general_log = ON", "SET GLOBAL log_output = 'TABLE'",
		"CREATE DATABASE `in-between`", "USE `in-between`", "CREATE TABLE ok (id INT PRIMARY KEY)", "INSERT INTO ok VALUES (1)",
		"CREATE TABLE isam (id INT) ENGINE=MyISAM", "INSERT INTO isam VALUES (1)", "CREATE TABLE is_am_2 (id INT) ENGINE=MyISAM",
		"CREATE TABLE csv (id INT NOT NULL) ENGINE=CSV", "INSERT INTO csv VALUES (1)", "CREATE TABLE `ar/chive` (id INT) ENGINE=ARCHIVE", "INSERT INTO `ar/chive` VALUES (1)",
		"CREATE TABLE hole (id INT) ENGINE=BLACKHOLE", "CREATE TABLE mem (id INT) ENGINE=MEMORY", "INSERT INTO mem VALUES (1)",
		"CREATE TABLE mrg (id INT) ENGINE=MERGE UNION=(isam)", "FLUSH TABLES")
	got, err := look(filepath.Join(s.Dir, "data"))
	if want := (wire.EngineReport{Tables: 4, WithRows: 3}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
