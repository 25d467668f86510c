// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// Tables lists the base tables of users.
func (s *Server) Tables(ctx context.Context) (out []terms.TableRows, err error) {
	return s.TablesThat(ctx, "")
}

// Merged lists the tables of the engine MERGE, which only show the rows of others.
func (s *Server) Merged(ctx context.Context) ([]terms.TableRows, error) {
	return s.TablesThat(ctx, "engine = 'MRG_MYISAM' AND ")
}

// TablesThat lists the tables that fit a condition, a constant, which ends with AND or is empty.
func (s *Server) TablesThat(ctx context.Context, that string) (out []terms.TableRows, err error) {
	conn, err := s.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(ctx, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND "+that+ //nolint:gosec // all parts are constants
		strings.ReplaceAll(UserSchemas, "schema_name", "table_schema")+" ORDER BY table_schema, table_name")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var t terms.TableRows
		if err := rows.Scan(&t.Schema, &t.Table); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// Count counts the rows of all tables, a few at a time.
func (s *Server) Count(ctx context.Context, r *terms.Reporter) ([]terms.TableRows, error) {
	tables, err := s.Tables(ctx)
	if err != nil {
		return nil, terms.Fail(terms.ServerFailed, fmt.Errorf("list tables: %w", err))
	}
	r.Begin(terms.Checking, int64(len(tables)))
	return tables, s.each(ctx, tables, func(ctx context.Context, t *terms.TableRows) error {
		defer r.Add(1)
		err := s.pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+QuoteName(t.Schema)+"."+QuoteName(t.Table)).Scan(&t.Rows)
		return terms.Fail(terms.Differs, named(t, err))
	})
}

func named(t *terms.TableRows, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %s.%s: %w", t.Schema, t.Table, err)
}

// each does something with every table, a few at a time, and stops at the first error.
func (s *Server) each(ctx context.Context, tables []terms.TableRows, do func(context.Context, *terms.TableRows) error) error {
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

// Check has InnoDB read every page of every table and index.
func (s *Server) Check(ctx context.Context, tables []terms.TableRows, r *terms.Reporter) error {
	r.Begin(terms.Checking, int64(len(tables)))
	return s.each(ctx, tables, func(ctx context.Context, t *terms.TableRows) error {
		defer r.Add(1)
		rows, err := s.pool.QueryContext(ctx, "CHECK TABLE "+QuoteName(t.Schema)+"."+QuoteName(t.Table))
		if err != nil {
			return terms.Fail(terms.Differs, named(t, err))
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var table, op, kind, text string
			if err := rows.Scan(&table, &op, &kind, &text); err != nil {
				return terms.Fail(terms.ServerFailed, err)
			}
			if kind == "error" || kind == "status" && text != "OK" && !strings.Contains(text, "doesn't support check") {
				return terms.Fail(terms.Differs, fmt.Errorf("CHECK TABLE %s: %s", table, terms.Clip(text, 200)))
			}
		}
		return terms.Fail(terms.Differs, named(t, rows.Err()))
	})
}
