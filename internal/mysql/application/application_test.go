// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/mysql/application"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		a      application.Account
		ok     bool
	}{
		"plain":           {"as the operator makes it", application.Account{User: "app", Password: "mP1-X", Database: "shop"}, true},
		"signs":           {"names may have these", application.Account{User: "a-1_b", Password: "it's \\", Database: "shop_1-x"}, true},
		"root":            {"it would give root away to the network", application.Account{User: "root", Password: "p", Database: "shop"}, false},
		"ours":            {"it would change the password of an account of the operator", application.Account{User: "mfg_operator", Password: "p", Database: "shop"}, false},
		"system":          {"rights on it are rights on everything", application.Account{User: "app", Password: "p", Database: "mysql"}, false},
		"our database":    {"it belongs to the project", application.Account{User: "app", Password: "p", Database: "mfg_x"}, false},
		"quote":           {"statements are made of it", application.Account{User: "a'b", Password: "p", Database: "shop"}, false},
		"backtick":        {"statements are made of it", application.Account{User: "app", Password: "p", Database: "sh`op"}, false},
		"wildcard":        {"it would stand for all databases", application.Account{User: "app", Password: "p", Database: "%"}, false},
		"long user":       {"MySQL takes 32 characters", application.Account{User: strings.Repeat("u", 33), Password: "p", Database: "shop"}, false},
		"long database":   {"MySQL takes 64 characters", application.Account{User: "u", Password: "p", Database: strings.Repeat("d", 65)}, false},
		"long password":   {"MySQL takes so much", application.Account{User: "app", Password: strings.Repeat("p", 256), Database: "shop"}, true},
		"longer password": {"MySQL takes 256 characters, and a statement that it refuses ends the initialisation", application.Account{User: "app", Password: strings.Repeat("p", 257), Database: "shop"}, false},
		"no password":     {"anybody could log in", application.Account{User: "app", Database: "shop"}, false},
		"line break":      {"the init file has a statement on each line", application.Account{User: "app", Password: "a\nb", Database: "shop"}, false},
		"no name":         {"there is nobody to make", application.Account{Password: "p", Database: "shop"}, false},
		"no database":     {"there is nothing to make", application.Account{User: "app", Password: "p"}, false},
		"capital letters": {"whether they count depends on a setting", application.Account{User: "app", Password: "p", Database: "Shop"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.a.Validate(); (err == nil) != c.ok {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

func TestReadsTheFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, is, err := application.Read(dir); is || err != nil {
		t.Fatalf("a group without an application: %v, %v", is, err)
	}
	write("app-username", "app\n")
	write("app-password", "secret")
	if _, is, err := application.Read(dir); is || err != nil {
		t.Fatalf("a person's Secret without a database is not the operator's: %v, %v", is, err)
	}
	write("app-database", "shop")
	a, is, err := application.Read(dir)
	if err != nil || !is || a.User != "app" || a.Database != "shop" || a.Password != "secret" {
		t.Fatalf("%v, %v, %v", a, is, err)
	}
	if strings.Contains(a.String()+a.GoString(), "secret") {
		t.Error("I11: it shows its password")
	}
	write("app-username", "root")
	if _, is, err := application.Read(dir); is || err == nil {
		t.Fatalf("root was taken for an application: %v, %v", is, err)
	}
}

// Whether the application's account locks after wrong passwords is for its owner to say (docs/security.md).
func TestTheAccountDoesNotLockAfterWrongPasswords(t *testing.T) {
	for _, s := range application.Statements(application.Account{User: "app", Database: "shop", Password: "p"}) {
		if strings.Contains(s, "FAILED_LOGIN_ATTEMPTS") || strings.Contains(s, "PASSWORD_LOCK_TIME") {
			t.Errorf("%q has the account locked", s)
		}
	}
}
