// SPDX-License-Identifier: Apache-2.0

// Package application makes the account and the database of a group's application. Each site makes the account with its data directory,
// without a transaction, like the operator's own accounts; that account makes the database, as an ordinary transaction on the active
// site. So no account needs the right to make accounts, and no site gets a transaction or a database of its own. operator/application
// decides when each part happens.
package application

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Account is the account of an application, and its database.
type Account struct{ User, Password, Database string }

// String never shows the password.
func (a Account) String() string { return a.User + " of " + a.Database }

// GoString never shows the password.
func (a Account) GoString() string { return a.String() }

const (
	maxUser     = 32
	maxDatabase = 64
	// maxPassword is the most that caching_sha2_password takes. A longer one fails the statement, and so the whole initialisation or load.
	maxPassword = 256
	// own begins the names of the operator's accounts.
	own = "mfg_"
)

// names matches the names that the group's specification allows, too.
var names = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// Names that belong to MySQL.
var (
	takenUsers     = []string{"root", "mysql", "sys", "event_scheduler"}
	takenDatabases = []string{"mysql", "sys", "information_schema", "performance_schema", "ndbinfo"}
)

// Validate says what is wrong with the account. Others than the operator can write the Secret that it comes from, and the statements made
// from it run with all rights.
func (a Account) Validate() error {
	switch {
	case !names.MatchString(a.User) || len(a.User) > maxUser || strings.HasPrefix(a.User, own) || slices.Contains(takenUsers, a.User):
		return errors.New("its user is no name for an account of an application")
	case !names.MatchString(a.Database) || len(a.Database) > maxDatabase || strings.HasPrefix(a.Database, own) || slices.Contains(takenDatabases, a.Database):
		return errors.New("its database is no name for one of an application")
	case a.Password == "" || strings.ContainsFunc(a.Password, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("its password is empty, or holds a line break or something else than printable ASCII")
	case len(a.Password) > maxPassword:
		return fmt.Errorf("its password is longer than %d characters", maxPassword)
	}
	return nil
}

// Files of the account in the directory of accounts. They exist only if the group has an application.
const (
	fileUser     = "app-username"
	filePassword = "app-password"
	fileDatabase = "app-database"
)

// Read reads the account from the directory of accounts; false if there is none.
func Read(dir string) (Account, bool, error) {
	var a Account
	for name, into := range map[string]*string{fileUser: &a.User, filePassword: &a.Password, fileDatabase: &a.Database} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return Account{}, false, nil
		}
		if err != nil {
			return Account{}, false, fmt.Errorf("read the account of the application: %w", err)
		}
		*into = strings.TrimRight(string(raw), "\n")
	}
	if err := a.Validate(); err != nil {
		return Account{}, false, fmt.Errorf("the account of the application is not made: %w", err)
	}
	return a, true, nil
}

// Statements make the account on a server whose data directory has just been made or restored. They come after those of our own accounts,
// which turn the binary log off and make backslashes escapes. A right on a database does not need the database.
func Statements(a Account) []string {
	user, password := "'"+a.User+"'@'%'", quote(a.Password)
	return append([]string{
		"CREATE USER IF NOT EXISTS " + user + " IDENTIFIED BY " + password,
		"ALTER USER " + user + " IDENTIFIED BY " + password,
		// A backup from the time when the account's password was being replaced has the older one too.
		"ALTER USER " + user + " DISCARD OLD PASSWORD",
	}, grant(a.Database, user)...)
}

// grant gives all rights on a database. In its name an underscore stands for any character, unless the server has partial_revokes: then a
// backslash before it would stand for itself.
func grant(database, user string) []string {
	plain := "GRANT ALL ON `" + database + "`.* TO " + user
	if !strings.Contains(database, "_") {
		return []string{plain}
	}
	escaped := "GRANT ALL ON `" + strings.ReplaceAll(database, "_", `\_`) + "`.* TO " + user
	return []string{
		"SET @mfg_grant = IF(@@GLOBAL.partial_revokes, " + quote(plain) + ", " + quote(escaped) + ")",
		"PREPARE mfg_grant FROM @mfg_grant", "EXECUTE mfg_grant", "DEALLOCATE PREPARE mfg_grant",
	}
}

// quote relies on backslashes being escapes.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
