// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"
)

// Errors that callers branch on.
var (
	// ErrReplicaConfigured says that a server still has a replication channel, so writes are not opened on it.
	ErrReplicaConfigured = errors.New("a replication channel is configured")
	// ErrWritable says that a server accepts writes where it must not.
	ErrWritable = errors.New("the server accepts writes")
	// ErrCloneOutcomeUnknown says that a clone may or may not have happened: look at CloneStatus once the server is back.
	ErrCloneOutcomeUnknown = errors.New("outcome of the clone is unknown")
	// ErrCloneHangs says that a clone could not be cancelled: only the end of the server ends it.
	ErrCloneHangs = errors.New("the server did not cancel the clone")
	// ErrNotFenced says that super_read_only=ON could not be set and read back in time.
	ErrNotFenced = errors.New("not fenced")
	// ErrRefused says that MySQL would not take a name or password, or would silently cut it.
	ErrRefused = errors.New("refused before it was sent")
	// ErrNotOpen says that a server does not accept writes of clients where it has to.
	ErrNotOpen = errors.New("the server does not accept writes")
	// ErrNotFollowing says that a server does not receive from the given source.
	ErrNotFollowing = errors.New("the server does not follow that source")
	// ErrNoWindow says that a server is not in a window: offline, read-only to clients, writable to us.
	ErrNoWindow = errors.New("the server is not in a window")
	// ErrRightMissing says that our account lacks a right that encryption needs.
	ErrRightMissing = errors.New("our account lacks a right")
	// ErrSealed says that a server could not write its keyring.
	ErrSealed = errors.New("the keyring cannot be written")
	// ErrLocked says that a backup or DDL blocks the statement for now.
	ErrLocked = errors.New("a backup or a change of a table is under way")
	// ErrHalfRotated says that InnoDB has a new master key, and that the binary logs have none, as far as is known.
	ErrHalfRotated = errors.New("InnoDB's master key was rotated, and that of the binary logs was not")
	// ErrGTIDAdded says that a rotation made a transaction of its own, which it must not: the site has to be cloned again.
	ErrGTIDAdded = errors.New("the rotation left a transaction")
)

// Error numbers of the server that the code here reacts to.
const (
	numberNoSuchTable     = 1146
	numberUnknownVariable = 1193
	numberSyntax          = 1064
	numberNoSuchThread    = 1094
	numberLockWaitTimeout = 1205
	numberNotSupervised   = 3707
	numberRightMissing    = 1227
	numberTableDenied     = 1142
	numberNoMasterKey     = 3185
	numberNoBinlogKey     = 3807
	numberUserLimit       = 1226
	numberOffline         = 3032
	numberPasswordHistory = 3638
)

// number is the server's error number, or 0 if the error did not come from the server.
func number(err error) uint16 {
	if my, ok := errors.AsType[*driver.MySQLError](err); ok {
		return my.Number
	}
	return 0
}

// withoutSecret returns the error of a statement that contained a secret. The server quotes statements that it does not
// understand; withoutSecret replaces such an error and cuts its chain.
func withoutSecret(err error, secret string) error {
	if err == nil {
		return nil
	}
	n := number(err)
	if n == numberSyntax {
		return fmt.Errorf("error %d: the server did not understand the statement (text withheld)", n)
	}
	text := err.Error()
	if secret != "" && (strings.Contains(text, secret) || strings.Contains(text, quote(secret))) {
		return fmt.Errorf("error %d (text withheld)", n)
	}
	return err
}

// quote is a string literal for sql_mode without NO_BACKSLASH_ESCAPES.
func quote(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `'`, `''`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`, "\x00", `\0`)
	return "'" + r.Replace(s) + "'"
}
