// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	driver "github.com/go-sql-driver/mysql"
)

// Conditions on what a server tells of itself, for the site that is copied and for the server here.
const (
	// UserSchemas is true of the databases in information_schema.schemata that users made.
	UserSchemas = "schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', 'ndbinfo')"
	// HeldBack is true of events that run nowhere on a server because it replicated them. The second name is that of older series.
	HeldBack = "status IN ('REPLICA_SIDE_DISABLED', 'REPLICA SIDE DISABLED', 'SLAVESIDE_DISABLED')"
)

// Number is that of an error of a server; 0 if it is none.
func Number(err error) uint16 {
	if my, ok := errors.AsType[*driver.MySQLError](err); ok {
		return my.Number
	}
	return 0
}

// QuoteName quotes a name.
func QuoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Run runs statements one after the other.
func Run(ctx context.Context, conn *sql.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Texts are the values of the first column.
func Texts(ctx context.Context, conn *sql.Conn, query string, args ...any) (out []string, err error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}
