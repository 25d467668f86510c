// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/application"
)

// Error numbers of servers.
const (
	numberNoDatabase        = 1049
	numberNoColumn          = 1054
	numberSyntax            = 1064
	numberGrantNeedsObject  = 1144
	numberNoTable           = 1146
	numberNoGrantOnTable    = 1147
	numberNoRoutine         = 1305
	numberConnectionKilled  = 1317
	numberCannotGrantOnView = 1347
	numberNoPlugin          = 1524
	// What follows for an account that could not be made, as for want of its plugin: GRANT makes none.
	numberNoAccount = 1410
	numberNoRole    = 3523
	numberTooSlow   = 3024
)

// groupAccounts are statements that make the accounts of the group that is restored, and set root's password, whatever the backup brought. They
// leave no transaction, and hold passwords.
func groupAccounts(c terms.Config) ([]string, error) {
	if c.AccountsDir == "" {
		return nil, nil
	}
	var a mysql.Accounts
	for name, into := range map[string]*string{
		"operator": &a.Operator, "replication": &a.Replication, "clone": &a.Clone, "sidecar": &a.Sidecar, "root": &a.Root,
	} {
		password, err := terms.Secret(filepath.Join(c.AccountsDir, name))
		if err != nil {
			return nil, terms.Fail(terms.BadConfig, fmt.Errorf("read the password of the account %s of the group: %w", name, err))
		}
		*into = password
	}
	statements := mysql.ReplaceAccountStatements(a, c.RequireTLS)
	// What is wrong with the Secret of the application keeps no data from coming back: the operator says that the account does not fit.
	if app, is, err := application.Read(c.AccountsDir); is && err == nil {
		// The backup of a group has its account already, with another password than the Secret of the group that is restored.
		statements = append(statements, application.Statements(app)...)
	}
	return statements, nil
}

// missing are the errors of a statement about something that is not there: what is granted outlives tables and routines.
var missing = []uint16{numberNoTable, numberNoDatabase, numberNoRoutine, numberNoColumn, numberGrantNeedsObject, numberNoGrantOnTable, numberCannotGrantOnView, numberNoPlugin,
	numberNoAccount, numberNoRole}

// loadAccounts runs the statements. Those about something that is not there are warnings; their text holds hashes, and is not shown.
func loadAccounts(ctx context.Context, conn *sql.Conn, statements []string) (warnings []string, err error) {
	for i, statement := range statements {
		_, err := conn.ExecContext(ctx, statement)
		switch {
		case err == nil:
		case slices.Contains(missing, mysqld.Number(err)):
			warnings = append(warnings, fmt.Sprintf("account statement %d of %d was left out: error %d, what it names is not there", i+1, len(statements), mysqld.Number(err)))
		case mysqld.Number(err) != 0:
			// The server may quote the statement, with its hash.
			return warnings, fmt.Errorf("account statement %d of %d: error %d (text withheld)", i+1, len(statements), mysqld.Number(err))
		default:
			return warnings, fmt.Errorf("account statement %d of %d: %w", i+1, len(statements), err)
		}
	}
	return warnings, nil
}
