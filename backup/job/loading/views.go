// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// missingTable is the table that stands in for what a view needs while the view is made.
const missingTable = "what this view needs was not there"

// restoreViews makes the views that were not valid on the site. MySQL makes no view of a table that is not there, so most of them come back as
// one of the same name that is not valid either, and whose definition shows that of the site: a statement of the archive that drops or
// replaces the view finds it, and a person finds its definition.
func (l *loading) restoreViews(ctx context.Context, conn *sql.Conn) error {
	for _, v := range l.facts.Views {
		if err := restoreView(ctx, conn, v); err != nil {
			if mysqld.Number(err) == 0 {
				return terms.Fail(terms.LoadFailed, fmt.Errorf("make a view: %w", err))
			}
			l.warnings = append(l.warnings, fmt.Sprintf("view %s.%s was left out: error %d", v.Schema, v.Name, mysqld.Number(err)))
		}
	}
	if len(l.facts.Views) == 0 {
		return nil
	}
	return terms.Fail(terms.LoadFailed, mysqld.Run(ctx, conn, "SET NAMES utf8mb4"))
}

func restoreView(ctx context.Context, conn *sql.Conn, v terms.View) error {
	stand := mysqld.QuoteName(v.Schema) + "." + mysqld.QuoteName(missingTable)
	err := mysqld.Run(ctx, conn, "USE "+mysqld.QuoteName(v.Schema), "SET NAMES utf8mb4", "CREATE TABLE "+stand+" (id INT PRIMARY KEY)",
		"SET SESSION collation_connection = "+text(v.Collation))
	if err != nil {
		return err
	}
	// One that came back so before is made as it is: its table is there now. The account of this load will be gone, so it defines none.
	err = mysqld.Run(ctx, conn, v.Create)
	if mysqld.Number(err) != 0 {
		err = mysqld.Run(ctx, conn, "SET NAMES utf8mb4", "CREATE DEFINER = 'root'@'localhost' SQL SECURITY INVOKER VIEW "+mysqld.QuoteName(v.Schema)+"."+mysqld.QuoteName(v.Name)+
			" AS SELECT "+text(v.Create)+" AS definition FROM "+stand)
	}
	if dropped := mysqld.Run(ctx, conn, "DROP TABLE "+stand); err == nil {
		err = dropped
	}
	return err
}
