// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

const (
	// clonedMegabytes take the receiver a few seconds, in which the test must find it.
	clonedMegabytes = 768
	// cloneSessions of the receiver are on the donor.
	cloneSessions = "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_USER = 'mfg_backup' AND PROCESSLIST_COMMAND LIKE 'clone'"
)

// beCloned has a Physical backup copy the other candidate, and stops the receiver in the middle of it. So the donor's session waits for
// a peer that reads nothing and does not go.
func beCloned(t *testing.T, backup string) (b besieged, thaw func()) {
	t.Helper()
	ctx := t.Context()
	b = withBig(t, v1alpha1.BackupPhysical, clonedMegabytes)
	b.begin(t, backup)
	count := func(ctx context.Context) (string, error) {
		out, err := b.RootSQL(ctx, b.source, cloneSessions)
		return strings.TrimSpace(out), err
	}
	deadline := time.Now().Add(time.Minute)
	for n := "0"; n == "0" || n == ""; {
		var err error
		if n, err = count(ctx); err != nil || time.Now().After(deadline) {
			t.Fatalf("wait for the clone of %s: %q sessions, %v", b.source, n, err)
		}
	}
	receiver, err := b.BackupProcess(ctx, backup, stage.BackupMysqld)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Freeze(); err != nil {
		t.Fatal(err)
	}
	thaw = func() {
		if err := receiver.Thaw(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(thaw)
	time.Sleep(time.Second) // what is on its way arrives: a clone that was all but done would end
	if n, err := count(ctx); err != nil || n == "0" {
		t.Fatalf("%s is no longer being cloned, so the test shows nothing: %q sessions, %v", b.source, n, err)
	}
	query(t, b.Group, b.active, "ALTER TABLE "+bigTable+" COMMENT = 'changed while it was cloned'")
	return b, thaw
}

// A planned failover goes to a site that is being cloned by a backup whose receiver hangs.
func TestCloneDelaysNoFailover(t *testing.T) {
	const backup = "in-the-way"
	b, thaw := beCloned(t, backup)
	w := witnesses(t, b.Group)
	at, ordered := load.Now(), time.Now()
	to := moveRole(t, b.Group)
	took := time.Since(ordered)
	v, _ := judge(t, w, at)
	t.Logf("%s was open %s after the order", to, took.Round(100*time.Millisecond))
	if to != b.source || took > dumpYields || v.Pause.Length() > dumpPause || len(v.Missing) > 0 {
		t.Errorf("the role moved to %s, and %s is cloned; it took %s (at most %s), clients waited %s (at most %s), %d rows are missing",
			to, b.source, took, dumpYields, v.Pause.Length(), dumpPause, len(v.Missing))
	}
	thaw()
	b.goesOn(t, backup)
	if _, err := b.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
}

// The active site is lost while the only other candidate is being cloned by a backup whose receiver hangs.
func TestCloneDelaysNoEmergency(t *testing.T) {
	const backup = "in-the-way"
	b, thaw := beCloned(t, backup)
	b.losesItsActiveSite(t, thaw)
	b.goesOn(t, backup)
}
