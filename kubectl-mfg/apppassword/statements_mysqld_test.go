// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package apppassword

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestTheStatementsOnARealServer: an account gets another password beside its own, and never a third, which would end the first; what is ended is the
// older one.
func TestTheStatementsOnARealServer(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF", `CREATE USER 'app'@'%' IDENTIFIED BY 'o\\ne'`)
	run := func(statements []string) (err error) {
		conn, cerr := s.Root(t).Conn(t.Context())
		if cerr != nil {
			t.Fatal(cerr)
		}
		// The connection is not used again: in the client too each run has a session of its own, and the lock ends with it.
		defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }()
		for _, statement := range statements {
			if _, err = conn.ExecContext(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	}
	takes := func(password string) bool { return s.Client(t, "app", password).PingContext(t.Context()) == nil }
	look := func() account {
		var a account
		var exists, retained, closed int
		if err := s.Root(t).QueryRowContext(t.Context(), lookStatement("app")).Scan(&exists, &retained, &closed, &a.sessions); err != nil {
			t.Fatal(err)
		}
		a.exists, a.retained, a.open = exists > 0, retained > 0, closed == 0
		return a
	}
	if a := look(); !a.exists || a.retained || !a.open {
		t.Errorf("before: %+v", a)
	}
	if err := run(introduceStatements("app", `t'w\o`)); err != nil {
		t.Fatal(err)
	}
	if a := look(); !a.retained || !takes(`o\ne`) || !takes(`t'w\o`) {
		t.Errorf("with two passwords: %+v, the old one is taken: %t, the new one: %t", a, takes(`o\ne`), takes(`t'w\o`))
	}
	var refused *mysql.MySQLError
	if err := run(introduceStatements("app", "three")); !errors.As(err, &refused) || refused.Number != numberNotFree {
		t.Errorf("a third password: %v", err)
	}
	if err := run(introduceStatements("nobody", "three")); !errors.As(err, &refused) || refused.Number != numberNotFree {
		t.Errorf("an account that is not there: %v", err)
	}
	if takes("three") || !takes(`o\ne`) {
		t.Error("the third password was given, and ended the first")
	}
	// The Secret was put back to the first: that becomes its own one, and the other goes.
	if err := run(ownStatements("app", `o\ne`)); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{discardStatement("app")}); err != nil {
		t.Fatal(err)
	}
	if a := look(); a.retained || !takes(`o\ne`) || takes(`t'w\o`) {
		t.Errorf("after the end of the older one: %+v", a)
	}

	holder, err := s.Root(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close() }()
	var got sql.NullInt64
	if err := holder.QueryRowContext(t.Context(), "SELECT GET_LOCK('"+lock+"', 0)").Scan(&got); err != nil || got.Int64 != 1 {
		t.Fatalf("%v %v", got, err)
	}
	if err := run(introduceStatements("app", "four")); !errors.As(err, &refused) || refused.Number != numberNotFree {
		t.Errorf("while another one is at it: %v", err)
	}
}

// TestRetireUnderPasswordHistoryOnARealServer: a server that remembers passwords refuses the older one of two and the primary one alike, and its
// hash tells which is which. Once the account is let go back, the older one may be kept.
func TestRetireUnderPasswordHistoryOnARealServer(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	s.Exec(t, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF", "SET GLOBAL password_history = 3", "CREATE USER 'app'@'%' IDENTIFIED BY 'one'",
		"ALTER USER 'app'@'%' IDENTIFIED BY 'two' RETAIN CURRENT PASSWORD")
	takes := func(password string) bool { return s.Client(t, "app", password).PingContext(t.Context()) == nil }
	own := ownStatements("app", "one")[1]
	for _, statement := range []string{own, ownStatements("app", "two")[1]} {
		var refused *mysql.MySQLError
		if _, err := s.Root(t).ExecContext(t.Context(), statement); !errors.As(err, &refused) || refused.Number != numberReused {
			t.Errorf("a password that the server remembers: %v", err)
		}
	}
	var plugin, stored string
	if err := s.Root(t).QueryRowContext(t.Context(), primaryStatement("app")).Scan(&plugin, &stored); err != nil || plugin != pluginHashed {
		t.Fatal(plugin, err)
	}
	raw, err := hex.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{"one": false, "two": true, "three": false} {
		if is, understood := isHashOf(string(raw), password); is != want || !understood {
			t.Errorf("%s is the primary one: %t, understood: %t", password, is, understood)
		}
	}
	s.Exec(t, "ALTER USER 'app'@'%' PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 0 DAY", own, discardStatement("app"), "ALTER USER 'app'@'%' PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT")
	if !takes("one") || takes("two") {
		t.Errorf("after it one is taken: %t, two: %t", takes("one"), takes("two"))
	}
}
