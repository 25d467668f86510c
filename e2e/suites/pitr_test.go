// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	pitrNamespace, pitrGroup = "suite-pitr", "ledger"
	momentNamespace          = "suite-moment"
	pitrPrefix               = "pitr"
	// pitrInterval is the shortest, so that the test need not wait.
	pitrInterval = 5 * time.Second
	// archiveLimit is how long it may take until status says that what was committed is archived. A status in which only times and sets have
	// changed is written once a minute.
	archiveLimit = 2 * time.Minute
)

// pitrStory is a group that archives its binary logs, and the moment that somebody wants back.
type pitrStory struct {
	*stage.Group
	s3  *stage.S3
	now *v1alpha1.MysqlFailoverGroup
	// orders are the digests of the table that was dropped, dropped is the GTID of the DROP, and kept how many rows the writer was promised
	// before it.
	orders  map[string]string
	dropped string
	kept    int
}

// Somebody drops a table, after a planned failover and with writers that go on. The plugin finds the transaction in the archive, and another
// group comes up from the bucket with everything until just before it, of both sites.
func TestAnyMomentBack(t *testing.T) {
	t.Parallel()
	p := &pitrStory{s3: storage(t, stage.S3Options{Name: "s3-pitr"})}
	id := identity(t)
	g := fresh(t, pitrNamespace, pitrGroup, p.s3.Grant)
	if err := lab.PutIdentity(t.Context(), pitrNamespace, identitySecret, id.String()); err != nil {
		t.Fatal(err)
	}
	spec := stage.DefaultSpec(pitrGroup)
	spec.Backup = &v1alpha1.BackupSpec{
		Profiles: []v1alpha1.BackupProfile{{
			Name: "nightly", Method: v1alpha1.BackupLogical, Storage: p.s3.Storage(pitrPrefix),
			Encryption: &v1alpha1.BackupEncryption{Recipients: []string{id.Recipient().String()}, IdentitySecretName: identitySecret},
		}},
		PITR: &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly", Interval: metav1.Duration{Duration: pitrInterval}},
	}
	p.Group = ownGroup(t, g, spec)
	p.write(t)
	p.mistake(t)
	p.find(t)
	p.back(t, id.String())
}

