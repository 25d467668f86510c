// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

func TestAccountStatements(t *testing.T) {
	a := Accounts{Operator: "o", Replication: "r", Clone: "c", Sidecar: "s", Root: "it's\\;\n"}
	for name, tls := range map[string]bool{"with TLS": true, "without TLS": false} {
		t.Run(name, func(t *testing.T) {
			got := AccountStatements(a, tls)
			if got[0] != "SET SESSION sql_log_bin = 0" {
				t.Errorf("anything before it would produce a GTID: %s", got[0])
			}
			for _, s := range got {
				if strings.Contains(s, "\n") {
					t.Errorf("an init file takes one statement a line: %q", s)
				}
				if strings.HasPrefix(s, "CREATE USER") && strings.Contains(s, " REQUIRE SSL") != tls {
					t.Errorf("REQUIRE SSL: %s", s)
				}
			}
			if last := got[len(got)-1]; last != `ALTER USER 'root'@'localhost' IDENTIFIED BY 'it''s\\;\n'` {
				t.Errorf("root's password is not quoted rightly: %s", last)
			}
		})
	}
}

// TestSecretsAreNotShown covers I11.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "geheim'nis"
	for _, v := range []any{
		Accounts{Operator: secret, Replication: secret, Clone: secret, Sidecar: secret, Root: secret},
		Target{Addr: "h:1", User: "u", Password: secret}, Source{Host: "h", Port: 1, User: "u", Password: secret},
		Donor{Host: "h", Port: 1, User: "u", Password: secret},
	} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(format, v); strings.Contains(text, "geheim") {
				t.Errorf("%s shows a password: %s", format, text)
			}
		}
	}
}

func TestWithoutSecret(t *testing.T) {
	const secret = "geheim'nis"
	tests := map[string]struct {
		reason string
		in     error
		keep   bool
	}{
		"none":         {"no error stays none", nil, true},
		"syntax":       {"the server quotes what it did not understand", &driver.MySQLError{Number: 1064, Message: "near 'IDENTIFIED BY'"}, false},
		"with secret":  {"whatever error holds the password", &driver.MySQLError{Number: 1, Message: "bad " + secret}, false},
		"quoted":       {"as it stood in the statement", &driver.MySQLError{Number: 1, Message: "bad " + quote(secret)}, false},
		"other":        {"callers look at the number", &driver.MySQLError{Number: 1290, Message: "read-only"}, true},
		"from network": {"callers look for the context's end", driver.ErrInvalidConn, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := withoutSecret(tc.in, secret)
			if kept := errors.Is(got, tc.in); kept != tc.keep {
				t.Errorf("%s: %v", tc.reason, got)
			}
			if got != nil && strings.Contains(got.Error(), "geheim") {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}

// Every site makes the account of backups when it starts, with a password that CLONE takes and that nobody has who lacks that of clones.
func TestTheAccountOfBackups(t *testing.T) {
	if p := BackupPassword("c"); len(p) != 32 || p == BackupPassword("d") || p == ProbePassword("c") || strings.Contains(p, "\\") {
		t.Errorf("password of %d characters: CLONE takes 32", len(p))
	}
	a := Accounts{Operator: "o", Replication: "r", Clone: "c", Sidecar: "s", Root: "x"}
	for name, statements := range map[string][]string{
		"a new server": AccountStatements(a, true), "one of an earlier version": RightsStatements(a, true), "one that was restored": ReplaceAccountStatements(a, true),
	} {
		all := strings.Join(statements, "\n")
		for _, want := range []string{"CREATE USER IF NOT EXISTS 'mfg_backup'@'%' IDENTIFIED BY " + quote(BackupPassword("c")) + " REQUIRE SSL", "GRANT SELECT, PROCESS", ", REPLICATION SLAVE, APPLICATION_PASSWORD_ADMIN ON *.* TO 'mfg_backup'"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
	}
}

// I21: what gives rights to an account that exists takes none of the two passwords that it may have at the moment. One that does not exist
// yet is made with the present one.
func TestGivingRightsTouchesNoPasswordI21(t *testing.T) {
	made := 0
	for _, s := range RightsStatements(Accounts{Operator: "o", Replication: "r", Clone: "c", Sidecar: "s", Root: "x"}, true) {
		switch {
		case !strings.Contains(s, "IDENTIFIED") && !strings.Contains(s, "DISCARD"):
		case strings.HasPrefix(s, "CREATE USER IF NOT EXISTS "):
			made++
		default:
			t.Errorf("%.30s sets a password", s)
		}
	}
	if made != 2 {
		t.Errorf("%d accounts would be made with a password", made)
	}
}

// An account of ours that locks after wrong passwords could be locked by anybody who reaches the port (docs/security.md).
func TestNoAccountOfOursLocksAfterWrongPasswords(t *testing.T) {
	a := Accounts{Operator: "o", Replication: "r", Clone: "c", Sidecar: "s", Root: "x"}
	for _, statements := range [][]string{AccountStatements(a, true), RightsStatements(a, true), ReplaceAccountStatements(a, true)} {
		for _, s := range statements {
			if strings.Contains(s, "FAILED_LOGIN_ATTEMPTS") || strings.Contains(s, "PASSWORD_LOCK_TIME") {
				t.Errorf("%.60s has its account locked", s)
			}
		}
	}
}
