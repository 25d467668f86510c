// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// xaServer answers what is asked about XA transactions. A transaction that is prepared is shown until its end is over; the statement that ends it
// is counted when it begins.
type xaServer struct {
	prepared int
	ended    int64
}

func (x *xaServer) Connect(context.Context) (driver.Conn, error) { return x, nil }
func (x *xaServer) Driver() driver.Driver                        { return nil }
func (*xaServer) Close() error                                   { return nil }
func (*xaServer) Prepare(string) (driver.Stmt, error)            { return nil, errors.ErrUnsupported }
func (*xaServer) Begin() (driver.Tx, error)                      { return nil, errors.ErrUnsupported }

func (x *xaServer) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if query == "XA RECOVER" {
		return &answer{columns: []string{"formatID", "gtrid_length", "bqual_length", "data"}, row: []driver.Value{int64(1), int64(1), int64(0), "x"}, left: x.prepared}, nil
	}
	if !strings.HasPrefix(query, "SHOW GLOBAL STATUS ") {
		return nil, errors.ErrUnsupported
	}
	return &answer{columns: []string{"Variable_name", "Value"}, row: []driver.Value{"Com_xa", x.ended}, left: 2}, nil
}

type answer struct {
	columns []string
	row     []driver.Value
	left    int
}

func (a *answer) Columns() []string { return a.columns }
func (*answer) Close() error        { return nil }

func (a *answer) Next(into []driver.Value) error {
	if a.left == 0 {
		return io.EOF
	}
	copy(into, a.row)
	a.left--
	return nil
}

// Whatever the moment at which an XA transaction is prepared and ends: if it was prepared at the snapshot, there is no dump.
func TestNoDumpOfAMomentWithAPreparedXATransaction(t *testing.T) {
	type step func(*xaServer)
	nothing := step(func(*xaServer) {})
	prepares := step(func(x *xaServer) { x.prepared++ })
	begins := step(func(x *xaServer) { x.ended++ })
	over := step(func(x *xaServer) { x.prepared-- })
	ends := step(func(x *xaServer) { begins(x); over(x) })
	both := step(func(x *xaServer) { prepares(x); ends(x) })
	for name, tc := range map[string]struct {
		// first is before the first look, then until the snapshot, and last between that and the second look.
		first, then, last step
		busy              bool
	}{
		"there is none":                                          {nothing, nothing, nothing, false},
		"it ended before":                                        {both, nothing, nothing, false},
		"it is prepared all the time":                            {prepares, nothing, nothing, true},
		"it ends after the snapshot":                             {prepares, nothing, ends, true},
		"it is prepared before the snapshot and stays":           {nothing, prepares, nothing, true},
		"it is prepared before the snapshot and ends after it":   {nothing, prepares, ends, true},
		"its end has begun before the first look and takes long": {step(func(x *xaServer) { prepares(x); begins(x) }), nothing, over, true},
	} {
		t.Run(name, func(t *testing.T) {
			x := &xaServer{ended: 7}
			pool := sql.OpenDB(x)
			defer func() { _ = pool.Close() }()
			conn, err := pool.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			src := &source{held: conn, seesXA: true}
			tc.first(x)
			err = src.beginXA(t.Context())
			if err == nil {
				tc.then(x)
				scan := &scanner{settled: func() error { tc.last(x); return src.checkXA(t.Context()) }}
				_, err = scan.Write([]byte(stream + "-- Dump completed\n"))
			}
			if busy := err != nil && terms.ReasonOf(err) == terms.SourceBusy; busy != tc.busy || err != nil && !tc.busy {
				t.Errorf("%v, want it busy: %t", err, tc.busy)
			}
		})
	}
}
