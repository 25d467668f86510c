// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// queryTimeout bounds the query of a verification.
const queryTimeout = 10 * time.Minute

// Verify restores a backup into a scratch server, has every page of it read, and runs the query. Nothing is left of it.
func (l *Loader) Verify(ctx context.Context) (terms.Result, error) {
	one, err := l.restore(ctx)
	defer l.sweepScratch(err)
	if err != nil {
		return terms.Result{}, err
	}
	defer one.server.Kill()
	res := one.result()
	tables, err := one.server.Tables(ctx)
	if err != nil {
		return res, terms.Fail(terms.ServerFailed, err)
	}
	if err := one.server.Check(ctx, tables, l.Report); err != nil {
		return res, err
	}
	return res, one.query(ctx)
}

// sweepScratch removes the copy. Of a directory that was not ours nothing was touched, and nothing is.
func (l *Loader) sweepScratch(err error) {
	dir := l.Config.Server.Dir
	if _, mark := os.Stat(dir + mysqld.PartialSuffix); mark != nil || terms.ReasonOf(err) == terms.TargetNotEmpty {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
	_ = os.Remove(dir + mysqld.PartialSuffix)
}

// queryTells are the errors of a query whose text says nothing but what stands in the query: its syntax, and what it names.
var queryTells = []uint16{numberSyntax, numberNoTable, numberNoDatabase, numberNoRoutine, numberNoColumn, numberConnectionKilled, numberTooSlow}

// queryError leaves out the text of the other errors. It may quote values. A person who may write a query, and nothing else, would read by its
// mistakes what is in the tables.
func queryError(err error) error {
	if n := mysqld.Number(err); n != 0 && !slices.Contains(queryTells, n) {
		return fmt.Errorf("error %d (text withheld: it may hold data)", n)
	}
	return err
}

// query runs the user's query in a transaction that can only read, on the copy.
func (l *loading) query(ctx context.Context) error {
	if l.Config.Query == "" {
		return nil
	}
	l.Report.Begin(terms.Checking, 0)
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := l.server.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := mysqld.Run(ctx, conn, "START TRANSACTION READ ONLY"); err != nil {
		return terms.Fail(terms.ServerFailed, err)
	}
	rows, err := conn.QueryContext(ctx, l.Config.Query)
	if err != nil {
		return terms.Fail(terms.QueryFailed, fmt.Errorf("the query of the verification: %w", queryError(err)))
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return terms.Fail(terms.QueryFailed, errors.Join(errors.New("the query of the verification returned no row"), queryError(rows.Err())))
	}
	columns, err := rows.Columns()
	if err != nil {
		return terms.Fail(terms.QueryFailed, err)
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = &sql.RawBytes{}
	}
	if err := rows.Scan(values...); err != nil {
		return terms.Fail(terms.QueryFailed, err)
	}
	if first, ok := values[0].(*sql.RawBytes); !ok || *first == nil || len(*first) == 0 || string(*first) == "0" {
		// What it returned is data of users, and is not shown.
		return terms.Fail(terms.QueryFailed, errors.New("the query of the verification returned NULL, 0 or nothing in its first column"))
	}
	return nil
}
