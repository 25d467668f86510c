// SPDX-License-Identifier: Apache-2.0

package mysql

import "fmt"

// Names of our accounts.
const (
	AccountOperator    = "mfg_operator"
	AccountReplication = "mfg_replication"
	AccountClone       = "mfg_clone"
	AccountSidecar     = "mfg_sidecar"
)

// Accounts are the passwords of our accounts and of root@localhost.
type Accounts struct {
	Operator, Replication, Clone, Sidecar, Root string
}

// String never shows a password.
func (Accounts) String() string { return "accounts (redacted)" }

// GoString never shows a password.
func (a Accounts) GoString() string { return a.String() }

// The rights of each account, the least that its work needs. SYSTEM_USER protects an account from those who may create
// users, and lets a fence cut sessions of administrators.
const (
	// operatorRights: read status, fence, set up replication and drop it (RELOAD), clone, kill.
	operatorRights = "RELOAD, SHOW DATABASES, CLONE_ADMIN, CONNECTION_ADMIN, REPLICATION_SLAVE_ADMIN, " +
		"SERVICE_CONNECTION_ADMIN, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, XA_RECOVER_ADMIN"
	// sidecarRights: read status, fence, open.
	sidecarRights = "SHOW DATABASES, CONNECTION_ADMIN, SERVICE_CONNECTION_ADMIN, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, " +
		"XA_RECOVER_ADMIN"
	// replicationRights: CONNECTION_ADMIN keeps the dump thread alive when a fence sets offline_mode. It does not pass
	// super_read_only.
	replicationRights = "REPLICATION SLAVE, CONNECTION_ADMIN"
	cloneRights       = "BACKUP_ADMIN"
)

// AccountStatements are the statements that make our accounts on a server that has just been initialised. They produce
// no GTID: every site makes them for itself, alike, and starts with an empty gtid_executed.
//
// They are the init file of the initialisation itself, one statement a line, which takes about two seconds altogether
// and needs no second start of mysqld:
//
//	mysqld --defaults-file=FILE --initialize-insecure --datadir=DIR --init-file=STATEMENTS
//
// mysqld runs that file at the end of --initialize, with the binary log on, so sql_log_bin=0 is needed; super_read_only
// in FILE does not stand in the way. It ends with status 1 if any statement fails, so that status 0 proves that all
// accounts exist. DIR may be renamed afterwards, which makes a finished initialisation tellable from half a one. The
// file holds passwords: it belongs in memory (a memfd works, as /proc/self/fd/N), or is removed at once.
func AccountStatements(a Accounts, requireTLS bool) []string {
	require := ""
	if requireTLS {
		require = " REQUIRE SSL"
	}
	statements := []string{
		"SET SESSION sql_log_bin = 0",
		// quote relies on backslashes being escapes, whatever the configuration says.
		"SET SESSION sql_mode = ''",
	}
	for _, account := range []struct{ name, password, rights string }{
		{AccountOperator, a.Operator, operatorRights},
		{AccountSidecar, a.Sidecar, sidecarRights},
		{AccountReplication, a.Replication, replicationRights},
		{AccountClone, a.Clone, cloneRights},
	} {
		statements = append(statements,
			fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY %s%s", account.name, quote(account.password), require),
			fmt.Sprintf("GRANT %s ON *.* TO '%s'@'%%'", account.rights, account.name))
	}
	for _, name := range []string{AccountOperator, AccountSidecar} {
		statements = append(statements, fmt.Sprintf("GRANT SELECT ON performance_schema.* TO '%s'@'%%'", name))
	}
	return append(statements, "ALTER USER 'root'@'localhost' IDENTIFIED BY "+quote(a.Root))
}
