// SPDX-License-Identifier: Apache-2.0

package readonly

import (
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
)

// user is the account, as MySQL writes it.
const user = "'" + mysqlclient.AccountReadOnly + "'@'%'"

// lookStatements print, one in a line: whether the account is there, whether the site takes no changes, partial_revokes, and those of the databases
// that are there.
func lookStatements(databases []string) []string {
	out := []string{
		"SELECT COUNT(*) FROM mysql.user WHERE User = '" + mysqlclient.AccountReadOnly + "' AND Host = '%'",
		"SELECT @@GLOBAL.read_only",
		"SELECT @@GLOBAL.partial_revokes",
	}
	if len(databases) > 0 {
		var names []string
		for _, d := range databases {
			names = append(names, mysqlclient.Quote(d))
		}
		out = append(out, "SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ("+strings.Join(names, ", ")+")")
	}
	return out
}

// lookLines is how many lines there are before the databases.
const lookLines = 3

// makeStatements make the account, or give the one that is there the password and these rights alone. A password that the server lets in already is not
// set again: with password_history MySQL would refuse it.
func makeStatements(s seen, password string, databases []string) []string {
	out := []string{"SET SESSION sql_mode = ''"} // backslashes are escapes
	switch {
	case !s.Exists:
		out = append(out, "CREATE USER "+user+" IDENTIFIED BY "+mysqlclient.Quote(password))
	case !s.Accepts:
		out = append(out, "ALTER USER "+user+" IDENTIFIED BY "+mysqlclient.Quote(password))
	}
	if s.Exists {
		out = append(out, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+user)
	}
	for _, d := range databases {
		out = append(out, "GRANT SELECT, SHOW VIEW ON `"+pattern(d, s.PartialRevokes)+"`.* TO "+user)
	}
	// Nobody replaces its password in time where passwords expire (default_password_lifetime).
	return append(out, "ALTER USER "+user+" PASSWORD EXPIRE NEVER ACCOUNT UNLOCK")
}

// pattern is the name of a database as GRANT reads it: an underscore and a percent sign stand for any characters there, unless the server has
// partial_revokes.
func pattern(database string, partialRevokes bool) string {
	if partialRevokes {
		return database
	}
	return strings.NewReplacer("_", `\_`, "%", `\%`).Replace(database)
}

// dropStatement removes the account.
const dropStatement = "DROP USER IF EXISTS " + user
