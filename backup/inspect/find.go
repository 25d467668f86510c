// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// chosen is a file of the history, with the transactions of it that no earlier file has.
type chosen struct {
	archive.Log
	fresh gtid.Set
}

// files are those of the history, in its order.
func (q *question) files() []chosen {
	var all []chosen
	var seen gtid.Set
	for _, log := range q.past.Files {
		fresh := log.Set.Intersect(q.past.Archived).Subtract(seen)
		seen = seen.Union(log.Set)
		if !fresh.IsEmpty() {
			all = append(all, chosen{log, fresh})
		}
	}
	return all
}

func (q *question) find(ctx context.Context, ask wire.AskFind) error {
	asked := 0
	for _, is := range []bool{ask.Drop != nil, !ask.Before.IsZero(), ask.Touching != nil} {
		if is {
			asked++
		}
	}
	if asked != 1 {
		return badRequest{errors.New("exactly one of drop, before and touching is asked for")}
	}
	if !ask.Before.IsZero() {
		return q.findTime(ctx, ask.Before)
	}
	f := &finder{question: q, ask: ask}
	for _, file := range q.files() {
		if ask.Epoch != 0 && file.Epoch != ask.Epoch || outside(file.Log, ask.Since, ask.Until) {
			f.previous, f.current = "", "" // what comes next is not behind it
			continue
		}
		f.file = file
		if err := q.read(ctx, file.Log, f); err != nil && !errors.Is(err, errDone) {
			return err
		}
		if q.out.full {
			break
		}
	}
	q.out.end.KeyBy = f.keyBy
	return nil
}

// outside is true if nothing of a file was committed in a span.
func outside(log archive.Log, since, until time.Time) bool {
	return !since.IsZero() && !log.Last().IsZero() && log.Last().Before(since) || !until.IsZero() && log.First().After(until)
}

// finder looks for what removed a table, or changed a table or a row.
type finder struct {
	*question
	ask  wire.AskFind
	file chosen
	// previous is the transaction of the history before, and current this one.
	previous, current string
	hit               bool
	keyBy             string
}

func (f *finder) begin(t archive.Transaction) (bool, error) {
	if t.GTID == "" || !f.file.fresh.Contains(t.ID) {
		return false, nil
	}
	if f.current != "" {
		f.previous = f.current
	}
	f.current, f.hit = t.GTID, false
	return !(!f.ask.Since.IsZero() && t.Committed.Before(f.ask.Since) || !f.ask.Until.IsZero() && t.Committed.After(f.ask.Until)), nil
}

func (f *finder) statement(s statement, _ string) error {
	if f.ask.Drop != nil {
		f.hit = f.hit || s.removes(*f.ask.Drop)
		return nil
	}
	f.hit = f.hit || s.names(f.ask.Touching.AskTable) || s.removes(f.ask.Touching.AskTable)
	return nil
}

func (f *finder) row(t *table, ch change) error {
	ask := f.ask.Touching
	if f.hit || ask == nil || !same(ask.AskTable, t.schema, t.name) {
		return nil
	}
	if len(ask.Key) == 0 {
		f.hit = true
		return nil
	}
	columns, by := keyOf(t, *ask)
	f.keyBy = by
	f.hit = matches(t, columns, ask.Key, ch.before) || matches(t, columns, ask.Key, ch.after)
	return nil
}

// large rows may be the ones: it is safer to tell of them than not to.
func (f *finder) large(t *table) error {
	if ask := f.ask.Touching; ask != nil && (t == nil || same(ask.AskTable, t.schema, t.name)) {
		f.hit = true
	}
	return nil
}

func (f *finder) end(t *wire.ArchivedTransaction) error {
	if !f.hit {
		return nil
	}
	t.Role, t.Previous = wire.RoleMatch, f.previous
	return f.out.transaction(t)
}

// keyOf are the columns to compare, and how that is said if the log does not tell the primary key.
func keyOf(t *table, ask wire.AskRow) (columns []int, by string) {
	switch {
	case ask.Column > 0:
		return []int{ask.Column - 1}, ""
	case len(t.key) > 0:
		return t.key, ""
	}
	for i := range ask.Key {
		columns = append(columns, i)
	}
	return columns, fmt.Sprintf("the first %d columns of the table: the binary log does not say what the primary key is (binlog_row_metadata=FULL does)", len(columns))
}

func matches(t *table, columns []int, key []string, cells []cell) bool {
	if cells == nil || len(columns) != len(key) {
		return false
	}
	for i, at := range columns {
		if at >= len(cells) || !t.columns[at].equals(cells[at], key[i]) {
			return false
		}
	}
	return true
}

// equals compares a value with what a person wrote: numbers as numbers are written, bytes also as 0x....
func (col column) equals(c cell, want string) bool {
	if c.null || c.absent || c.partial {
		return false
	}
	v, ok := col.read(c.raw)
	if !ok {
		return false
	}
	switch v.kind {
	case bytesValue:
		return string(c.raw) == want || strings.EqualFold("0x"+hex.EncodeToString(c.raw), want)
	case numberValue:
		if v.text == want {
			return true
		}
		a, err := strconv.ParseFloat(v.text, 64)
		b, other := strconv.ParseFloat(want, 64)
		return err == nil && other == nil && a == b && (a < 1<<53 && a > -1<<53)
	case momentValue, textValue, documentValue:
	}
	return v.text == want
}

// findTime finds the first transaction of the history that was committed after a time, and the one before it: the same as a restore to that
// time finds.
func (q *question) findTime(ctx context.Context, at time.Time) error {
	files := q.files()
	first := len(files)
	for i, file := range files {
		if file.Last().After(at) {
			first = i
			break
		}
	}
	f := &timeFinder{at: at}
	for _, file := range files[max(0, first-1):] { // the one before may end with the last transaction until then
		f.fresh = file.fresh
		if err := q.read(ctx, file.Log, f); err != nil && !errors.Is(err, errDone) {
			return err
		}
		if f.after != nil {
			break
		}
	}
	for _, t := range []*wire.ArchivedTransaction{f.before, f.after} {
		if t == nil {
			continue
		}
		if err := q.out.transaction(t); err != nil {
			return err
		}
	}
	return nil
}

type timeFinder struct {
	at            time.Time
	fresh         gtid.Set
	before, after *wire.ArchivedTransaction
}

func (f *timeFinder) begin(t archive.Transaction) (bool, error) {
	return t.GTID != "" && f.fresh.Contains(t.ID), nil
}

func (f *timeFinder) statement(statement, string) error { return nil }
func (f *timeFinder) row(*table, change) error          { return nil }
func (f *timeFinder) large(*table) error                { return nil }

func (f *timeFinder) end(t *wire.ArchivedTransaction) error {
	if !t.Time.After(f.at) {
		t.Role, f.before = wire.RoleBefore, t
		return nil
	}
	t.Role, f.after = wire.RoleAfter, t
	return errDone
}
