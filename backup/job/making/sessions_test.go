// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// oneAtATime is a server whose connection takes no statement while it still answers another, as a real one does not.
type oneAtATime struct {
	mu        sync.Mutex
	answering bool
	killed    []string
	broken    int
}

func (o *oneAtATime) Connect(context.Context) (driver.Conn, error) { return o, nil }
func (o *oneAtATime) Driver() driver.Driver                        { return nil }
func (*oneAtATime) Close() error                                   { return nil }
func (*oneAtATime) Prepare(string) (driver.Stmt, error)            { return nil, errors.ErrUnsupported }
func (*oneAtATime) Begin() (driver.Tx, error)                      { return nil, errors.ErrUnsupported }

func (o *oneAtATime) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answering {
		o.broken++
	}
	o.answering = true
	return &sessions{server: o, left: 3}, nil
}

func (o *oneAtATime) ExecContext(_ context.Context, statement string, _ []driver.NamedValue) (driver.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answering {
		o.broken++
	}
	o.killed = append(o.killed, strings.TrimPrefix(statement, "KILL "))
	return driver.ResultNoRows, nil
}

// sessions are rows that take their time.
type sessions struct {
	server *oneAtATime
	left   int
}

func (*sessions) Columns() []string { return []string{"id"} }

func (r *sessions) Close() error {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.answering = false
	return nil
}

func (r *sessions) Next(into []driver.Value) error {
	if r.left == 0 {
		return io.EOF
	}
	time.Sleep(5 * time.Millisecond)
	into[0] = string(rune('0' + r.left))
	r.left--
	return nil
}

// What notices first that a backup is stopped ends its sessions: the end of its context, mysqldump's end, or its own. Two at once
// on one connection would break it, and the locks would stay on the site.
func TestSessionsAreEndedOneCallAfterTheOther(t *testing.T) {
	server := &oneAtATime{}
	pool := sql.OpenDB(server)
	defer func() { _ = pool.Close() }()
	killer, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = killer.Close() }()
	src := &source{killer: killer, ending: make(chan struct{}, 1)}
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			if err := src.end(); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if server.broken > 0 {
		t.Errorf("%d statements came while another was being answered", server.broken)
	}
	// Each looks for itself: a session may have come since the one before it looked.
	if want := slices.Repeat([]string{"3", "2", "1"}, 3); !slices.Equal(server.killed, want) {
		t.Errorf("killed %v, want %v", server.killed, want)
	}
}
