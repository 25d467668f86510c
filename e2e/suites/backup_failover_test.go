// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

const (
	// slowRate is how fast the storage takes the dump of bigTable, in bytes a second: with what is buffered on the way taken off, the
	// dump holds its locks for far longer than dumpYields.
	slowRate = 1 << 20
	bigTable = "app.big"
	// bigMegabytes are of rows that do not compress.
	bigMegabytes = 128
	// dumpYields is how long a planned failover to a site may take that is being dumped, from the order until the site is open. The
	// sessions of the dump are ended at once, and what waited behind them is a table's definition and a few seconds of rows. A dump that does not give
	// way holds its locks for twice as long.
	dumpYields = time.Minute
	// dumpPause bounds the clients' pause meanwhile.
	dumpPause = 30 * time.Second
)

// besieged is a group whose other candidate is being dumped, with an ALTER that waits behind the dump.
type besieged struct {
	*stage.Group
	s3 *stage.S3
	// active has the role, and source is dumped.
	active, source string
}

// besiege begins a backup of the other candidate, and waits until its applier stands still behind it.
func besiege(t *testing.T, backup string) besieged {
	t.Helper()
	b := withBig(t, v1alpha1.BackupLogical, bigMegabytes)
	if err := b.s3.SetRate(t.Context(), slowRate); err != nil {
		t.Fatal(err)
	}
	b.begin(t, backup)
	b.awaitThread(t, "the dump to read "+bigTable, "user = 'mfg_backup' AND info LIKE 'SELECT%big%'")
	query(t, b.Group, b.active, "ALTER TABLE "+bigTable+" COMMENT = 'changed while it was dumped'")
	b.awaitThread(t, "the applier to wait behind the dump", "user = 'system user' AND state LIKE 'Waiting for%lock'")
	return b
}

// withBig gives the shared group a profile, and a table of so many megabytes that all sites have.
func withBig(t *testing.T, method v1alpha1.BackupMethod, megabytes int) besieged {
	t.Helper()
	g, group := whole(t)
	afterCooldown(t)
	b := besieged{Group: g, s3: storage(t, stage.S3Options{Name: "s3-slow", Slowable: true}), active: group.Status.ActiveSite}
	b.source = otherCandidate(t, group)
	profileBy(t, g, b.s3, method)
	makeRandom(t, g, b.active, megabytes)
	if err := g.AwaitCaughtUp(t.Context(), b.active, comeBack); err != nil {
		t.Fatal(err)
	}
	return b
}

