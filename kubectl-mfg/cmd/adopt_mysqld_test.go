// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package cmd

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
	"github.com/mysql-mfg/mfg/kubectl-mfg/adopt"
)

// TestPlaintextIsListedAndGone: what a real server holds in the clear is listed by names of every kind, its statements are
// what it takes, and nothing is left in the clear afterwards: neither files nor new tables.
func TestPlaintextIsListedAndGone(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Keyring: true})
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF", "SET SESSION default_table_encryption = OFF",
		"CREATE SCHEMA `my-db`", "CREATE SCHEMA plain", "CREATE SCHEMA `d``b/x`", "CREATE SCHEMA encrypted DEFAULT ENCRYPTION='Y'",
		"CREATE TABLE `my-db`.`t 1` (a INT PRIMARY KEY)", "CREATE TABLE `my-db`.`up#p#x` (a INT PRIMARY KEY)",
		"CREATE TABLE `d``b/x`.`ta'\"\\\\b/le` (a INT PRIMARY KEY)", "CREATE TABLE plain.`grüße` (a INT PRIMARY KEY)",
		"CREATE TABLE plain.part (a INT, b INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 2 "+
			"(PARTITION p0 VALUES LESS THAN (10), PARTITION P1 VALUES LESS THAN MAXVALUE)",
		"CREATE TABLE plain.words (a INT PRIMARY KEY, b TEXT, FULLTEXT (b))",
		"CREATE TABLESPACE `gen ts` ADD DATAFILE 'gen.ibd' ENGINE=InnoDB", "CREATE TABLE plain.shared (a INT) TABLESPACE `gen ts`",
		"CREATE TABLE plain.`in-system` (a INT) TABLESPACE innodb_system",
		"CREATE TABLE plain.parent (a INT PRIMARY KEY)", "CREATE TABLE plain.child (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES plain.parent (a))",
		"CREATE TABLE plain.heap (a INT) ENGINE=MyISAM", "CREATE TABLE encrypted.t (a INT)")
	items := plaintextOf(t, s)
	var statements []string
	for _, item := range items {
		if item.Kind == adopt.PlainUnknown {
			t.Errorf("of nobody: %+v", item)
		}
		if item.LookFirst != "" && item.Name != "heap" {
			t.Errorf("not to be run unseen: %+v", item)
		}
		statements = append(statements, item.Statement)
	}
	if len(items) != 3+1+9+1 {
		t.Errorf("%d items: %s", len(items), strings.Join(statements, "\n"))
	}
	s.Exec(t, statements...)
	// What is made from now on in a schema that was there is encrypted too.
	s.Exec(t, "CREATE TABLE plain.later (a INT)")
	if left := plaintextOf(t, s); len(left) != 0 {
		t.Errorf("still in the clear: %+v", left)
	}
}

// plaintextOf asks a server as the plugin does.
func plaintextOf(t *testing.T, s *mysqltest.Server) []adopt.PlaintextItem {
	t.Helper()
	var raw strings.Builder
	for _, query := range adopt.PlainQueries {
		rows, err := s.Root(t).QueryContext(t.Context(), query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			raw.WriteString(line + "\n")
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
	}
	read, err := adopt.ReadRows([]byte(raw.String()))
	if err != nil {
		t.Fatal(err)
	}
	return adopt.InTheClear(read)
}
