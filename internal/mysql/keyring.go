// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Key names one key of a keyring; the name says nothing about its content.
type Key struct{ ID, Owner string }

// KeyringStatus is what a server says of its keyring.
type KeyringStatus struct {
	// Component is the name of the component; it is empty if none is loaded.
	Component string
	// Active is true if the component could be initialised; a server starts even if it could not.
	Active bool
	// DataFile is the file that the component was configured with.
	DataFile string
	// ReadOnly is true if the component was configured so. It proves nothing: 9.7.4 writes a file that can be written all
	// the same.
	ReadOnly bool
	// Keys are those that the server knows of.
	Keys []Key
}

const (
	keyringStatusQuery = "SELECT STATUS_KEY, STATUS_VALUE FROM performance_schema.keyring_component_status"
	keyringKeysQuery   = "SELECT KEY_ID, COALESCE(KEY_OWNER, '') FROM performance_schema.keyring_keys"
)

// Keyring asks for the state of the keyring and for the names of its keys.
func (db *DB) Keyring(ctx context.Context) (KeyringStatus, error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	var st KeyringStatus
	err := db.pairs(ctx, keyringStatusQuery, st.take)
	if err == nil {
		err = db.pairs(ctx, keyringKeysQuery, func(id, owner string) { st.Keys = append(st.Keys, Key{ID: id, Owner: owner}) })
	}
	if err != nil {
		return KeyringStatus{}, fmt.Errorf("read keyring status of %s: %w", db.target, err)
	}
	return st, nil
}

func (st *KeyringStatus) take(key, value string) {
	switch key {
	case "Component_name":
		st.Component = value
	case "Component_status":
		st.Active = value == "Active"
	case "Data_file":
		st.DataFile = value
	case "Read_only":
		st.ReadOnly = value == "Yes"
	}
}

// pairs reads rows of two columns.
func (db *DB) pairs(ctx context.Context, query string, take func(a, b string)) error {
	rows, err := db.pool.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		take(a, b)
	}
	return rows.Err()
}

// Coverage is what a server says is encrypted.
type Coverage struct {
	// SystemTablespace covers the tablespace mysql and sys.sys_config, which MySQL makes unencrypted.
	SystemTablespace bool
	// Unencrypted counts the unencrypted user tablespaces, and the user tables in the system tablespace.
	Unencrypted int
	// RedoLog and BinaryLog are the settings. UndoLog is true only if every undo tablespace is encrypted, too.
	RedoLog, UndoLog, BinaryLog bool
}

// ours are the tablespaces that MySQL makes unencrypted and that EncryptSystemTablespaces encrypts.
const ours = "'mysql', 'sys/sys_config'"

const coverageQuery = `SELECT @@GLOBAL.innodb_redo_log_encrypt, @@GLOBAL.innodb_undo_log_encrypt, @@GLOBAL.binlog_encryption,
 (SELECT COUNT(*) FROM information_schema.INNODB_TABLESPACES WHERE SPACE_TYPE = 'Undo' AND ENCRYPTION <> 'Y'),
 (SELECT COUNT(*) FROM information_schema.INNODB_TABLESPACES WHERE NAME IN (` + ours + `) AND ENCRYPTION = 'Y'),
 (` + plainQuery + `) + (` + inSystemQuery + `)`

// inSystemQuery counts the tables of users in InnoDB's system tablespace, which cannot be encrypted: with innodb_file_per_table=OFF
// every new table, else those that name it. None of MySQL's own names there begins with a schema.
const inSystemQuery = `SELECT COUNT(*) FROM information_schema.INNODB_TABLES WHERE SPACE = 0 AND NAME LIKE '%/%'`

// plainQuery counts user tablespaces: neither the temporary one, nor undo, nor our own two.
const plainQuery = `SELECT COUNT(*) FROM information_schema.INNODB_TABLESPACES
 WHERE ENCRYPTION <> 'Y' AND SPACE_TYPE IN ('Single', 'General') AND NAME NOT IN (` + ours + `)`

