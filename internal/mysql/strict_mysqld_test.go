// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/bounded"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestWhatLimitsAccountsDoesNotStopOurs: neither those of a new server nor those that an earlier build made, once they have their rights.
func TestWhatLimitsAccountsDoesNotStopOurs(t *testing.T) {
	for name, before := range map[string][]string{
		"a new server": nil,
		"one of an earlier build": append([]string{
			"ALTER USER mfg_operator, mfg_sidecar, mfg_replication, mfg_clone WITH MAX_USER_CONNECTIONS 0 PASSWORD EXPIRE DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
			"ALTER USER mfg_probe, mfg_backup PASSWORD REQUIRE CURRENT DEFAULT",
		}, mysql.RightsStatements(mysqltest.Passwords, false)...),
	} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Start(t, mysqltest.Options{})
			if err := s.Sidecar(t).OpenWrites(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Exec(t, append(append([]string{"SET SESSION sql_log_bin = 0"}, before...),
				"UPDATE mysql.user SET password_last_changed = NOW() - INTERVAL 9 DAY WHERE user LIKE 'mfg%'", "FLUSH PRIVILEGES",
				"SET GLOBAL default_password_lifetime = 1", "SET GLOBAL password_require_current = ON", "SET GLOBAL max_user_connections = 1")...)
			for range 3 { // each keeps a connection
				status(t, s.Sidecar(t))
				status(t, s.Operator(t))
			}
			if _, err := s.Sidecar(t).Fence(budget(t), mysql.FenceOptions{}); err != nil {
				t.Errorf("the fence: %v", err)
			}
			if err := s.Sidecar(t).OpenWrites(budget(t)); err != nil {
				t.Errorf("the opening: %v", err)
			}
			for _, a := range append(ownAccounts(), account{mysql.AccountBackup, mysql.BackupPassword(mysqltest.Passwords.Clone), true}) {
				if err := mysql.IntroducePassword(t.Context(), a.target(s, a.password), nextPassword); err != nil {
					t.Errorf("%s: %v", a.name, err)
				}
				if err := mysql.RetirePasswords(t.Context(), a.target(s, nextPassword)); err != nil {
					t.Errorf("%s: %v", a.name, err)
				}
			}
		})
	}
}

// TestWhatLimitsStatementsOfClientsDoesNotStopLooks: one that is cut would pass for a server that fails. Every account of ours may say so.
func TestWhatLimitsStatementsOfClientsDoesNotStopLooks(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Config: []string{"max_execution_time=1", "max_join_size=1"}})
	db := s.Operator(t)
	status(t, db)
	status(t, s.Sidecar(t))
	const never = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1"
	if applied, err := db.WaitApplied(budget(t), gtid.MustParse(never), 100*time.Millisecond); err != nil || applied {
		t.Errorf("a look that takes longer: %t, %v", applied, err)
	}
	for _, a := range ownAccounts() {
		if !accepts(t, a.target(s, a.password)) {
			t.Errorf("%s is refused", a.name)
		}
	}
}

// TestAnswersAreBounded shows that the driver's reader ends where bounded says, with and without TLS, and that a backup may read more.
func TestAnswersAreBounded(t *testing.T) {
	for name, opts := range map[string]mysqltest.Options{"plain": {}, "tls": {TLS: true}} {
		t.Run(name, func(t *testing.T) {
			s := mysqltest.Start(t, opts)
			target := s.Target(mysql.AccountOperator, mysqltest.Passwords.Operator)
			read := func(unbounded bool, bytes int) error {
				target.Unbounded = unbounded
				pool, err := mysql.Pool(target)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = pool.Close() }()
				var text sql.RawBytes
				rows, err := pool.QueryContext(budget(t), "SELECT REPEAT('x', ?)", bytes)
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				for rows.Next() {
					if err := rows.Scan(&text); err != nil {
						return err
					}
				}
				return rows.Err()
			}
			if err := read(false, bounded.Most-10_000); err != nil {
				t.Errorf("an answer that is long: %v", err)
			}
			if err := read(false, bounded.Most+10_000); err == nil {
				t.Error("an answer that is too long was read")
			}
			if err := read(true, bounded.Most+10_000); err != nil {
				t.Errorf("of a program that may: %v", err)
			}
		})
	}
}