// write makes a backup, and rows before and after it and after a planned failover.
func (p *pitrStory) write(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var err error
	if p.now, err = p.AwaitReady(ctx, bringUp); err != nil {
		t.Fatal(err)
	}
	if err := p.EnsureApp(ctx); err != nil {
		t.Fatal(err)
	}
	w, err := p.StartServiceWriter(ctx, fmt.Sprintf("pitr-%d", time.Now().Unix()%1_000_000), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AwaitCaughtUp(ctx, p.now.Status.ActiveSite, comeBack); err != nil {
		t.Log(err) // the writer goes on
	}
	if _, err := p.MakeBackup(ctx, "base", "nightly", backupLimit); err != nil {
		t.Fatal(err)
	}
	write(t, p.Group, "CREATE TABLE IF NOT EXISTS app.orders (id INT PRIMARY KEY, v VARCHAR(64)); REPLACE INTO app.orders VALUES (1, 'before the move')")
	movedByPlugin(t, p.Group, otherCandidate(t, p.now))
	if p.now, err = p.AwaitReady(ctx, comeBack); err != nil {
		t.Fatal(err)
	}
	write(t, p.Group, "REPLACE INTO app.orders VALUES (2, 'after the move')")
	j, err := w.Stop(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p.kept = len(j.Commits); p.kept == 0 {
		t.Fatal("no row was acknowledged")
	}
}

// mistake drops the table while others write, and waits until the archive has it.
func (p *pitrStory) mistake(t *testing.T) {
	t.Helper()
	active := p.now.Status.ActiveSite
	digests, err := p.Digests(t.Context(), active)
	if err != nil {
		t.Fatal(err)
	}
	if p.orders = digestsOf(digests, "app.orders"); len(p.orders) == 0 {
		t.Fatalf("no digest of app.orders in %v", digests)
	}
	query(t, p.Group, active, "DROP TABLE app.orders; CREATE TABLE app.later (id INT PRIMARY KEY); INSERT INTO app.later VALUES (1)")
	all := query(t, p.Group, active, "SELECT @@GLOBAL.gtid_executed")
	p.dropped = all
	began := time.Now()
	if err := stage.Poll(t.Context(), archiveLimit, "the archive to hold everything", func(ctx context.Context) error {
		now, err := p.Get(ctx)
		if err != nil {
			return err
		}
		st := now.Status.Backup
		if st == nil || st.PITR == nil {
			return errors.New("status says nothing of the archive")
		}
		out, err := p.RootSQL(ctx, active, fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s')", all, st.PITR.ArchivedGTID))
		if err != nil {
			return err
		}
		if strings.TrimSpace(out) != "1" || st.PITR.Site != now.Status.ActiveSite || len(st.PITR.Gaps) > 0 || st.PITR.Reason != "" {
			return fmt.Errorf("status.backup.pitr is %+v, and %s executed %s", *st.PITR, active, all)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("archived after %s", time.Since(began).Round(100*time.Millisecond))
	now, err := p.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionPITRReady); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %s: %+v", v1alpha1.ConditionPITRReady, c)
	}
}

// digestsOf are those of one table and its columns.
func digestsOf(all map[string]string, table string) map[string]string {
	return maps.Collect(func(yield func(string, string) bool) {
		for name, digest := range all {
			if strings.Contains(name, table) && !yield(name, digest) {
				return
			}
		}
	})
}

// find asks the plugin which transaction it was.
func (p *pitrStory) find(t *testing.T) {
	t.Helper()
	plugin(t, "-n", pitrNamespace, "backup", "timeline", pitrGroup).want(t, 0, nil).says(t, "east", "west", "base")
	var found struct {
		Items []struct {
			GTID string `json:"gtid"`
		} `json:"items"`
	}
	a := plugin(t, "-n", pitrNamespace, "backup", "find", pitrGroup, "--before-drop", "app.orders", "-o", "json").want(t, 0, &found)
	if len(found.Items) != 1 || found.Items[0].GTID == "" {
		t.Fatalf("the DROP was not found:\n%s%s", a.out, a.errOut)
	}
	p.dropped = found.Items[0].GTID
}

// back makes another group of the bucket, as it was before the mistake.
func (p *pitrStory) back(t *testing.T, identityText string) {
	t.Helper()
	ctx := t.Context()
	g := fresh(t, momentNamespace, restoredGroup, p.s3.Grant)
	if err := lab.PutIdentity(ctx, momentNamespace, identitySecret, identityText); err != nil {
		t.Fatal(err)
	}
	spec := stage.DefaultSpec(restoredGroup)
	spec.Sites = spec.Sites[:2]
	from := p.s3.Storage(pitrPrefix)
	spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{
		Storage: &from, Encryption: &v1alpha1.RestoreEncryption{IdentitySecretName: identitySecret},
		From:        &v1alpha1.RestoreFrom{Namespace: pitrNamespace, Group: pitrGroup},
		PointInTime: &v1alpha1.PointInTime{BeforeGTID: p.dropped},
	}
	began := time.Now()
	g = ownGroup(t, g, spec)
	if _, err := g.AwaitRestore(ctx, bringUp, "the restore", stage.RestoreNotDone); err != nil {
		t.Fatal(err)
	}
	loaded := time.Since(began)
	group, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the first site had its data after %s, and the group was whole after %s: %+v", loaded.Round(100*time.Millisecond),
		time.Since(began).Round(100*time.Millisecond), group.Status.Restore)
	for _, s := range group.Spec.Sites {
		got, err := g.Digests(ctx, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		sameDigests(t, s.Name, p.orders, digestsOf(got, "app.orders"))
		if len(digestsOf(got, "app.later")) > 0 {
			t.Errorf("%s has what was written after the moment", s.Name)
		}
	}
	if rows, err := strconv.Atoi(query(t, g, group.Status.ActiveSite, "SELECT COUNT(*) FROM app.writes")); err != nil || rows < p.kept {
		t.Errorf("%d rows are there, and %d were acknowledged: %v", rows, p.kept, err)
	}
	// The group that it came from goes on archiving, and the new one touches nothing of it.
	if now, err := p.Get(ctx); err != nil || now.Status.Backup == nil || now.Status.Backup.PITR == nil || now.Status.Backup.PITR.Reason != "" {
		t.Errorf("the origin does not archive any more: %v", err)
	}
}
