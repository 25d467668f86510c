// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"context"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// budget is a deadline that no call of a healthy server comes near.
func budget(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func status(t *testing.T, db *mysql.DB) mysql.Status {
	t.Helper()
	st, err := db.Status(budget(t))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestStatusOfFreshServer(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{})
	for name, db := range map[string]*mysql.DB{"operator": s.Operator(t), "sidecar": s.Sidecar(t)} {
		st := status(t, db)
		if !st.SuperReadOnly || !st.ReadOnly || st.Writable() || st.OfflineMode {
			t.Errorf("%s: a server must start fenced: %+v", name, st)
		}
		if !st.Executed.IsEmpty() || !st.Purged.IsEmpty() || !st.Retrieved.IsEmpty() {
			t.Errorf("%s: making the accounts must produce no transaction: %s", name, st.Executed)
		}
		if st.Replica != nil || st.Channels != 0 || st.Cloning || st.HalfCloned || st.HasDatabases {
			t.Errorf("%s: a fresh server replicates nothing and holds nothing: %+v", name, st)
		}
		if len(st.ServerUUID) != 36 || st.Version == "" {
			t.Errorf("%s: identity is missing: %+v", name, st)
		}
		if ahead := st.ClockAhead; ahead == nil || *ahead > 0.1 || *ahead < -0.1 {
			t.Errorf("%s: it is on this machine's clock, and seems %v ahead", name, ahead)
		}
	}
}
