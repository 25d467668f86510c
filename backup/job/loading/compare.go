// SPDX-License-Identifier: Apache-2.0

package loading

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// compare asks the server whether it holds what the backup says.
func (l *loading) compare(ctx context.Context) error {
	want, err := gtid.Parse(l.backup.Manifest.GTIDExecuted)
	if err != nil {
		return terms.Fail(terms.Reason(bucket.Damaged), err)
	}
	if err := l.compareGTID(ctx, want); err != nil {
		return err
	}
	if !l.facts.Counted {
		have, err := l.server.Tables(ctx)
		if err != nil {
			return err
		}
		return compare(l.facts.Tables, have)
	}
	have, err := l.server.Count(ctx, l.Report)
	if err != nil {
		return err
	}
	merged, err := l.server.Merged(ctx)
	if err != nil {
		return err
	}
	return compare(l.facts.Tables, withoutMerged(have, merged, l.facts.Tables))
}

// withoutMerged leaves out MERGE tables that the backup does not name. They have no rows of their own, and mysqldump writes none for them, so they are
// not among the tables that were counted as the dump was made.
func withoutMerged(have, merged, want []terms.TableRows) []terms.TableRows {
	in := func(all []terms.TableRows, t terms.TableRows) bool {
		return slices.ContainsFunc(all, func(o terms.TableRows) bool { return o.Schema == t.Schema && o.Table == t.Table })
	}
	return slices.DeleteFunc(slices.Clone(have), func(t terms.TableRows) bool { return in(merged, t) && !in(want, t) })
}

func (l *loading) compareGTID(ctx context.Context, want gtid.Set) error {
	var executed string
	if err := l.server.Pool().QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&executed); err != nil {
		return terms.Fail(terms.ServerFailed, err)
	}
	have, err := gtid.Parse(executed)
	if err != nil {
		return err
	}
	if !have.Equal(want) {
		return terms.Fail(terms.Differs, fmt.Errorf("the server has executed %.200q, and the backup holds %.200q", have.String(), want.String()))
	}
	return nil
}

// compare says how the tables that were restored differ from those of the backup; nil if they do not.
func compare(want, have []terms.TableRows) error {
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
	return terms.Fail(terms.Differs, fmt.Errorf("what was loaded is not what the backup holds: %s%s", strings.Join(differ, ", "), more))
}
