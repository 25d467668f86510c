// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package application_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/application"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

var account = application.Account{User: "app-1", Password: `p'a\s;s`, Database: "shop_a"}

// login is the account where clients log in.
func login(s *mysqltest.Server, password string) mysql.Target {
	t := s.Target(account.User, password)
	t.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
	return t
}

// TestTheStatementsFitTheInitialisation: a data directory that is made with them is whole.
func TestTheStatementsFitTheInitialisation(t *testing.T) {
	for name, c := range map[string]struct {
		length int
		ok     bool
	}{"usual": {0, true}, "longest": {256, true}, "longer": {257, false}} {
		t.Run(name, func(t *testing.T) {
			a := account
			if c.length > 0 {
				a.Password = strings.Repeat("p", c.length)
			}
			if err := a.Validate(); (err == nil) != c.ok {
				t.Errorf("valid: %v", err)
			}
			err := mysqltest.InitializeDatadir(t.Context(), t.TempDir(), append(mysql.AccountStatements(mysqltest.Passwords, false), application.Statements(a)...))
			if (err == nil) != c.ok {
				t.Fatal(err)
			}
		})
	}
}

func TestTheDatabaseIsMadeOnTheOpenServer(t *testing.T) {
	for name, config := range map[string][]string{"usual": nil, "partial revokes": {"partial_revokes=ON"}} {
		t.Run(name, func(t *testing.T) { makesTheDatabase(t, config) })
	}
}

func makesTheDatabase(t *testing.T, config []string) {
	s := mysqltest.Start(t, mysqltest.Options{Config: config})
	see := func(password string) application.Look {
		t.Helper()
		look, err := application.See(t.Context(), login(s, password), account.Database)
		if err != nil {
			t.Fatal(err)
		}
		return look
	}
	if got := see(account.Password); got.Accepts {
		t.Fatal("there is no such account yet")
	}
	s.Exec(t, append([]string{"SET GLOBAL super_read_only = OFF", "SET SESSION sql_log_bin = 0", "SET SESSION sql_mode = ''"}, application.Statements(account)...)...)
	s.Exec(t, "SET GLOBAL super_read_only = ON")
	before := executed(t, s)
	if before != "" {
		t.Errorf("the account came with transactions: %s", before)
	}
	if got := see(account.Password); !got.Accepts || got.Database {
		t.Errorf("before it is made: %+v", got)
	}
	if see("another").Accepts {
		t.Error("another password is taken")
	}
	if err := application.Make(t.Context(), login(s, account.Password), account.Database); !errors.Is(err, mysql.ErrNotOpen) {
		t.Errorf("a server that is not open: %v", err)
	}
	if got := executed(t, s); got != before {
		t.Errorf("a server that is not open has a transaction: %s", got)
	}
	if err := s.Sidecar(t).OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := application.Make(t.Context(), login(s, account.Password), account.Database); err != nil {
		t.Fatal(err)
	}
	if got := see(account.Password); !got.Database {
		t.Error("the database is not there")
	}
	if executed(t, s) == before {
		t.Error("the database is no transaction: the other sites would never get it")
	}
	// An underscore stands for itself alone.
	if err := application.Make(t.Context(), login(s, account.Password), "shopxa"); !errors.Is(err, application.ErrNoRight) {
		t.Errorf("a database that is another one's: %v", err)
	}
}

func executed(t *testing.T, s *mysqltest.Server) string {
	t.Helper()
	st, err := s.Operator(t).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Executed.String()
}
