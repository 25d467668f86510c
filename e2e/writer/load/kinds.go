// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kind is what a writer commits.
type Kind string

// The kinds of commits. A fence that knows only one of them is none.
const (
	// Rows are single inserts.
	Rows Kind = ""
	// Late is a transaction that is begun, left alone, and committed when a fence may have come in between.
	Late Kind = "late"
	// XA prepares a transaction, leaves it alone, and commits it.
	XA Kind = "xa"
	// DDL changes a table's definition.
	DDL Kind = "ddl"
)

// Kinds are all but the ordinary one.
var Kinds = []Kind{Late, XA, DDL}

// ParseKind reads the name of a kind.
func ParseKind(text string) (Kind, error) {
	if k := Kind(text); k == Rows || slices.Contains(Kinds, k) {
		return k, nil
	}
	return Rows, fmt.Errorf("%q is none of the kinds %q", text, Kinds)
}

// Alone is how long transactions are left alone, at most: longer than a fence takes, and shorter than a test.
const Alone = 3 * time.Second

// alone spreads the times over all lengths from nothing to Alone, the same ones for every worker.
func alone(row Row) time.Duration {
	return Alone * time.Duration((row.Seq*7+int64(row.Worker)*3)%16) / 16
}

// Sender is a connection that does more than one thing for a row: only what it sends last can commit it. A commit is looked
// for from there on, or a transaction that was begun long before would seem to have been committed then.
type Sender interface {
	// Sent is when the last statement of the last row was sent.
	Sent() time.Duration
}

// statements are what commits one row, in their order, and how long to wait before the last one.
func (c *conn) statements(row Row) ([]string, time.Duration) {
	m := c.mysql
	insert := fmt.Sprintf("INSERT INTO %s (writer, worker, seq, site) VALUES ('%s', %d, %d, '%s')", m.Table, m.Writer, row.Worker, row.Seq, row.Site)
	name := fmt.Sprintf("%s-%d-%d", m.Writer, row.Worker, row.Seq)
	switch m.Kind {
	case Late:
		return []string{"BEGIN", insert, "COMMIT"}, alone(row)
	case XA:
		return []string{"XA START '" + name + "'", insert, "XA END '" + name + "'", "XA PREPARE '" + name + "'", "XA COMMIT '" + name + "'"}, alone(row)
	case DDL:
		return []string{fmt.Sprintf("ALTER TABLE %s COMMENT = '%s'", m.Table, name)}, 0
	case Rows:
	}
	return []string{insert}, 0
}

// commit runs the statements of a row. A refusal of any of them is one of the row, as long as none could commit before: of XA,
// PREPARE leaves something behind, so what is refused after it is not known to have done nothing.
func (c *conn) commit(row Row) error {
	e, ok := c.driver.(driver.ExecerContext)
	if !ok {
		return errors.New("write row: the driver cannot execute")
	}
	all, wait := c.statements(row)
	for n, statement := range all {
		if n == len(all)-1 {
			time.Sleep(wait)
			c.sent = Now()
		}
		// No context to end it: see Conn. The timeouts of the connection do.
		if _, err := e.ExecContext(context.Background(), statement, nil); err != nil {
			return c.unfinished(classify(err), n)
		}
	}
	return nil
}

// unfinished is what an error after some statements means. The connection is of no more use: something is open in it.
func (c *conn) unfinished(err error, done int) error {
	var refusal Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	if c.mysql.Kind == XA && done > 3 {
		return fmt.Errorf("error %s after XA PREPARE", refusal.Reason)
	}
	refusal.Gone = refusal.Gone || done > 0
	return refusal
}

// Sent is when the last statement of the last row was sent.
func (c *conn) Sent() time.Duration { return c.sent }
