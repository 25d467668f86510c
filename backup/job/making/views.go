// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// A view whose table was dropped is not valid, and mysqldump ends at it. It still has a definition, which SHOW CREATE VIEW tells. So mysqldump
// leaves such views out, and the backup holds their definitions itself. Under the backup lock a view stays what it is.

// numberViewInvalid is that of a view that names what is not there, or what its definer may not see.
const numberViewInvalid = 1356

// invalidViews are the views that mysqldump cannot read.
func (s *source) invalidViews(ctx context.Context) (out []terms.View, err error) {
	all, err := userViews(ctx, s.held)
	if err != nil {
		return nil, s.explain(fmt.Errorf("list views: %w", err))
	}
	size := 0
	for _, v := range all {
		name := mysqld.QuoteName(v.Schema) + "." + mysqld.QuoteName(v.Name)
		err := readAway(ctx, s.held, "SHOW FIELDS FROM "+name)
		if err == nil {
			continue
		}
		if mysqld.Number(err) != numberViewInvalid {
			return nil, s.badView(name, err)
		}
		if strings.Contains(v.Schema+v.Name, ".") {
			// mysqldump is told which to leave out as schema.name, and might leave out a table too.
			return nil, s.badView(name, err)
		}
		var view, client string
		err = s.held.QueryRowContext(ctx, "SHOW CREATE VIEW "+name).Scan(&view, &v.Create, &client, &v.Collation)
		if err != nil {
			return nil, s.badView(name, err)
		}
		if size += len(v.Create); size > statementsMax {
			return nil, errors.New("the views of the site that are not valid are more than can be kept in memory")
		}
		out = append(out, v)
	}
	return out, nil
}

// badView names the view that keeps a dump from being made, with what to do. What the site itself is to blame for keeps its reason.
func (s *source) badView(name string, err error) error {
	if explained := s.explain(err); terms.ReasonOf(explained) != terms.Failed {
		return explained
	}
	return terms.Fail(terms.DumpFailed, fmt.Errorf("view %s cannot be read: repair it, or drop it with DROP VIEW %s: %w", name, name, err))
}

//nolint:gosec // only constants are put together
var viewsQuery = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'VIEW' AND " +
	strings.ReplaceAll(mysqld.UserSchemas, "schema_name", "table_schema") + " ORDER BY table_schema, table_name"

func userViews(ctx context.Context, conn *sql.Conn) (out []terms.View, err error) {
	rows, err := conn.QueryContext(ctx, viewsQuery)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v terms.View
		if err := rows.Scan(&v.Schema, &v.Name); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// readAway runs a query of which only the error matters.
func readAway(ctx context.Context, conn *sql.Conn, query string) (err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		continue
	}
	return rows.Err()
}

// namesShown is how many names a warning has.
const namesShown = 5

// warnInvalid tells people of the views.
func warnInvalid(views []terms.View) string {
	var names []string
	for _, v := range views[:min(len(views), namesShown)] {
		names = append(names, v.Schema+"."+v.Name)
	}
	more := ""
	if n := len(views) - namesShown; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "views that are not valid on the site: " + strings.Join(names, ", ") + more
}
