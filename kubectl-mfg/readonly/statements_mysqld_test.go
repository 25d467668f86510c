// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package readonly

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
)

// TestTheStatementsOnARealServer: the account reads what it was given, and neither writes nor reads anything else, also on a server that remembers
// passwords or has partial_revokes.
func TestTheStatementsOnARealServer(t *testing.T) {
	for name, config := range map[string][]string{"usual": nil, "partial revokes": {"partial_revokes=ON"}} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Start(t, mysqltest.Options{Config: config})
			s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF", "SET GLOBAL password_history = 3",
				"CREATE DATABASE shop_a", "CREATE DATABASE shopxa", "CREATE TABLE shop_a.t (id INT PRIMARY KEY)", "CREATE TABLE shopxa.t (id INT PRIMARY KEY)", "INSERT INTO shop_a.t VALUES (1)")
			look := func() seen {
				t.Helper()
				var n [3]int
				statements := lookStatements([]string{"shop_a", "it's not there"})
				for i := range n {
					if err := s.Root(t).QueryRowContext(t.Context(), statements[i]).Scan(&n[i]); err != nil {
						t.Fatal(err)
					}
				}
				var there string
				if err := s.Root(t).QueryRowContext(t.Context(), statements[lookLines]).Scan(&there); err != nil || there != "shop_a" {
					t.Errorf("databases %q: %v", there, err)
				}
				return seen{Exists: n[0] > 0, Open: n[1] == 0, PartialRevokes: n[2] > 0}
			}
			if got := look(); got.Exists || !got.Open || got.PartialRevokes != (config != nil) {
				t.Errorf("before: %+v", got)
			}
			const password = `o'n\e`
			s.Exec(t, makeStatements(look(), password, []string{"shop_a"})...)
			account := s.Client(t, mysqlclient.AccountReadOnly, password)
			reads(t, account, "SELECT COUNT(*) FROM shop_a.t", true)
			reads(t, account, "SELECT COUNT(*) FROM shopxa.t", false)
			reads(t, account, "SELECT COUNT(*) FROM mysql.user", false)
			for _, write := range []string{"INSERT INTO shop_a.t VALUES (2)", "DELETE FROM shop_a.t", "CREATE TABLE shop_a.u (id INT)", "DROP TABLE shop_a.t", "SET GLOBAL read_only = ON"} {
				var refused *mysql.MySQLError
				if _, err := account.ExecContext(t.Context(), write); !errors.As(err, &refused) {
					t.Errorf("%s: %v", write, err)
				}
			}
			// Again, with another database: the server remembers the password, and would not take it a second time.
			again := look()
			again.Accepts = true
			s.Exec(t, makeStatements(again, password, []string{"shopxa"})...)
			reads(t, account, "SELECT COUNT(*) FROM shop_a.t", false)
			reads(t, account, "SELECT COUNT(*) FROM shopxa.t", true)
			s.Exec(t, makeStatements(look(), "another", []string{"shopxa"})...)
			reads(t, s.Client(t, mysqlclient.AccountReadOnly, "another"), "SELECT COUNT(*) FROM shopxa.t", true)
			s.Exec(t, dropStatement)
			s.Exec(t, dropStatement)
			if look().Exists {
				t.Error("it is still there")
			}
		})
	}
}

func reads(t *testing.T, account *sql.DB, query string, may bool) {
	t.Helper()
	var n int
	err := account.QueryRowContext(t.Context(), query).Scan(&n)
	var refused *mysql.MySQLError
	if may && err != nil || !may && (!errors.As(err, &refused) || !strings.Contains(refused.Message, "denied")) {
		t.Errorf("%s: %v", query, err)
	}
}
