// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

// MaxPassword is how many characters a password of ours may have: the receiver of a replica takes no more.
const MaxPassword = maxSourcePassword

// Accepts tells whether the server takes this account and password. What it refuses to an account that it knows by then, as while it
// is offline or has too many sessions of it, counts as taken.
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

// IntroducePassword has an account take a second password beside the one of the target, which stays valid at every moment. The
// server has to be open: the change reaches the others through its binary log, which holds no password. It may be done again,
// from whatever state: the first statement sees to it that the password which is kept is the target's.
func IntroducePassword(ctx context.Context, t Target, next string) error {
	return alterOwn(ctx, t, "introduce a password", next,
		"ALTER USER USER() IDENTIFIED BY "+quote(t.Password),
		"ALTER USER USER() IDENTIFIED BY "+quote(next)+" RETAIN CURRENT PASSWORD")
}

// RetirePasswords has an account take the password of the target and no other. It may be done again, from whatever state.
func RetirePasswords(ctx context.Context, t Target) error {
	return alterOwn(ctx, t, "retire a password", t.Password,
		"ALTER USER USER() IDENTIFIED BY "+quote(t.Password),
		"ALTER USER USER() DISCARD OLD PASSWORD")
}

// alterOwn has an account change itself, which needs no right over others. The first statement only sets what stands already; a
// server that keeps a history of passwords refuses that, and the second is sent nevertheless.
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

// asAccount does something over a connection of its own.
func asAccount(ctx context.Context, t Target, do func(context.Context, *sql.Conn) error) error {
	t.Passwords = nil // this one, and no other
	db, err := Open(t)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, db.target.DialTimeout+db.target.QueryTimeout)
	defer cancel()
	return db.onFresh(ctx, func(conn *sql.Conn) error { return do(ctx, conn) })
}
