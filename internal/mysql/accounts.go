// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Names of our accounts.
const (
	AccountOperator    = "mfg_operator"
	AccountReplication = "mfg_replication"
	AccountClone       = "mfg_clone"
	AccountSidecar     = "mfg_sidecar"
	// AccountProbe is refused where clients are: no right lets it pass offline_mode, read_only or a full server.
	AccountProbe = "mfg_probe"
)

// Accounts are the passwords of our accounts and of root@localhost.
type Accounts struct {
	Operator, Replication, Clone, Sidecar, Root string
}

// String never shows a password.
func (Accounts) String() string { return "accounts (redacted)" }

// GoString never shows a password.
func (a Accounts) GoString() string { return a.String() }

// PasswordPrefix begins each password that we make, for a server that checks for kinds of letters; api/v1alpha1 has the same.
const PasswordPrefix = "mP1-"

// ProbePassword is the password of AccountProbe. It is derived from the sidecar's, which only the sites have: so it needs no
// Secret of its own, and a clone brings an account that this site's sidecar can use.
func ProbePassword(sidecar string) string {
	mac := hmac.New(sha256.New, []byte(sidecar))
	mac.Write([]byte(AccountProbe))
	return PasswordPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:24])
}

// Each account has the fewest rights that its work needs. SYSTEM_USER keeps others from altering an account, not from hiding
// it behind one of a narrower host (CREATE USER), and lets a fence cut sessions of administrators.
const (
	// operatorRights: read status and the sizes of binary logs (REPLICATION CLIENT), fence, set up replication and drop it (RELOAD), clone,
	// kill, rotate master keys, keep binary logs from being purged.
	operatorRights = "RELOAD, SHOW DATABASES, REPLICATION CLIENT, BINLOG_ENCRYPTION_ADMIN, CLONE_ADMIN, CONNECTION_ADMIN, ENCRYPTION_KEY_ADMIN, " +
		"REPLICATION_SLAVE_ADMIN, SERVICE_CONNECTION_ADMIN, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, XA_RECOVER_ADMIN"
	// sidecarRights: read status, fence, open; see what is encrypted (PROCESS) and encrypt what MySQL itself made.
	sidecarRights = "CREATE TABLESPACE, PROCESS, SHOW DATABASES, CONNECTION_ADMIN, SERVICE_CONNECTION_ADMIN, SYSTEM_USER, " +
		"SYSTEM_VARIABLES_ADMIN, TABLE_ENCRYPTION_ADMIN, XA_RECOVER_ADMIN"
	// sidecarTableRights are its rights on the one table that MySQL makes outside the tablespace mysql.
	sidecarTableRights = "ALTER"
	// replicationRights: CONNECTION_ADMIN keeps the dump thread alive when a fence sets offline_mode. It does not pass
	// super_read_only.
	replicationRights = "REPLICATION SLAVE, CONNECTION_ADMIN"
	cloneRights       = "BACKUP_ADMIN"
	// probeRights: keep its change out of the binary log; it has no other right that a client lacks.
	probeRights = "SESSION_VARIABLES_ADMIN"
	// probeTableRights are its rights on the table that it changes, and changes back.
	probeTableRights = "SELECT, INSERT, DELETE"
	// ownPasswordRights: have two passwords while one replaces the other. No account may change another one.
	ownPasswordRights = "APPLICATION_PASSWORD_ADMIN"
	// probeSessions bounds how many of its sessions pile up on a server that hangs.
	probeSessions = 3
	// workSessions are as many as max_connections can be: a limit of its own frees an account from max_user_connections, which would
	// keep the sidecar from the fresh connection that each fence and each opening needs.
	workSessions = 100_000
)