// begin orders a backup, and waits until the source is being copied.
func (b besieged) begin(t *testing.T, backup string) {
	t.Helper()
	if err := b.OrderBackup(t.Context(), backup, "replica"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.AwaitBackup(t.Context(), backup, backupLimit, func(m *v1alpha1.MysqlBackup) error {
		if m.Status.Phase != v1alpha1.BackupRunning || m.Status.Site != b.source {
			return errors.New(stage.DescribeBackup(m))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (b besieged) awaitThread(t *testing.T, what, where string) {
	t.Helper()
	if err := stage.Poll(t.Context(), time.Minute, what, func(ctx context.Context) error {
		out, err := b.RootSQL(ctx, b.source, "SELECT COUNT(*) FROM performance_schema.processlist WHERE "+where)
		if err == nil && strings.TrimSpace(out) == "0" {
			out, _ = b.RootSQL(ctx, b.source, "SELECT user, state, LEFT(info, 80) FROM performance_schema.processlist")
			err = fmt.Errorf("%s does: %s", b.source, strings.ReplaceAll(out, "\n", "; "))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// profileBy gives the shared group a profile that takes candidates, and takes it away at the end with all that came of it.
func profileBy(t *testing.T, g *stage.Group, s *stage.S3, method v1alpha1.BackupMethod) {
	t.Helper()
	before := mysqlPods(t, g)
	if err := s.Grant(t.Context(), g.Namespace); err != nil {
		t.Fatal(err)
	}
	id := identity(t)
	t.Cleanup(func() { profileOff(context.Background(), t, g) })
	if err := setSpec(t.Context(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) {
		spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{
			Name: "replica", Method: method, Storage: s.Storage(fmt.Sprintf("failover-%d", time.Now().Unix())),
			Encryption: &v1alpha1.BackupEncryption{Recipients: []string{id.Recipient().String()}},
			Source:     v1alpha1.BackupSource{Prefer: v1alpha1.BackupPreferReplica},
		}}}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), comeBack, "the profile to be taken", stage.NotUpdated); err != nil {
		t.Fatal(err)
	}
	samePods(t, g, before, "a backup profile")
}

// profileOff leaves nothing of it. What is in the bucket goes with the bucket.
func profileOff(ctx context.Context, t *testing.T, g *stage.Group) {
	t.Helper()
	var backups v1alpha1.MysqlBackupList
	if err := g.Kube.List(ctx, &backups, client.InNamespace(g.Namespace)); err != nil {
		t.Error(err)
	}
	for i := range backups.Items {
		b := &backups.Items[i]
		before := b.DeepCopy()
		b.Annotations = map[string]string{v1alpha1.AnnotationKeepArtifact: "true"}
		if err := errors.Join(g.Kube.Patch(ctx, b, client.MergeFrom(before)), g.Kube.Delete(ctx, b)); err != nil {
			t.Errorf("remove backup %s: %v", b.Name, err)
		}
	}
	if err := stage.Poll(ctx, time.Minute, "the backups to go", func(ctx context.Context) error {
		if err := g.Kube.List(ctx, &backups, client.InNamespace(g.Namespace)); err != nil {
			return err
		}
		if n := len(backups.Items); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := setSpec(ctx, g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { spec.Backup = nil }); err != nil {
		t.Errorf("take the profile away: %v", err)
	}
	if group, err := g.Get(ctx); err == nil {
		if _, err := g.RootSQL(ctx, group.Status.ActiveSite, "DROP TABLE IF EXISTS "+bigTable); err != nil {
			t.Errorf("drop %s: %v", bigTable, err)
		}
	}
}

// makeRandom makes a table of so many megabytes, in transactions of a few.
func makeRandom(t *testing.T, g *stage.Group, active string, size int) {
	t.Helper()
	const megabytes = 4
	statements := []string{
		"CREATE DATABASE IF NOT EXISTS app", "DROP TABLE IF EXISTS " + bigTable,
		"CREATE TABLE " + bigTable + " (id INT AUTO_INCREMENT PRIMARY KEY, b VARBINARY(1024))",
		"SET SESSION cte_max_recursion_depth = 1 << 16",
	}
	for range size / megabytes {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s (b) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "+
			"SELECT RANDOM_BYTES(1024) FROM n", bigTable, megabytes<<10))
	}
	query(t, g, active, strings.Join(statements, "; "))
}

// goesOn lets the storage be as fast as it can, and waits until the backup that gave way is there all the same.
func (b besieged) goesOn(t *testing.T, backup string) {
	t.Helper()
	if err := b.s3.SetRate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	m, err := b.AwaitBackup(t.Context(), backup, 2*backupLimit, stage.BackupNotCompleted)
	if err != nil {
		t.Fatal(err)
	}
	if m.Status.Attempts < 2 {
		t.Errorf("the backup did not give way: %s", stage.DescribeBackup(m))
	}
	if n, err := b.BackupSessions(t.Context(), b.source); err != nil || n != "0" {
		t.Errorf("%s backup sessions are left on %s: %v", n, b.source, err)
	}
}

// A planned failover goes to a site that is being dumped, while a replicated ALTER waits behind the dump and everything that was written
// since waits behind the ALTER. The dump gives way at once, and the backup is made all the same, of another site or later.
func TestBackupDelaysNoFailover(t *testing.T) {
	const backup = "in-the-way"
	b := besiege(t, backup)
	w := witnesses(t, b.Group)
	at, ordered := load.Now(), time.Now()
	to := moveRole(t, b.Group)
	took := time.Since(ordered)
	if to != b.source {
		t.Fatalf("the role moved to %s, and %s is dumped", to, b.source)
	}
	v, _ := judge(t, w, at)
	t.Logf("%s was open %s after the order", to, took.Round(100*time.Millisecond))
	if took > dumpYields || v.Pause.Length() > dumpPause || len(v.Missing) > 0 {
		t.Errorf("it took %s (at most %s), clients waited %s (at most %s), %d rows are missing",
			took, dumpYields, v.Pause.Length(), dumpPause, len(v.Missing))
	}
	b.goesOn(t, backup)
	if _, err := b.AwaitReady(t.Context(), comeBack); err != nil {
		t.Fatal(err)
	}
}
