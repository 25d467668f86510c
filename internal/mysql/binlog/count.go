// SPDX-License-Identifier: Apache-2.0

// Package binlog reads the binary log of a server over the replication protocol, as a replica does: decrypted, and only
// the transactions that the caller asks for. It counts rows and keeps none of them; nothing of their content gets into an
// error.
package binlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// Errors that callers branch on. Another try gives the same error.
var (
	// ErrPurged says that the server has purged the binary logs of some of the transactions.
	ErrPurged = errors.New("the binary log of some of the transactions is purged")
	// ErrUnknown says that the server never had some of the transactions, or no longer has them.
	ErrUnknown = errors.New("the server does not have some of the transactions")
	// ErrTooLarge says that a limit was reached.
	ErrTooLarge = errors.New("there is more than may be read")
	// ErrUnreadable says that an event could not be understood.
	ErrUnreadable = errors.New("the binary log holds an event that cannot be read")
	// ErrIncomplete says that the server did not send all that was asked for.
	ErrIncomplete = errors.New("the server did not send all of the transactions")
)

// Table counts the changed rows of one table.
type Table struct {
	Schema, Name               string
	Inserted, Updated, Deleted int64
}

func (t Table) rows() int64 { return t.Inserted + t.Updated + t.Deleted }

// Counts is what transactions changed.
type Counts struct {
	// Tables are sorted by the number of rows, most first, then by name.
	Tables []Table
	// Rest sums up the tables that did not fit.
	Rest Table
	// RestTables is the least number of those tables.
	RestTables int
	// Statements counts changes that are not rows: DDL, and changes that were logged as statements.
	Statements int64
}

// Limits bound what is read.
type Limits struct {
	// Tables is how many tables are counted each on its own.
	Tables int
	// Bytes is how many bytes are read at most, EventBytes how large one event may be, unpacked.
	Bytes, EventBytes int64
}

// Count counts the rows that transactions changed. The target is the server's ordinary port, with an account that has
// REPLICATION SLAVE. It takes no longer than ctx.
func Count(ctx context.Context, target mysql.Target, want gtid.Set, limits Limits) (Counts, error) {
	if want.IsEmpty() {
		return Counts{}, nil
	}
	c, err := count(ctx, target, want, limits)
	if err != nil {
		return Counts{}, fmt.Errorf("count rows on %s: %w", target, err)
	}
	return c, nil
}

func count(ctx context.Context, target mysql.Target, want gtid.Set, limits Limits) (Counts, error) {
	s, err := connect(ctx, target)
	if err != nil {
		return Counts{}, err
	}
	defer s.close()
	exclude, err := s.exclude(want)
	if err != nil {
		return Counts{}, err
	}
	if err := s.dump(exclude); err != nil {
		return Counts{}, err
	}
	t := newTally(want, limits)
	if err := s.each(limits, t.take); err != nil {
		return Counts{}, err
	}
	return t.counts()
}

// tableName is a table by its name.
type tableName struct{ schema, name string }

// tally adds up events.
type tally struct {
	want   gtid.Set
	limits Limits
	// wanted is true while the events belong to a transaction that the caller asked for.
	wanted bool
	found  int64
	reader parser
	// format is how the present events are written; unpacked is how many bytes compressed transactions have held so far.
	format   format
	unpacked int64

	tables     map[tableName]*Table
	rest       Table
	restTables map[tableName]bool
	statements int64
}

func newTally(want gtid.Set, limits Limits) *tally {
	return &tally{want: want, limits: limits, tables: map[tableName]*Table{}, restTables: map[tableName]bool{}}
}

// spare is how many times as many tables are counted while reading than are returned, so that the largest are kept and
// not the first.
const spare = 16

func (t *tally) table(schema, name string) *Table {
	key := tableName{schema, name}
	if known := t.tables[key]; known != nil {
		return known
	}
	if len(t.tables) >= t.limits.Tables*spare {
		if len(t.restTables) < t.limits.Tables*spare {
			t.restTables[key] = true
		}
		return &t.rest
	}
	fresh := &Table{Schema: schema, Name: name}
	t.tables[key] = fresh
	return fresh
}

// counts ends the count. If a wanted transaction did not come, the count would silently be too small: that is an error.
func (t *tally) counts() (Counts, error) {
	if want := t.want.Count(); t.found < want {
		return Counts{}, fmt.Errorf("%w: %d of %d came", ErrIncomplete, t.found, want)
	}
	out := Counts{Statements: t.statements, Rest: t.rest, RestTables: len(t.restTables)}
	for _, table := range t.tables {
		if table.rows() > 0 {
			out.Tables = append(out.Tables, *table)
		}
	}
	slices.SortFunc(out.Tables, func(a, b Table) int {
		return cmp.Or(cmp.Compare(b.rows(), a.rows()), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	if len(out.Tables) > t.limits.Tables {
		for _, table := range out.Tables[t.limits.Tables:] {
			out.Rest.Inserted += table.Inserted
			out.Rest.Updated += table.Updated
			out.Rest.Deleted += table.Deleted
			out.RestTables++
		}
		out.Tables = out.Tables[:t.limits.Tables]
	}
	return out, nil
}