// AccountStatements are the statements that make our accounts on a server that has just been initialised. They produce
// no GTID: every site makes the same accounts for itself, and starts with an empty gtid_executed.
//
// They are the init file of the initialisation itself, one statement a line, which takes about two seconds altogether
// and needs no second start of mysqld:
//
//	mysqld --defaults-file=FILE --initialize-insecure --datadir=DIR --init-file=STATEMENTS
//
// mysqld runs that file at the end of --initialize, with the binary log on, so sql_log_bin=0 is needed; super_read_only
// in FILE does not prevent that. It ends with status 1 if any statement fails, so status 0 proves that all accounts exist.
// DIR may be renamed afterwards, which distinguishes a finished initialisation from an unfinished one. The file holds
// passwords: keep it in memory (a memfd works, as /proc/self/fd/N), or remove it at once.
func AccountStatements(a Accounts, requireTLS bool) []string {
	require := requirement(requireTLS)
	statements := []string{
		"SET SESSION sql_log_bin = 0",
		// quote relies on backslashes being escapes, whatever the configuration says.
		"SET SESSION sql_mode = ''",
	}
	for _, account := range []struct{ name, password string }{
		{AccountOperator, a.Operator}, {AccountSidecar, a.Sidecar}, {AccountReplication, a.Replication}, {AccountClone, a.Clone},
	} {
		statements = append(statements, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY %s%s", account.name, quote(account.password), require))
	}
	statements = append(statements, probeAccount(a.Sidecar, requireTLS)...)
	statements = append(statements, backupAccount(BackupPassword(a.Clone), requireTLS)...)
	statements = append(statements, grants()...)
	return append(statements, "ALTER USER 'root'@'localhost' IDENTIFIED BY "+quote(a.Root))
}

// RightsStatements give our existing accounts the rights that they need: an earlier version may have made them with fewer, and did
// not make those of the write probe and of backups. They too are an init file, of an ordinary start of mysqld: mysqld runs it as no
// account before it sets super_read_only, and these statements make no transaction. mysqld ends with an error if one fails.
func RightsStatements(a Accounts, requireTLS bool) []string {
	statements := append([]string{"SET SESSION sql_log_bin = 0", "SET SESSION sql_mode = ''"}, probeAccount(a.Sidecar, requireTLS)...)
	statements = append(statements, backupAccount(BackupPassword(a.Clone), requireTLS)...)
	return append(statements, grants()...)
}

func requirement(requireTLS bool) string {
	if requireTLS {
		return " REQUIRE SSL"
	}
	return ""
}

// probeAccount makes the account of the write probe, or corrects the one that exists.
func probeAccount(sidecar string, requireTLS bool) []string {
	return boundedAccount(AccountProbe, ProbePassword(sidecar), probeSessions, requireTLS)
}

// boundedAccount makes an account with that many sessions at most, or corrects the one that exists. The password of that one stays: while
// it is replaced the account takes two, on every site, and here one would be lost on this site alone (I21).
func boundedAccount(name, password string, sessions int, requireTLS bool) []string {
	require := requirement(requireTLS)
	if require == "" {
		require = " REQUIRE NONE"
	}
	return []string{
		fmt.Sprintf("CREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY %s%s", name, quote(password), require),
		fmt.Sprintf("ALTER USER '%s'@'%%'%s%s ACCOUNT UNLOCK", name, require, ownTerms(sessions)),
	}
}

// ownTerms free an account from what a server demands of accounts in general: default_password_lifetime would lock it out, and
// password_require_current keep it from replacing its password.
func ownTerms(sessions int) string {
	return fmt.Sprintf(" WITH MAX_USER_CONNECTIONS %d PASSWORD EXPIRE NEVER PASSWORD REQUIRE CURRENT OPTIONAL", sessions)
}

// grants are the rights of all accounts, and the terms of those that boundedAccount does not make.
func grants() []string {
	var statements []string
	for _, name := range []string{AccountOperator, AccountSidecar, AccountReplication, AccountClone} {
		statements = append(statements, fmt.Sprintf("ALTER USER '%s'@'%%'%s", name, ownTerms(workSessions)))
	}
	for _, account := range []struct{ name, rights string }{
		{AccountOperator, operatorRights}, {AccountSidecar, sidecarRights}, {AccountReplication, replicationRights}, {AccountClone, cloneRights},
		{AccountProbe, probeRights},
	} {
		statements = append(statements, fmt.Sprintf("GRANT %s, %s ON *.* TO '%s'@'%%'", account.rights, ownPasswordRights, account.name))
	}
	for _, name := range []string{AccountOperator, AccountSidecar} {
		statements = append(statements, fmt.Sprintf("GRANT SELECT ON performance_schema.* TO '%s'@'%%'", name))
	}
	return append(statements,
		fmt.Sprintf("GRANT %s ON sys.sys_config TO '%s'@'%%'", sidecarTableRights, AccountSidecar),
		fmt.Sprintf("GRANT %s ON sys.sys_config TO '%s'@'%%'", probeTableRights, AccountProbe))
}
