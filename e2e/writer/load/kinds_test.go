// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// fakeDriver remembers statements and answers the one with this word with an error.
type fakeDriver struct {
	driver.Conn
	said []string
	word string
	err  error
}

func (f *fakeDriver) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	f.said = append(f.said, strings.Join(strings.Fields(query)[:2], " "))
	if f.word != "" && strings.HasPrefix(query, f.word) {
		return nil, f.err
	}
	return driver.RowsAffected(1), nil
}

func TestKinds(t *testing.T) {
	readOnly, lost := &mysql.MySQLError{Number: 1290}, driver.ErrBadConn
	xa := []string{"XA START", "INSERT INTO", "XA END", "XA PREPARE", "XA COMMIT"}
	for name, tt := range map[string]struct {
		reason string
		kind   Kind
		word   string
		err    error
		said   []string
		// refused means that for certain nothing was committed, gone that the connection is not used again.
		refused, gone, unknown bool
	}{
		"late":            {reason: "commits in the end", kind: Late, said: []string{"BEGIN ", "INSERT INTO", "COMMIT "}},
		"late, read-only": {reason: "a COMMIT behind a fence commits nothing", kind: Late, word: "COMMIT", err: readOnly, said: []string{"BEGIN ", "INSERT INTO", "COMMIT "}, refused: true, gone: true},
		"late, cut":       {reason: "a COMMIT without an answer may have been one", kind: Late, word: "COMMIT", err: lost, said: []string{"BEGIN ", "INSERT INTO", "COMMIT "}, unknown: true},
		"xa":              {reason: "both phases", kind: XA, said: xa},
		"xa, fenced":      {reason: "nothing is prepared yet", kind: XA, word: "INSERT", err: readOnly, said: xa[:2], refused: true, gone: true},
		"xa, half done":   {reason: "it stays prepared, and may be committed by somebody", kind: XA, word: "XA COMMIT", err: readOnly, said: xa, unknown: true},
		"ddl":             {reason: "one statement, one commit", kind: DDL, said: []string{"ALTER TABLE"}},
		"ddl, read-only":  {reason: "a single statement leaves nothing open", kind: DDL, word: "ALTER", err: readOnly, said: []string{"ALTER TABLE"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeDriver{word: tt.word, err: tt.err}
				c := &conn{mysql: MySQL{Table: "app.mixed", Writer: "w", Kind: tt.kind}, driver: padded{f}}
				err := c.Insert(Row{Seq: 1, Site: "east"})
				var refusal Refusal
				refused := errors.As(err, &refusal)
				if refused != tt.refused || refusal.Gone != tt.gone || (err != nil && !refused) != tt.unknown {
					t.Errorf("%s: %v (gone %t)", tt.reason, err, refusal.Gone)
				}
				if !slices.Equal(f.said, tt.said) {
					t.Errorf("%s: said %q, want %q", tt.reason, f.said, tt.said)
				}
			})
		})
	}
}

// padded gives every statement two words.
type padded struct{ *fakeDriver }

func (p padded) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !strings.Contains(query, " ") {
		p.said = append(p.said, query+" ")
		if query == p.word {
			return nil, p.err
		}
		return driver.RowsAffected(0), nil
	}
	return p.fakeDriver.ExecContext(ctx, query, args)
}

// Transactions are left alone for different times, from nothing to longer than a fence takes.
func TestAlone(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seq := range int64(16) {
		d := alone(Row{Seq: seq})
		if d < 0 || d >= Alone {
			t.Errorf("row %d is left alone for %s", seq, d)
		}
		seen[d] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d different times, want 16", len(seen))
	}
}

// slow is a server whose rows take more than one statement.
type slow struct {
	*server
	sent time.Duration
}

func (s *slow) Insert(Row) error {
	time.Sleep(10 * time.Millisecond)
	s.sent = Now()
	return nil
}

func (s *slow) Sent() time.Duration { return s.sent }

// A transaction that was begun long ago was committed after its last statement was sent, and not before.
func TestCommitIsLookedForFromTheLastStatementOn(t *testing.T) {
	var out bytes.Buffer
	j := journal.NewWriter(&out, "w", 0, time.Now())
	s := &slow{server: &server{site: "east"}}
	w := &worker{cfg: Config{Site: "east"}, journal: j, conn: s}
	if !w.insert() {
		t.Fatal("not acknowledged")
	}
	if err := j.End(Now()); err != nil {
		t.Fatal(err)
	}
	got, err := journal.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Commits) != 1 || got.Commits[0].Start != s.sent {
		t.Errorf("commits %+v, want one from %s on", got.Commits, s.sent)
	}
}
