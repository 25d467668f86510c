// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysql_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/internal/mysql/datadir"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// renewing does before each start of mysqld what the supervisor in a pod does, and counts how often that was needed.
func renewing(t *testing.T, renewals *atomic.Int32) func(string) {
	return func(dir string) {
		renewed, err := datadir.RenewIdentity(dir)
		if err != nil {
			t.Error(err)
		}
		if renewed == "" {
			return
		}
		renewals.Add(1)
		if err := os.Chown(filepath.Join(dir, "auto.cnf"), 999, 999); err != nil { // the test is root, the supervisor is not
			t.Error(err)
		}
	}
}

// I10: a server that was cloned never gives numbers again that it gave before.
func TestI10ACloneBeginsANewHistory(t *testing.T) {
	t.Parallel()
	options := mysqltest.Options{TLS: true}
	donor := writable(t, options)
	var renewals atomic.Int32
	options.BeforeStart = renewing(t, &renewals)
	recipient := writable(t, options)
	db := recipient.Operator(t)
	lost := status(t, db)
	if !strings.Contains(lost.Executed.String(), lost.ServerUUID) {
		t.Fatalf("it wrote nothing: %+v", lost)
	}
	fence(t, recipient.Sidecar(t), mysql.StageReadOnly)
	if err := db.BeginWindow(budget(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.Clone(budget(t), donorOf(donor)); err != nil {
		t.Fatal(err)
	}
	backAfter(t, recipient, 0)
	st := status(t, db)
	if st.ServerUUID == lost.ServerUUID || renewals.Load() != 1 {
		t.Fatalf("it is still %s after %d renewals: it would write %s again", st.ServerUUID, renewals.Load(), lost.Executed)
	}
	src := sourceOf(donor)
	src.TLS, src.CA = true, mysqltest.CA
	if err := db.Follow(budget(t), src); err != nil {
		t.Fatal(err)
	}
	donor.Exec(t, insert)
	catchUp(t, donor, recipient)
	if err := db.DropReplication(budget(t)); err == nil {
		t.Log("dropped while it ran")
	}
	recipient.Exec(t, "STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only=OFF", "SET GLOBAL read_only=OFF", "CREATE TABLE app.sealed (id INT PRIMARY KEY)",
		"INSERT INTO app.sealed VALUES (1)", "FLUSH BINARY LOGS", insert)
	recipient.Kill(t, func() {})
	now := status(t, db)
	if now.ServerUUID != st.ServerUUID || renewals.Load() != 1 {
		t.Errorf("another start made it another server: %s, then %s", st.ServerUUID, now.ServerUUID)
	}
	if wrote := now.Executed.Subtract(st.Executed).String(); !strings.Contains(wrote, now.ServerUUID) || strings.Contains(wrote, lost.ServerUUID) {
		t.Errorf("it wrote %s", wrote)
	}
}

// I10, I15: whenever mysqld is killed on its way back from a clone, it comes back as another server: with the cloned data, or
// with what it had before and a clone that is known not to have ended well.
func TestI10KilledOnTheWayBackFromAClone(t *testing.T) {
	t.Parallel()
	options := mysqltest.Options{TLS: true}
	donor := writable(t, options)
	var renewals atomic.Int32
	options.BeforeStart = renewing(t, &renewals)
	recipient := mysqltest.Start(t, options)
	db := recipient.Operator(t)
	before := status(t, db)
	if err := db.Clone(budget(t), donorOf(donor)); err != nil {
		t.Fatal(err)
	}
	mysqltest.Eventually(t, "mysqld ends", func() bool { return len(recipient.Exits()) > 0 })
	kills := 0
	for wait := 100 * time.Millisecond; wait < 1200*time.Millisecond; wait += 120 * time.Millisecond {
		time.Sleep(wait) // any moment of a start will do
		exits := len(recipient.Exits())
		recipient.Signal(t, syscall.SIGKILL)
		mysqltest.Eventually(t, "mysqld is gone", func() bool { return len(recipient.Exits()) > exits })
		kills++
	}
	recipient.WaitReady(t)
	st, want := status(t, db), status(t, donor.Operator(t))
	t.Logf("%d kills, %d renewals", kills, renewals.Load())
	whole := st.Executed.Equal(want.Executed) && st.HasDatabases == want.HasDatabases && !st.HalfCloned
	// A kill in the middle of the change-over may have mysqld put back what it had; then the operator clones it once more.
	back := st.Executed.Equal(before.Executed) && st.HasDatabases == before.HasDatabases && st.HalfCloned
	if st.ServerUUID == before.ServerUUID || !whole && !back {
		t.Errorf("after %d kills: %+v", kills, st)
	}
}