// Coverage asks what is encrypted. It asks for no names: strangers may read the answer on its way.
func (db *DB) Coverage(ctx context.Context) (Coverage, error) {
	ctx, cancel := long(ctx)
	defer cancel()
	c, err := db.readCoverage(ctx)
	if err != nil {
		return Coverage{}, fmt.Errorf("read coverage of %s: %w", db.target, rightMissing(err))
	}
	return c, nil
}

func (db *DB) readCoverage(ctx context.Context) (Coverage, error) {
	var c Coverage
	var plainUndo, covered int
	err := db.pool.QueryRowContext(ctx, coverageQuery).Scan(&c.RedoLog, &c.UndoLog, &c.BinaryLog, &plainUndo, &covered, &c.Unencrypted)
	c.UndoLog, c.SystemTablespace = c.UndoLog && plainUndo == 0, covered == strings.Count(ours, ",")+1
	return c, err
}

// These statements encrypt what MySQL makes unencrypted: the data dictionary with all its names, and one table.
const (
	encryptDictionary = "ALTER TABLESPACE mysql ENCRYPTION = 'Y'"
	encryptSysConfig  = "ALTER TABLE sys.sys_config ENCRYPTION = 'Y'"
	encryptedQuery    = "SELECT COUNT(*) > 0 FROM information_schema.INNODB_TABLESPACES WHERE NAME = ? AND ENCRYPTION = 'Y'"
)

// EncryptionStatements do what EncryptSystemTablespaces does, while a data directory is made: they come after
// AccountStatements in the same init file.
func EncryptionStatements() []string { return []string{encryptDictionary, encryptSysConfig} }

// EncryptSystemTablespaces encrypts the data dictionary and sys.sys_config. That is DDL, which replicates: it refuses with
// ErrNotOpen unless the server accepts writes of clients. Calling again is safe.
//
// It returns only after the next checkpoint. If a clone begins before that, the recipient of MySQL 9.7.4 cannot start: its
// redo log holds the encryption of the data dictionary under the donor's key.
func (db *DB) EncryptSystemTablespaces(ctx context.Context) error {
	ctx, cancel := long(ctx)
	defer cancel()
	if err := db.onFresh(ctx, func(conn *sql.Conn) error { return encryptSystem(ctx, conn) }); err != nil {
		return fmt.Errorf("encrypt system tablespaces of %s: %w", db.target, rightMissing(err))
	}
	return nil
}

func encryptSystem(ctx context.Context, conn *sql.Conn) error {
	// A fence waits for a running statement: so one that waits for a lock itself must give up soon.
	if err := execAll(ctx, conn, "SET SESSION lock_wait_timeout = 1"); err != nil {
		return err
	}
	var altered bool
	for _, space := range []struct{ name, statement string }{{"mysql", encryptDictionary}, {"sys/sys_config", encryptSysConfig}} {
		var encrypted bool
		if err := conn.QueryRowContext(ctx, encryptedQuery, space.name).Scan(&encrypted); err != nil {
			return fmt.Errorf("look at %s: %w", space.name, err)
		}
		if encrypted {
			continue
		}
		// These flags are read last: our account could also write in a window of a replica, where the statement would be an
		// errant transaction.
		st, err := readVariables(ctx, conn)
		if err != nil {
			return fmt.Errorf("read flags: %w", err)
		}
		if !st.Writable() || st.OfflineMode {
			return ErrNotOpen
		}
		if err := execAll(ctx, conn, space.statement); err != nil {
			return err
		}
		altered = true
	}
	if !altered {
		return nil
	}
	return awaitCheckpoint(ctx, conn)
}

// AwaitCheckpoint waits until a recovery needs nothing that the server has written to its redo log by now. That may take a minute
// on a server that writes little, and longer with a large redo log.
func (db *DB) AwaitCheckpoint(ctx context.Context) error {
	if err := db.onFresh(ctx, func(conn *sql.Conn) error { return awaitCheckpoint(ctx, conn) }); err != nil {
		return fmt.Errorf("await checkpoint of %s: %w", db.target, err)
	}
	return nil
}

// checkpointPoll is how often awaitCheckpoint looks at the redo log.
const checkpointPoll = 200 * time.Millisecond

