// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// Look is what a server says about an account.
type Look struct {
	// Accepts is true if the server takes the password, Database if the account sees its database.
	Accepts, Database bool
}

// See logs in as the account of the target and looks for its database.
func See(ctx context.Context, t mysql.Target, database string) (Look, error) {
	accepts, err := mysql.Accepts(ctx, t)
	if err != nil || !accepts {
		return Look{}, err
	}
	out := Look{Accepts: true}
	err = as(ctx, t, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT COUNT(*) > 0 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", database).Scan(&out.Database)
	})
	return out, err
}

// ErrNoRight says that the account may not make its database.
var ErrNoRight = errors.New("the account has no right on its database")

// Numbers of MySQL's errors.
const (
	numberDatabaseDenied = 1044
	numberCommandDenied  = 1142
	numberRightMissing   = 1227
)

// Make makes the database, as the account of the target, unless it exists. It is only for the open active site: it checks that first, and a
// server that is not open refuses the statement too, because no right lets this account pass read-only.
func Make(ctx context.Context, t mysql.Target, database string) error {
	return as(ctx, t, func(conn *sql.Conn) error {
		var closed bool
		if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only OR @@GLOBAL.super_read_only").Scan(&closed); err != nil {
			return err
		}
		if closed {
			return mysql.ErrNotOpen
		}
		_, err := conn.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS `"+database+"`")
		if refused, is := errors.AsType[*driver.MySQLError](err); is {
			switch refused.Number {
			case numberDatabaseDenied, numberCommandDenied, numberRightMissing:
				return ErrNoRight
			}
		}
		return err
	})
}

// as calls do with a connection of its own, as the account of the target.
func as(ctx context.Context, t mysql.Target, do func(*sql.Conn) error) error {
	t.Passwords = nil // use t.Password and no other
	pool, err := mysql.Pool(t)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	conn, err := pool.Conn(ctx)
	if err == nil {
		defer func() { _ = conn.Close() }()
		err = do(conn)
	}
	if err != nil {
		return fmt.Errorf("as the application at %s: %w", t, err)
	}
	return nil
}
