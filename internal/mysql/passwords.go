// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

// MaxPassword is how many characters our passwords may have: the receiver of a replica takes no more.
const MaxPassword = maxSourcePassword

// Accepts says whether the server takes this account and password. If it refuses only after it has checked the password, because it is
// offline or has too many sessions of the account, that counts as taken.
func Accepts(ctx context.Context, t Target) (bool, error) {
	err := asAccount(ctx, t, func(ctx context.Context, conn *sql.Conn) error { return conn.PingContext(ctx) })
	switch number(err) {
	case numberAccessDenied:
		return false, nil
	case numberOffline, numberUserLimit:
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("log in at %s: %w", t, withoutSecret(err, t.Password))
	}
	return true, nil
}

// IntroducePassword gives an account a second password beside the target's, which stays valid at every moment. The server has to
// be open: the change reaches the others through its binary log, which holds no password. It may be called again in any state:
// the first statement makes sure that the password which is retained is the target's.
func IntroducePassword(ctx context.Context, t Target, next string) error {
	return alterOwn(ctx, t, "introduce a password", next,
		"ALTER USER USER() IDENTIFIED BY "+quote(t.Password),
		"ALTER USER USER() IDENTIFIED BY "+quote(next)+" RETAIN CURRENT PASSWORD")
}

// RetirePasswords makes an account take the target's password and no other. It may be called again in any state.
func RetirePasswords(ctx context.Context, t Target) error {
	return alterOwn(ctx, t, "retire a password", t.Password,
		"ALTER USER USER() IDENTIFIED BY "+quote(t.Password),
		"ALTER USER USER() DISCARD OLD PASSWORD")
}

// alterOwn makes an account change itself, which needs no right over others. The first statement sets a password that is valid already;
// a server that keeps a history of passwords refuses that, and alterOwn still sends the second one.
func alterOwn(ctx context.Context, t Target, what, secret, same, change string) error {
	err := asAccount(ctx, t, func(ctx context.Context, conn *sql.Conn) error {
		var closed bool
		if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only OR @@GLOBAL.super_read_only").Scan(&closed); err != nil {
			return err
		}
		if closed {
			return ErrNotOpen
		}
		// quote relies on backslashes being escapes.
		if _, err := conn.ExecContext(ctx, "SET SESSION sql_mode = ''"); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, same); err != nil && number(err) != numberPasswordHistory {
			return withoutSecret(err, t.Password)
		}
		_, err := conn.ExecContext(ctx, change)
		return withoutSecret(err, secret)
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, t, withoutSecret(err, t.Password))
	}
	return nil
}

// asAccount calls do with a connection of its own.
func asAccount(ctx context.Context, t Target, do func(context.Context, *sql.Conn) error) error {
	t.Passwords = nil // use t.Password and no other
	db, err := Open(t)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, db.target.DialTimeout+db.target.QueryTimeout)
	defer cancel()
	return db.onFresh(ctx, func(conn *sql.Conn) error { return do(ctx, conn) })
}
