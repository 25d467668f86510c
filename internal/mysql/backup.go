// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// AccountBackup copies a site: dumps and clones read with it. It can neither write nor pass a fence.
const AccountBackup = "mfg_backup"

// BackupRights are what a dump and a clone need, by the manual and by what the program asks for. We did not try to leave out each one.
// Without SHOW VIEW, TRIGGER or SHOW_ROUTINE mysqldump leaves things out and reports nothing, so backup/job/making refuses an account
// that lacks any of these rights before it copies anything; that refusal is tested, for those three.
//
//   - SELECT: rows, mysql.user with the hashes of passwords, roles; SHOW VIEW, TRIGGER, EVENT and SHOW_ROUTINE: definitions
//   - FLUSH_TABLES: the short lock that fits the GTID set to the snapshot; REPLICATION CLIENT: the position of the binary log
//   - BACKUP_ADMIN: LOCK INSTANCE FOR BACKUP, and being a donor; PROCESS: general tablespaces; XA_RECOVER_ADMIN: backup/job/making/xa.go
//
// It has no CONNECTION_ADMIN: so a fence ends its sessions. It needs no right to end them itself: any account may end its own.
var BackupRights = []string{
	"SELECT", "PROCESS", "SHOW VIEW", "EVENT", "TRIGGER", "REPLICATION CLIENT", "BACKUP_ADMIN", "FLUSH_TABLES", "SHOW_ROUTINE", "XA_RECOVER_ADMIN",
}

// ArchiveRights are what the archive of binary logs also needs: to read them through the server. Every account for backups has them, even in
// groups that archive nothing: a server that gets its rights at its start does not know the specification, and an account that may copy every
// row learns from them only what the rows were before. A dump works without them, so it can be made before all sites are updated.
var ArchiveRights = []string{"REPLICATION SLAVE"}

// backupSessions bounds its sessions on a server that hangs: two of the program, one of the dump or those of a clone, for two backups.
const backupSessions = 40

// BackupPassword is the password of AccountBackup. It is derived from that of AccountClone, which gives no one more access: the holder of
// that one can copy a whole site anyway. So every site can make the account when it starts, the operator needs no right to make accounts,
// and a group that gets its first profile needs no restart. It has 32 characters, the most that CLONE takes.
func BackupPassword(clone string) string {
	mac := hmac.New(sha256.New, []byte(clone))
	mac.Write([]byte(AccountBackup))
	return PasswordPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:21])
}

// BackupAccountStatements make the account of backups, or correct the one that exists, and its password. They may run on the active site, from which
// they replicate, or on every site without its binary log.
func BackupAccountStatements(password string, requireTLS bool) []string {
	// quote relies on backslashes being escapes.
	statements := append([]string{"SET SESSION sql_mode = ''"}, backupAccount(password, requireTLS)...)
	return append(statements, fmt.Sprintf("ALTER USER '%s'@'%%' IDENTIFIED BY %s", AccountBackup, quote(password)))
}

func backupAccount(password string, requireTLS bool) []string {
	rights := strings.Join(slices.Concat(BackupRights, ArchiveRights), ", ")
	return append(boundedAccount(AccountBackup, password, backupSessions, requireTLS),
		fmt.Sprintf("GRANT %s, %s ON *.* TO '%s'@'%%'", rights, ownPasswordRights, AccountBackup))
}

// OwnAccounts are the names of all our accounts.
func OwnAccounts() []string {
	return []string{AccountOperator, AccountReplication, AccountClone, AccountSidecar, AccountProbe, AccountBackup}
}

// ReplaceAccountStatements make our accounts on a restored server, whichever of them the backup brought. Like
// AccountStatements they produce no GTID.
func ReplaceAccountStatements(a Accounts, requireTLS bool) []string {
	statements := []string{"SET SESSION sql_log_bin = 0", "SET SESSION sql_mode = ''"}
	for _, name := range OwnAccounts() {
		statements = append(statements, fmt.Sprintf("DROP USER IF EXISTS '%s'@'%%'", name))
	}
	statements = append(statements, "CREATE USER IF NOT EXISTS 'root'@'localhost' IDENTIFIED BY "+quote(a.Root),
		"GRANT ALL ON *.* TO 'root'@'localhost' WITH GRANT OPTION")
	return append(statements, AccountStatements(a, requireTLS)...)
}

// EndBackups ends the sessions of backups on this server, and so every lock that they hold: a dump holds metadata locks that stop an
// applier and delay changes of tables. Call it before a site becomes the active one. It returns how many sessions it ended.
func (db *DB) EndBackups(ctx context.Context) (ended int, err error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	err = db.onFresh(ctx, func(conn *sql.Conn) error {
		ids, err := queryNumbers(ctx, conn, "SELECT PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_USER = '"+AccountBackup+"'")
		if err != nil {
			return err
		}
		for _, id := range ids {
			_, err := conn.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
			if err != nil && number(err) != numberNoSuchThread {
				return err
			}
			ended++
		}
		return nil
	})
	if err != nil {
		return ended, fmt.Errorf("end backups on %s: %w", db.target, err)
	}
	return ended, nil
}

// Pool is an ordinary pool of connections to a server, for programs that need more statements than this package has. It does no I/O.
func Pool(t Target) (*sql.DB, error) {
	db, err := Open(t)
	if err != nil {
		return nil, err
	}
	return db.pool, nil
}
