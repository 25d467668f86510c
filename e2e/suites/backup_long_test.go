// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"fmt"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The same as TestBackupAndRestore by CLONE, from a group in the clear.
func TestPhysicalBackupAndRestore(t *testing.T) {
	p := &backupStory{s3: storage(t, stage.S3Options{Name: "s3"}), id: identity(t), marker: fmt.Sprintf("MARKER-%d-PLAINTEXT", time.Now().UnixNano())}
	source := p.backUp(t, v1alpha1.BackupPhysical)
	p.lose(t, source)
	p.restore(t)
}

// The active site is lost while the only other candidate is being dumped, with an ALTER that waits behind the dump.
func TestBackupDelaysNoEmergency(t *testing.T) {
	const backup = "in-the-way"
	b := besiege(t, backup)
	b.losesItsActiveSite(t, func() {})
	b.goesOn(t, backup)
}

// losesItsActiveSite ends the node of the active site, brings it back and lets after do what the test needs, and clones the site again
// if it has lost transactions. The wait for the lease of the lost site is part of the clients' wait; `make bench-failover` measures it
// without a backup.
func (b besieged) losesItsActiveSite(t *testing.T, after func()) {
	t.Helper()
	ctx := t.Context()
	w := witnesses(t, b.Group)
	kill := fault(t, "node-kill")
	at, err := b.Break(ctx, kill, b.active)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AwaitRecovery(ctx, kill, tooLong); err != nil {
		t.Fatal(err)
	}
	if err := b.Undo(ctx, kill, b.active); err != nil {
		t.Fatal(err)
	}
	after()
	record, err := b.AwaitExactLoss(ctx, comeBack)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := judge(t, w, at)
	checkLoss(t, b.Group, v)
	if limit := lease + dumpYields; v.To != b.source || v.Pause.Length() > limit {
		t.Errorf("%s is active, and %s was copied; clients waited %s, at most %s", v.To, b.source, v.Pause.Length(), limit)
	}
	if record.LostTransactions > 0 {
		recloned(t, b.Group, b.active)
	}
	if _, err := b.AwaitReady(ctx, comeBack); err != nil {
		t.Fatal(err)
	}
}

// restore makes another group of the bucket and the identity, and compares every site of it with what was lost.
func (p *backupStory) restore(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	g := fresh(t, restoredNamespace, restoredGroup, p.s3.Grant)
	if err := lab.PutIdentity(ctx, restoredNamespace, identitySecret, p.id.String()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	g = ownGroup(t, g, restored(p.s3, restoredGroup))
	if _, err := g.AwaitRestore(ctx, bringUp, "the restore", stage.RestoreNotDone); err != nil {
		t.Fatal(err)
	}
	loaded := time.Since(began)
	group, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the first site had its data after %s, and the group was whole after %s", loaded.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond))
	p.isWhole(t, g, group)
}
