// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// tablesOf lists the base tables of users.
func (s *server) tablesOf(ctx context.Context) (out []TableRows, err error) {
	conn, err := s.conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(ctx, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND "+ //nolint:gosec // all parts are constants
		strings.ReplaceAll(userSchemas, "schema_name", "table_schema")+" ORDER BY table_schema, table_name")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var t TableRows
		if err := rows.Scan(&t.Schema, &t.Table); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// count counts the rows of all tables, a few at a time.
func (s *server) count(ctx context.Context, r *reporter) ([]TableRows, error) {
	tables, err := s.tablesOf(ctx)
	if err != nil {
		return nil, fail(ServerFailed, fmt.Errorf("list tables: %w", err))
	}
	r.begin(Checking, int64(len(tables)))
	return tables, s.each(ctx, tables, func(ctx context.Context, t *TableRows) error {
		defer r.add(1)
		err := s.pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+quoteName(t.Schema)+"."+quoteName(t.Table)).Scan(&t.Rows)
		return fail(Differs, named(t, err))
	})
}

func named(t *TableRows, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %s.%s: %w", t.Schema, t.Table, err)
}

// each does something with every table, a few at a time, and stops at the first error.
func (s *server) each(ctx context.Context, tables []TableRows, do func(context.Context, *TableRows) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(4, max(2, runtime.NumCPU())) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(tables)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(ctx, &tables[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// compare says how the tables that were restored differ from those of the backup; nil if they do not.
func compare(want, have []TableRows) error {
	type key struct{ schema, table string }
	left := map[key]int64{}
	for _, t := range have {
		left[key{t.Schema, t.Table}] = t.Rows
	}
	var differ []string
	for _, t := range want {
		k := key{t.Schema, t.Table}
		rows, there := left[k]
		delete(left, k)
		switch {
		case !there:
			differ = append(differ, fmt.Sprintf("%s.%s is missing", t.Schema, t.Table))
		case rows != t.Rows:
			differ = append(differ, fmt.Sprintf("%s.%s has %d rows instead of %d", t.Schema, t.Table, rows, t.Rows))
		}
	}
	for k := range left {
		differ = append(differ, fmt.Sprintf("%s.%s was not in the backup", k.schema, k.table))
	}
	if len(differ) == 0 {
		return nil
	}
	more := ""
	if n := len(differ) - 5; n > 0 {
		differ, more = differ[:5], fmt.Sprintf(", and %d more", n)
	}
	return fail(Differs, fmt.Errorf("what was loaded is not what the backup holds: %s%s", strings.Join(differ, ", "), more))
}

// checkTables has InnoDB read every page of every table and index.
func (s *server) checkTables(ctx context.Context, tables []TableRows, r *reporter) error {
	r.begin(Checking, int64(len(tables)))
	return s.each(ctx, tables, func(ctx context.Context, t *TableRows) error {
		defer r.add(1)
		rows, err := s.pool.QueryContext(ctx, "CHECK TABLE "+quoteName(t.Schema)+"."+quoteName(t.Table))
		if err != nil {
			return fail(Differs, named(t, err))
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var table, op, kind, text string
			if err := rows.Scan(&table, &op, &kind, &text); err != nil {
				return fail(ServerFailed, err)
			}
			if kind == "error" || kind == "status" && text != "OK" && !strings.Contains(text, "doesn't support check") {
				return fail(Differs, fmt.Errorf("CHECK TABLE %s: %s", table, clip(text, 200)))
			}
		}
		return fail(Differs, named(t, rows.Err()))
	})
}
