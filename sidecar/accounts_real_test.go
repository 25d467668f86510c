// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestRealLoginsI21 has a sidecar's password replaced on a real server: it tells which one it uses only once that was taken, and a connection
// that it makes at any moment of it succeeds.
func TestRealLoginsI21(t *testing.T) {
	const next = "mP1-NEXT"
	s := mysqltest.Start(t, mysqltest.Options{})
	if err := s.Sidecar(t).OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	former := mysqltest.Passwords.Sidecar
	dir := accountDir(t, map[string]string{"sidecar": former, "sidecar-known": former, "serial": "1"})
	own, err := newAccount(dir)
	if err != nil {
		t.Fatal(err)
	}
	target := s.Target(mysql.AccountSidecar, "")
	target.Passwords = own.passwords
	l := &logins{account: own, target: target, accepts: mysql.Accepts, log: slog.New(slog.DiscardHandler)}
	serial := func() int64 {
		l.look(t.Context())
		if r := l.Report(); r != nil {
			return r.Serial
		}
		return 0
	}
	connects := func(when string) {
		t.Helper()
		if _, err := mysqltest.Open(t, target).Status(t.Context()); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if serial() != 1 {
		t.Error("it does not tell of the password that it uses")
	}
	put("sidecar", next)
	put("sidecar-known", next)
	put("sidecar-previous", former)
	put("serial", "2")
	if connects("before the server has it"); serial() != 1 {
		t.Error("I21: it tells of a password that the server refuses")
	}
	if err := mysql.IntroducePassword(t.Context(), s.Target(mysql.AccountSidecar, former), next); err != nil {
		t.Fatal(err)
	}
	if connects("while both are valid"); serial() != 2 {
		t.Error("it does not tell that it has changed")
	}
	if err := mysql.RetirePasswords(t.Context(), s.Target(mysql.AccountSidecar, next)); err != nil {
		t.Fatal(err)
	}
	connects("once the former one is refused")
}
