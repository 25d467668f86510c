// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// lost tells what failovers lost, epoch by epoch in the order of the logs.
func (q *question) lost(ctx context.Context, ask wire.AskLost) error {
	switch ask.Rows {
	case wire.RowsNone, wire.RowsSQL, wire.RowsJSON:
	default:
		return badRequest{errors.New("rows are written as sql or json")}
	}
	if ask.Epoch != 0 && !q.knows(ask.Epoch) {
		return badRequest{fmt.Errorf("the archive knows no epoch %d", ask.Epoch)}
	}
	if ask.Rows == wire.RowsSQL {
		if err := q.out.write(sqlHead); err != nil {
			return err
		}
	}
	left := q.past.Lost
	for _, log := range q.listing.Logs {
		if ask.Epoch != 0 && log.Epoch != ask.Epoch {
			continue
		}
		want := log.Set.Intersect(left)
		if want.IsEmpty() {
			continue
		}
		left = left.Subtract(want)
		l := &loser{question: q, want: want, rows: ask.Rows}
		if err := q.read(ctx, log, l); err != nil && !errors.Is(err, errDone) {
			return err
		}
		if q.out.full {
			return nil
		}
	}
	if ask.Rows == wire.RowsSQL {
		return q.out.write("-- End.\n")
	}
	return nil
}

func (q *question) knows(epoch int64) bool {
	for _, e := range q.past.Epochs {
		if e.Epoch.Epoch == epoch {
			return true
		}
	}
	return false
}

// loser tells lost transactions, and writes their rows.
type loser struct {
	*question
	want gtid.Set
	rows string
	now  archive.Transaction
	open bool // a transaction of SQL was begun
}

func (l *loser) begin(t archive.Transaction) (bool, error) {
	if t.GTID == "" || !l.want.Contains(t.ID) {
		return false, nil
	}
	if !l.out.room() {
		l.out.full = true
		return false, errDone
	}
	l.now, l.open = t, false
	if l.rows != wire.RowsSQL {
		return true, nil
	}
	return true, l.out.write(fmt.Sprintf("\n-- %s, committed %s\n", t.GTID, t.Committed.UTC().Format(time.RFC3339Nano)))
}

// statement writes what is no row as a comment: a definition that is repeated may fit nothing that is there now.
func (l *loser) statement(_ statement, query string) error {
	if l.rows != wire.RowsSQL {
		return nil
	}
	lines := strings.Split(strings.ToValidUTF8(query, "?"), "\n")
	for i, line := range lines {
		lines[i] = "-- " + oneLine(line)
	}
	return l.out.write("-- A statement, which is not repeated here:\n" + strings.Join(lines, "\n") + "\n")
}

func (l *loser) row(t *table, ch change) error {
	switch l.rows {
	case wire.RowsSQL:
		return l.sql(sqlOf(t, ch))
	case wire.RowsJSON:
		out := wire.ArchivedChange{GTID: l.now.GTID, Schema: t.schema, Table: t.name, Op: string(ch.op)}
		var ok, also bool
		if out.Before, ok = t.imageJSON(ch.before); ok {
			out.After, also = t.imageJSON(ch.after)
		}
		if !ok || !also {
			out.Before, out.After, out.Why = nil, nil, "a value in the log cannot be read"
		}
		return l.json(out)
	}
	return nil
}

func (l *loser) sql(text string) error {
	if !l.open {
		l.open = true
		text = "START TRANSACTION;\n" + text
	}
	return l.out.write(text)
}

func (l *loser) json(c wire.ArchivedChange) error {
	raw, err := json.Marshal(c)
	if err != nil { // a document of the log that is no JSON
		c.Before, c.After, c.Why = nil, nil, "a value in the log cannot be read"
		if raw, err = json.Marshal(c); err != nil {
			return err
		}
	}
	return l.out.write(string(raw) + "\n")
}

func (l *loser) large(t *table) error {
	name := "a compressed transaction"
	if t != nil {
		name = t.schema + "." + t.name
	}
	why := fmt.Sprintf("rows of more than %d MiB are not written out", eventMax>>20)
	switch l.rows {
	case wire.RowsSQL:
		return l.out.write(fmt.Sprintf("-- Left out, of %s: %s\n", oneLine(name), why))
	case wire.RowsJSON:
		c := wire.ArchivedChange{GTID: l.now.GTID, Why: why}
		if t != nil {
			c.Schema, c.Table = t.schema, t.name
		}
		return l.json(c)
	}
	return nil
}

func (l *loser) end(t *wire.ArchivedTransaction) error {
	if l.open {
		if err := l.out.write("COMMIT;\n"); err != nil {
			return err
		}
	}
	t.Role = wire.RoleLost
	return l.out.transaction(t)
}
