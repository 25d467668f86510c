// SPDX-License-Identifier: Apache-2.0

package lost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/binlog"
)

const lostSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:101-103"

type fakeAccess struct{ err error }

func (a fakeAccess) Site(_ context.Context, _ *v1alpha1.MysqlFailoverGroup, _, ip string) (mysql.Target, error) {
	return mysql.Target{Addr: ip + ":33062", User: "mfg_operator", Password: "o"}, a.err
}

func (a fakeAccess) Replication(context.Context, *v1alpha1.MysqlFailoverGroup, string) (mysql.Source, error) {
	return mysql.Source{User: "mfg_replication", Password: "r"}, a.err
}

func group() *v1alpha1.MysqlFailoverGroup {
	return &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u"}}
}

func record() v1alpha1.FailoverRecord {
	return v1alpha1.FailoverRecord{Epoch: 2, From: "a", To: "b", LostTransactions: 3, LossExact: true, LostSet: lostSet}
}

// counter answers each count with the next of the errors, the last one again and again.
func counter(counts binlog.Counts, asked *int, errs ...error) *Counter {
	return New(Options{Access: fakeAccess{}, Log: slog.New(slog.DiscardHandler),
		Count: func(_ context.Context, target mysql.Target, want gtid.Set, _ binlog.Limits) (binlog.Counts, error) {
			*asked++
			if target.Addr != "10.0.0.1:3306" || target.User != "mfg_replication" || target.Password != "r" || want.String() != lostSet {
				return binlog.Counts{}, fmt.Errorf("%w: asked %s for %s", binlog.ErrUnknown, target, want)
			}
			time.Sleep(time.Minute)
			return counts, errs[min(*asked, len(errs))-1]
		}})
}

func TestRows(t *testing.T) {
	tests := map[string]struct {
		counts binlog.Counts
		errs   []error
		rows   []v1alpha1.LostRows
		state  string
		asked  int
	}{
		"counted": {
			counts: binlog.Counts{Tables: []binlog.Table{{Schema: "shop", Name: "orders", Inserted: 3, Updated: 2, Deleted: 1}}},
			errs:   []error{nil}, asked: 1, state: v1alpha1.LostRowsCounted,
			rows: []v1alpha1.LostRows{{Schema: "shop", Table: "orders", Inserted: 3, Updated: 2, Deleted: 1}},
		},
		"more tables": {
			counts: binlog.Counts{Rest: binlog.Table{Inserted: 7}, RestTables: 2},
			errs:   []error{nil}, asked: 1, state: v1alpha1.LostRowsCounted, rows: []v1alpha1.LostRows{{Inserted: 7}},
		},
		"DDL": {counts: binlog.Counts{Statements: 2}, errs: []error{nil}, asked: 1,
			state: "Counted, but for 2 statements that are not rows, such as DDL"},
		"purged is purged": {errs: []error{fmt.Errorf("x: %w", binlog.ErrPurged)}, asked: 1,
			state: "not counted: the binary log of some of the transactions is purged"},
		"back after a while": {errs: []error{errors.New("connection refused"), nil}, asked: 2, state: v1alpha1.LostRowsCounted},
		"never reached": {errs: []error{errors.New("connection refused")}, asked: maxTries,
			state: "not counted: the binary log of the old active site could not be read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				c := counter(tt.counts, &asked, tt.errs...)
				var rows []v1alpha1.LostRows
				var state string
				done := false
				for range 1000 {
					began := time.Now()
					if rows, state, done = c.Rows(group(), record(), "10.0.0.1"); time.Since(began) > 0 {
						t.Fatal("the loop had to wait")
					}
					if done {
						break
					}
					time.Sleep(2 * time.Second)
				}
				if diff := cmp.Diff(tt.rows, rows); diff != "" || state != tt.state || !done || asked != tt.asked {
					t.Errorf("state %q, asked %d, done %v (-want +got):\n%s", state, asked, done, diff)
				}
			})
		})
	}
}

func TestRowsWaitsForThePod(t *testing.T) {
	asked := 0
	c := counter(binlog.Counts{}, &asked, nil)
	if _, _, done := c.Rows(group(), record(), ""); done || asked != 0 {
		t.Errorf("done %v, asked %d", done, asked)
	}
}

func TestRowsWithoutASet(t *testing.T) {
	asked := 0
	c := counter(binlog.Counts{}, &asked, nil)
	r := record()
	r.LostSet = ""
	if _, state, done := c.Rows(group(), r, "10.0.0.1"); !done || !strings.HasPrefix(state, "not counted") || asked != 0 {
		t.Errorf("state %q, done %v, asked %d", state, done, asked)
	}
}

// A server that sends nonsense ends its count, not the operator.
func TestPanicEndsOnlyTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Access: fakeAccess{}, Log: slog.New(slog.DiscardHandler),
			Count: func(context.Context, mysql.Target, gtid.Set, binlog.Limits) (binlog.Counts, error) {
				var greeting []byte
				return binlog.Counts{Statements: int64(greeting[0])}, nil
			}})
		for range 100 {
			c.Rows(group(), record(), "10.0.0.1")
			time.Sleep(retryAfter)
		}
		if _, state, done := c.Rows(group(), record(), "10.0.0.1"); !done || state != "not counted: the binary log of the old active site could not be read" {
			t.Errorf("state %q, done %v", state, done)
		}
	})
}

// What was counted and never asked for again is not kept for ever.
func TestOutcomesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := counter(binlog.Counts{}, &asked, nil)
		c.Rows(group(), record(), "10.0.0.1")
		time.Sleep(2 * keptFor)
		other := record()
		other.Epoch = 9
		c.Rows(group(), other, "")
		if len(c.jobs) != 1 {
			t.Errorf("%d jobs are kept", len(c.jobs))
		}
	})
}