// awaitCheckpoint waits until a recovery needs nothing that is in the redo log now.
func awaitCheckpoint(ctx context.Context, conn *sql.Conn) error {
	now, err := logPosition(ctx, conn, "Innodb_redo_log_current_lsn")
	if err != nil {
		return err
	}
	ticker := time.NewTicker(checkpointPoll)
	defer ticker.Stop()
	for {
		checkpoint, err := logPosition(ctx, conn, "Innodb_redo_log_checkpoint_lsn")
		if err != nil || checkpoint >= now {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a checkpoint: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

func logPosition(ctx context.Context, conn *sql.Conn, name string) (int64, error) {
	var position int64
	if err := conn.QueryRowContext(ctx, "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = ?", name).Scan(&position); err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return position, nil
}

// RotateMasterKeys gives the server new master keys, of InnoDB and of its binary logs, and proves that this made no
// transaction (I20). It refuses with ErrNoWindow unless the server is in a window (BeginWindow): clients must not be able to
// write, and the statement must neither replicate nor count as one of this server's own. On a sealed server it fails with ErrSealed.
//
// It fails with ErrLocked if a backup or DDL, also of replication, keeps it waiting. After ErrHalfRotated, RotateBinaryLogKey does
// the rest; after any other error both keys may be rotated again. No statement runs on, unless the error says that too.
func (db *DB) RotateMasterKeys(ctx context.Context) error { return db.rotateKeys(ctx, false) }

// RotateBinaryLogKey is the rest of RotateMasterKeys after ErrHalfRotated. Without that key there is nothing to do.
func (db *DB) RotateBinaryLogKey(ctx context.Context) error { return db.rotateKeys(ctx, true) }

func (db *DB) rotateKeys(ctx context.Context, half bool) error {
	ctx, cancel := long(ctx)
	defer cancel()
	r := keyRotation{half: half}
	if err := r.whole(ctx, db.onFresh, db.endSession); err != nil {
		return fmt.Errorf("rotate master keys of %s: %w", db.target, rightMissing(err))
	}
	return nil
}

// whole rotates on a connection of its own, and leaves behind neither a running statement nor a stopped receiver.
func (r *keyRotation) whole(ctx context.Context, onFresh func(context.Context, func(*sql.Conn) error) error, end func(context.Context, uint64) error) error {
	err := onFresh(ctx, func(conn *sql.Conn) error {
		if err := conn.QueryRowContext(ctx, sessionQuery).Scan(&r.session); err != nil {
			return fmt.Errorf("read own number: %w", err)
		}
		return r.run(ctx, conn)
	})
	var goesOn error
	if err != nil && r.session != 0 && (ctx.Err() != nil || r.stopped && number(err) == 0) {
		goesOn = end(ctx, r.session) // no answer came, or the caller gave up: the keys must not be rotated outside the window
	}
	if r.stopped && goesOn == nil {
		// This runs on every way out. While the key may still be rotated, the receiver stays stopped (I8), and Follow starts it later.
		starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		err = errors.Join(err, onFresh(starting, func(conn *sql.Conn) error { return execAll(starting, conn, startReceiver) }))
		cancel()
	}
	return errors.Join(err, goesOn)
}

const (
	// endTimeout bounds how long a killed session may take to end, because it first writes headers of tablespaces; endPoll is how often to look.
	endTimeout = 30 * time.Second
	endPoll    = 50 * time.Millisecond
	// ownSession is true while the session exists and is of this account: a new mysqld uses the same numbers again.
	ownSession = "SELECT COUNT(*) > 0 FROM performance_schema.threads WHERE PROCESSLIST_ID = ? AND PROCESSLIST_USER = ?"
)

// endSession kills a session of this account whose client has gone, and waits until it has ended.
func (db *DB) endSession(ctx context.Context, id uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	err := db.onFresh(ctx, func(conn *sql.Conn) error {
		ticker := time.NewTicker(endPoll)
		defer ticker.Stop()
		for {
			var there bool
			if err := conn.QueryRowContext(ctx, ownSession, id, db.target.User).Scan(&there); err != nil || !there {
				return err
			}
			if err := execAll(ctx, conn, fmt.Sprintf("KILL %d", id)); err != nil && number(err) != numberNoSuchThread {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
		}
	})
	if err != nil {
		return fmt.Errorf("end session %d, which may still rotate: %w", id, err)
	}
	return nil
}

const (
	sqlLogBinOff = "SET SESSION sql_log_bin = 0"
	// boundRotation bounds the wait for each lock: the default is a year, and a fence queues behind any session that waits.
	boundRotation   = "SET SESSION lock_wait_timeout = 5"
	rotateInnoDB    = "ALTER INSTANCE ROTATE INNODB MASTER KEY"
	rotateBinaryLog = "ALTER INSTANCE ROTATE BINLOG MASTER KEY"
	stopReceiver    = "STOP REPLICA IO_THREAD"
	startReceiver   = "START REPLICA IO_THREAD"
	sessionQuery    = "SELECT CONNECTION_ID()"
	rotationQuery   = `SELECT @@GLOBAL.binlog_encryption,
 EXISTS (SELECT 1 FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = '' AND SERVICE_STATE <> 'OFF')`
)

// keyRotation is one rotation of the master keys of a server.
type keyRotation struct {
	// half is true if InnoDB's key is already rotated: each rotation adds a key, which the keyring keeps.
	half bool
	// session is the number of the session in which it runs; stopped is true once it may have stopped the receiver.
	session uint64
	stopped bool
}

func (r *keyRotation) run(ctx context.Context, conn *sql.Conn) error {
	// This comes first: nothing on this connection may ever get into the binary log.
	if err := execAll(ctx, conn, sqlLogBinOff, boundRotation); err != nil {
		return err
	}
	before, err := readVariables(ctx, conn)
	if err != nil {
		return fmt.Errorf("read flags: %w", err)
	}
	if before.SuperReadOnly || !before.ReadOnly || !before.OfflineMode {
		return ErrNoWindow
	}
	if err := r.rotate(ctx, conn); err != nil {
		switch number(err) {
		case numberNoMasterKey, numberNoBinlogKey:
			return fmt.Errorf("%w: %w", ErrSealed, err)
		case numberLockWaitTimeout:
			return fmt.Errorf("%w: %w", ErrLocked, err)
		}
		return err
	}
	after, err := readVariables(ctx, conn)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	// Transactions that replication applies meanwhile carry the UUIDs of other servers.
	added := after.Executed.Subtract(before.Executed).String()
	if strings.Contains(added, strings.ToLower(before.ServerUUID)) {
		return fmt.Errorf("%w: %s", ErrGTIDAdded, added)
	}
	return nil
}

// rotate rotates the existing keys. A new key of the binary log also begins new relay logs, even in the middle of a transaction
// that is being received. The applier then deletes the log with its head, and cannot start again from the rest: if the source were
// lost then, the received transactions could not be applied (I8). So the receiver is stopped meanwhile.
func (r *keyRotation) rotate(ctx context.Context, conn *sql.Conn) error {
	var binaryLog, receives bool
	if err := conn.QueryRowContext(ctx, rotationQuery).Scan(&binaryLog, &receives); err != nil {
		return fmt.Errorf("read binlog_encryption: %w", err)
	}
	if !r.half {
		if err := execAll(ctx, conn, rotateInnoDB); err != nil {
			return err
		}
	}
	if !binaryLog { // without the setting there is no such key, and MySQL refuses
		return nil
	}
	statements := []string{rotateBinaryLog}
	if receives {
		r.stopped, statements = true, []string{stopReceiver, rotateBinaryLog}
	}
	if err := execAll(ctx, conn, statements...); err != nil {
		return fmt.Errorf("%w: %w", ErrHalfRotated, err)
	}
	return nil
}

// rightMissing marks an error that means that our account lacks a right.
func rightMissing(err error) error {
	if n := number(err); n == numberRightMissing || n == numberTableDenied {
		return fmt.Errorf("%w: %w", ErrRightMissing, err)
	}
	return err
}
