// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
)

// keyed is a server in a window that takes statements, and notes what changes something.
type keyed struct {
	binaryLog, receives bool
	said                []string
	// fails is what becomes of a statement; heard is told of each.
	fails map[string]error
	heard func(string)
}

func (k *keyed) Connect(context.Context) (sqldriver.Conn, error) { return k, nil }
func (k *keyed) Driver() sqldriver.Driver                        { return nil }
func (k *keyed) Prepare(string) (sqldriver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (k *keyed) Begin() (sqldriver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (k *keyed) Close() error                                    { return nil }

func (k *keyed) ExecContext(_ context.Context, query string, _ []sqldriver.NamedValue) (sqldriver.Result, error) {
	if !strings.HasPrefix(query, "SET ") {
		k.said = append(k.said, query)
	}
	if k.heard != nil {
		k.heard(query)
	}
	return sqldriver.ResultNoRows, k.fails[query]
}

func (k *keyed) QueryContext(_ context.Context, query string, _ []sqldriver.NamedValue) (sqldriver.Rows, error) {
	switch query {
	case variablesQuery:
		return &oneRow{"uuid", "9.7.4", true, false, true, "", ""}, nil
	case sessionQuery:
		return &oneRow{int64(7)}, nil
	case rotationQuery:
		return &oneRow{k.binaryLog, k.receives}, nil
	}
	return nil, errors.ErrUnsupported
}

// oneRow is the answer to a query.
type oneRow []sqldriver.Value

func (r *oneRow) Columns() []string { return slices.Repeat([]string{""}, len(*r)) }
func (r *oneRow) Close() error      { return nil }
func (r *oneRow) Next(dest []sqldriver.Value) error {
	if len(*r) == 0 {
		return io.EOF
	}
	copy(dest, *r)
	*r = nil
	return nil
}

// A rotation that fails in the middle says what is left of it, so that InnoDB's key is not rotated once more, and that the receiver
// was stopped, so that it is started again.
func TestWhatIsLeftOfARotation(t *testing.T) {
	locked := &driver.MySQLError{Number: numberLockWaitTimeout}
	for name, tt := range map[string]struct {
		server  keyed
		half    bool
		says    []string
		is      []error
		stopped bool
	}{
		"a replica":                    {keyed{binaryLog: true, receives: true}, false, []string{rotateInnoDB, stopReceiver, rotateBinaryLog}, nil, true},
		"a server that follows nobody": {keyed{binaryLog: true}, false, []string{rotateInnoDB, rotateBinaryLog}, nil, false},
		"binary logs in the clear":     {keyed{receives: true}, false, []string{rotateInnoDB}, nil, false},
		"InnoDB's key is kept":         {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateInnoDB: locked}}, false, []string{rotateInnoDB}, []error{ErrLocked}, false},
		"the receiver does not stop": {keyed{binaryLog: true, receives: true, fails: map[string]error{stopReceiver: io.ErrUnexpectedEOF}}, false,
			[]string{rotateInnoDB, stopReceiver}, []error{ErrHalfRotated, io.ErrUnexpectedEOF}, true},
		"the other key is kept": {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateBinaryLog: locked}}, false,
			[]string{rotateInnoDB, stopReceiver, rotateBinaryLog}, []error{ErrHalfRotated, ErrLocked}, true},
		"the rest": {keyed{binaryLog: true, receives: true}, true, []string{stopReceiver, rotateBinaryLog}, nil, true},
		"the rest is kept too": {keyed{binaryLog: true, fails: map[string]error{rotateBinaryLog: &driver.MySQLError{Number: numberNoBinlogKey}}}, true,
			[]string{rotateBinaryLog}, []error{ErrHalfRotated, ErrSealed}, false},
		"no rest": {keyed{}, true, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			pool := sql.OpenDB(&tt.server)
			defer func() { _ = pool.Close() }()
			conn, err := pool.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := keyRotation{half: tt.half}
			err = r.run(t.Context(), conn)
			for _, target := range []error{ErrHalfRotated, ErrLocked, ErrSealed, io.ErrUnexpectedEOF} {
				if errors.Is(err, target) != slices.Contains(tt.is, target) {
					t.Errorf("%v: is %v: %t", err, target, errors.Is(err, target))
				}
			}
			if (err != nil) != (len(tt.is) > 0) || r.stopped != tt.stopped {
				t.Errorf("%v; the receiver was stopped: %t", err, r.stopped)
			}
			if diff := cmp.Diff(tt.says, tt.server.said); diff != "" {
				t.Errorf("statements (-want +got):\n%s", diff)
			}
			_ = conn.Close()
		})
	}
}

// The receiver is started again on every way out of a rotation (I8), and only then not, when a statement may still go on.
func TestTheReceiverIsStartedAgainI8(t *testing.T) {
	away := &driver.MySQLError{Number: numberLockWaitTimeout}
	for name, tt := range map[string]struct {
		server keyed
		gone   bool
		ends   error
		starts bool
		is     error
	}{
		"no answer came": {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateBinaryLog: driver.ErrInvalidConn}}, true, nil, true, ErrHalfRotated},
		"no answer came, and it may go on": {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateBinaryLog: driver.ErrInvalidConn}}, true,
			io.ErrUnexpectedEOF, false, io.ErrUnexpectedEOF},
		"all is well":              {keyed{binaryLog: true, receives: true}, false, nil, true, nil},
		"the key is kept":          {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateBinaryLog: away}}, false, nil, true, ErrHalfRotated},
		"it does not stop":         {keyed{binaryLog: true, receives: true, fails: map[string]error{stopReceiver: away}}, false, nil, true, ErrHalfRotated},
		"it does not start":        {keyed{binaryLog: true, receives: true, fails: map[string]error{startReceiver: away}}, false, nil, true, away},
		"the caller has gone":      {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateBinaryLog: context.Canceled}}, true, nil, true, ErrHalfRotated},
		"a statement may go on":    {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateBinaryLog: away}}, true, io.ErrUnexpectedEOF, false, io.ErrUnexpectedEOF},
		"it was not stopped":       {keyed{binaryLog: true}, false, nil, false, nil},
		"InnoDB's key alone fails": {keyed{binaryLog: true, receives: true, fails: map[string]error{rotateInnoDB: away}}, false, nil, false, away},
	} {
		t.Run(name, func(t *testing.T) {
			pool := sql.OpenDB(&tt.server)
			defer func() { _ = pool.Close() }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tt.server.heard = func(query string) {
				if tt.gone && query == rotateBinaryLog && !errors.Is(tt.server.fails[query], driver.ErrInvalidConn) {
					cancel()
				}
			}
			ended, r := uint64(0), keyRotation{}
			err := r.whole(ctx, func(ctx context.Context, do func(*sql.Conn) error) error {
				conn, err := pool.Conn(ctx)
				if err != nil {
					return err
				}
				return errors.Join(do(conn), conn.Close())
			}, func(_ context.Context, session uint64) error {
				ended = session
				return tt.ends
			})
			if !errors.Is(err, tt.is) || (err == nil) != (tt.is == nil) {
				t.Errorf("I8: %v", err)
			}
			if (ended == 7) != tt.gone {
				t.Errorf("I8: session %d is ended", ended)
			}
			if starts := slices.Contains(tt.server.said, startReceiver); starts != tt.starts {
				t.Errorf("I8: started %t: %q", starts, tt.server.said)
			}
		})
	}
}
