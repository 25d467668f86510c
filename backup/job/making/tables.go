// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// A restore is compared with what was read of the dump while it was made. If that is not what the site has, no restore would succeed: then there
// must be no backup.

//nolint:gosec // only constants are put together
var tablesQuery = "SELECT table_schema, table_name, IFNULL(engine = 'MRG_MYISAM', FALSE) FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND " +
	strings.ReplaceAll(mysqld.UserSchemas, "schema_name", "table_schema") + " ORDER BY table_schema, table_name"

// checkTables fails unless the tables that were read of the dump are those of the site, which has none made or dropped under the backup lock.
func (s *source) checkTables(ctx context.Context, dumped []terms.TableRows) (err error) {
	rows, err := s.held.QueryContext(ctx, tablesQuery)
	if err != nil {
		return s.explain(fmt.Errorf("list tables: %w", err))
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var have []siteTable
	for rows.Next() {
		var t siteTable
		if err := rows.Scan(&t.Schema, &t.Table, &t.merged); err != nil {
			return s.explain(err)
		}
		have = append(have, t)
	}
	if err := rows.Err(); err != nil {
		return s.explain(err)
	}
	if odd := oddTable(have, dumped); odd != "" {
		return terms.Fail(terms.DumpFailed, fmt.Errorf("the tables that were read of the dump are not those of the site: %s is only in one of both", odd))
	}
	return nil
}

// siteTable is a table of the site. mysqldump writes no rows of one that is merged of others.
type siteTable struct {
	terms.TableRows
	merged bool
}

// oddTable names a table that only the site has, or only the dump, or the dump twice; empty if there is none.
func oddTable(have []siteTable, dumped []terms.TableRows) string {
	type key struct{ schema, table string }
	left := map[key]bool{}
	for _, t := range have {
		left[key{t.Schema, t.Table}] = t.merged
	}
	for _, t := range dumped {
		k := key{t.Schema, t.Table}
		if _, there := left[k]; !there {
			return t.Schema + "." + t.Table
		}
		delete(left, k)
	}
	for _, t := range have {
		if merged, there := left[key{t.Schema, t.Table}]; there && !merged {
			return t.Schema + "." + t.Table
		}
	}
	return ""
}
