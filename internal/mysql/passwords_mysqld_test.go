// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

const nextPassword = "mP1-NEXTNEXTNEXTNEXTNEXTNEXT"

// account is one of ours, and how it logs in.
type account struct {
	name, password string
	main           bool
}

func (a account) target(s *mysqltest.Server, password string) mysql.Target {
	t := s.Target(a.name, password)
	if a.main {
		t.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
	}
	return t
}

func ownAccounts() []account {
	p := mysqltest.Passwords
	return []account{
		{mysql.AccountOperator, p.Operator, false}, {mysql.AccountSidecar, p.Sidecar, false}, {mysql.AccountReplication, p.Replication, true},
		{mysql.AccountClone, p.Clone, true}, {mysql.AccountProbe, mysql.ProbePassword(p.Sidecar), true},
	}
}

func accepts(t *testing.T, target mysql.Target) bool {
	t.Helper()
	ok, err := mysql.Accepts(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// TestDualPasswordsThroughReplication rotates every account on the active site and looks at its replica, and at all that is written.
func TestDualPasswordsThroughReplication(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "tls"}[withTLS], func(t *testing.T) {
			dualPasswordsThroughReplication(t, withTLS)
		})
	}
}

func dualPasswordsThroughReplication(t *testing.T, withTLS bool) {
	active, replica := mysqltest.Start(t, mysqltest.Options{TLS: withTLS}), mysqltest.Start(t, mysqltest.Options{TLS: withTLS})
	if err := active.Sidecar(t).OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	general := filepath.Join(active.Dir, "data", "general.log")
	active.Exec(t, "SET GLOBAL general_log_file = 'general.log'", "SET GLOBAL general_log = ON")
	source := mysql.Source{Host: "127.0.0.1", Port: active.Port, User: mysql.AccountReplication, Password: mysqltest.Passwords.Replication}
	if err := replica.Operator(t).Follow(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	caughtUp := func() {
		t.Helper()
		st, err := active.Operator(t).Status(t.Context())
		if err != nil {
			st, err = mysqltest.Open(t, active.Target(mysql.AccountOperator, nextPassword)).Status(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		mysqltest.Eventually(t, "the replica has it", func() bool {
			var done bool
			err := replica.Root(t).QueryRowContext(t.Context(), "SELECT GTID_SUBSET(?, @@GLOBAL.gtid_executed)", st.Executed.String()).Scan(&done)
			return err == nil && done
		})
	}
	for _, a := range ownAccounts() {
		if err := mysql.IntroducePassword(t.Context(), a.target(replica, a.password), nextPassword); !errors.Is(err, mysql.ErrNotOpen) {
			t.Errorf("%s: a site that is not open is left alone, got %v", a.name, err)
		}
		for range 2 { // it may be done again
			if err := mysql.IntroducePassword(t.Context(), a.target(active, a.password), nextPassword); err != nil {
				t.Fatalf("%s: %v", a.name, err)
			}
		}
	}
	caughtUp()
	for _, s := range []*mysqltest.Server{active, replica} {
		for _, a := range ownAccounts() {
			if !accepts(t, a.target(s, a.password)) || !accepts(t, a.target(s, nextPassword)) {
				t.Errorf("%s at %d must take both passwords", a.name, s.Port)
			}
			if accepts(t, a.target(s, "wrong")) {
				t.Errorf("%s at %d takes any password", a.name, s.Port)
			}
		}
	}
	// What a site does not let in is not a wrong password.
	replica.Exec(t, "SET GLOBAL offline_mode = ON")
	for _, a := range ownAccounts() {
		if !accepts(t, a.target(replica, nextPassword)) || accepts(t, a.target(replica, "wrong")) {
			t.Errorf("%s: it must be told while the server is offline", a.name)
		}
	}
	replica.Exec(t, "SET GLOBAL offline_mode = OFF")

	// The channel takes the new password without its applier being stopped.
	source.Password = nextPassword
	if err := mysqltest.Open(t, replica.Target(mysql.AccountOperator, nextPassword)).GivePassword(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	for _, a := range ownAccounts() {
		for range 2 {
			if err := mysql.RetirePasswords(t.Context(), a.target(active, nextPassword)); err != nil {
				t.Fatalf("%s: %v", a.name, err)
			}
		}
	}
	caughtUp()
	for _, s := range []*mysqltest.Server{active, replica} {
		for _, a := range ownAccounts() {
			if accepts(t, a.target(s, a.password)) || !accepts(t, a.target(s, nextPassword)) {
				t.Errorf("%s at %d must take the new password alone", a.name, s.Port)
			}
		}
	}
	// A receiver that connects again has the new password.
	active.Exec(t, "CREATE DATABASE after_it")
	replica.Exec(t, "STOP REPLICA", "START REPLICA")
	caughtUp()
	noTrace(t, active, general)
	noTrace(t, replica, "")
}

// noTrace looks for passwords in what a server wrote.
func noTrace(t *testing.T, s *mysqltest.Server, more string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir, "data", "*bin*.0*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no binary logs: %v", err)
	}
	relay, _ := filepath.Glob(filepath.Join(s.Dir, "data", "*relay*.0*"))
	files = append(append(files, relay...), filepath.Join(s.Dir, "mysqld.log"))
	if more != "" {
		files = append(files, more)
	}
	alter := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		alter += strings.Count(string(text), "RETAIN CURRENT PASSWORD")
		for _, secret := range append([]string{nextPassword}, passwordsOf(ownAccounts())...) {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s holds a password", file)
			}
		}
	}
	if alter == 0 {
		t.Error("no change was found in what was looked at")
	}
	rows, err := s.Root(t).QueryContext(context.Background(), "SELECT COALESCE(SQL_TEXT, '') FROM performance_schema.events_statements_history_long "+
		"UNION ALL SELECT COALESCE(SQL_TEXT, '') FROM performance_schema.events_statements_history UNION ALL SELECT COALESCE(QUERY_SAMPLE_TEXT, '') FROM performance_schema.events_statements_summary_by_digest")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, nextPassword) {
			t.Errorf("performance_schema shows a password: %s", text)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func passwordsOf(accounts []account) []string {
	var out []string
	for _, a := range accounts {
		out = append(out, a.password)
	}
	return out
}

// TestIntroduceKeepsThePasswordThatIsUsed begins where the password that is used is the second one: it must not be the one that goes.
func TestIntroduceKeepsThePasswordThatIsUsed(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	if err := s.Sidecar(t).OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := ownAccounts()[0]
	if err := mysql.IntroducePassword(t.Context(), a.target(s, a.password), "forgotten"); err != nil {
		t.Fatal(err)
	}
	if err := mysql.IntroducePassword(t.Context(), a.target(s, a.password), nextPassword); err != nil {
		t.Fatal(err)
	}
	if !accepts(t, a.target(s, a.password)) || !accepts(t, a.target(s, nextPassword)) || accepts(t, a.target(s, "forgotten")) {
		t.Error("the password in use and the next one must be taken, and no other")
	}
	// One that is the second is not the one that goes either.
	if err := mysql.RetirePasswords(t.Context(), a.target(s, a.password)); err != nil {
		t.Fatal(err)
	}
	if !accepts(t, a.target(s, a.password)) || accepts(t, a.target(s, nextPassword)) {
		t.Error("the password that was given must be taken, and no other")
	}
}

// TestGivingRightsKeepsBothPasswordsI21: a pod of another version gives its accounts their rights while their passwords are replaced.
func TestGivingRightsKeepsBothPasswordsI21(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	if err := s.Sidecar(t).OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := mysqltest.Passwords
	for _, a := range []account{
		{mysql.AccountProbe, mysql.ProbePassword(p.Sidecar), true}, {mysql.AccountBackup, mysql.BackupPassword(p.Clone), true},
	} {
		if err := mysql.IntroducePassword(t.Context(), a.target(s, a.password), nextPassword); err != nil {
			t.Fatal(err)
		}
		s.Exec(t, mysql.RightsStatements(p, false)...)
		if !accepts(t, a.target(s, a.password)) || !accepts(t, a.target(s, nextPassword)) {
			t.Errorf("I21: %s does not take both passwords any more", a.name)
		}
		s.Exec(t, "SET SESSION sql_log_bin = 0", "DROP USER "+a.name)
		s.Exec(t, mysql.RightsStatements(p, false)...)
		if !accepts(t, a.target(s, a.password)) {
			t.Errorf("%s was not made again", a.name)
		}
	}
}

// TestSessionsTryTheOtherPassword has a long-lived user of a server try what its source of passwords says.
func TestSessionsTryTheOtherPassword(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	list, others := []string{"not yet"}, []string{mysqltest.Passwords.Sidecar}
	target := s.Target(mysql.AccountSidecar, "")
	target.Passwords = func(_ context.Context, again bool) []string {
		if again {
			return others
		}
		return list
	}
	status(t, mysqltest.Open(t, target))
	list, others = []string{"wrong", mysqltest.Passwords.Sidecar}, nil
	status(t, mysqltest.Open(t, target))
	list = []string{"wrong"}
	if _, err := mysqltest.Open(t, target).Status(budget(t)); serverNumber(err) != 1045 {
		t.Errorf("want 1045, got %v", err)
	}
}
