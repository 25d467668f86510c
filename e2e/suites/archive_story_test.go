// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	storyNamespace, storyGroup = "suite-archive", "ledger"
	besideNamespace            = "suite-beside"
	storyPrefix                = "archive"
	storyTable                 = "app.archived"
	storyInterval              = 5 * time.Second
	// storyAway is how long the storage is away, unless AWAY says it, such as AWAY=10m.
	storyAway = time.Minute
	// storyLimit is within which time an archiver must have noticed what was broken, or have caught up once it is mended: it waits half a minute
	// between two tries, and the kubelet a minute and a half until a pod has the new content of a Secret.
	storyLimit = 5 * time.Minute
	// slowUpload is a rate at which an upload of uploadMegabytes takes a minute and more.
	slowUpload, uploadMegabytes = 256 << 10, 24
)

// archiveStory is an encrypted group that archives its binary logs, and everything that happens to it.
type archiveStory struct {
	*stage.Group
	s3 *stage.S3
	id *age.X25519Identity
	// gaps is how many gaps the archive has so far.
	gaps int
}

// archiveStories are played in this order on one group: what one leaves behind the next one finds.
var archiveStories = []struct {
	name string
	play func(*archiveStory, *testing.T)
}{
	{"the bucket is away and back", (*archiveStory).away},
	{"the credentials are revoked, and there are others", (*archiveStory).revoked},
	{"the bucket is full", (*archiveStory).full},
	{"the archiver is killed in an upload", (*archiveStory).killed},
	{"a planned failover in an upload", (*archiveStory).movedMeanwhile},
	{"an emergency loses what is archived", (*archiveStory).loses},
	{"a restored group beside its living origin", (*archiveStory).beside},
	{"a gap is forced by a purge", (*archiveStory).gap},
	{"the keyrings of all sites are lost", (*archiveStory).keyringsLost},
	{"another group at the same place", (*archiveStory).anotherGroup},
}

// Everything that keeps an archive from growing, or that it is there for. ONLY=word plays the stories whose names have the word.
func TestArchiveOfTheWorstDays(t *testing.T) {
	a := &archiveStory{id: identity(t)}
	a.s3 = storage(t, stage.S3Options{Name: "s3-archive", Slowable: true, Memory: true, Size: resource.MustParse("768Mi")})
	g := fresh(t, storyNamespace, storyGroup, a.s3.Grant)
	if err := lab.PutIdentity(t.Context(), storyNamespace, identitySecret, a.id.String()); err != nil {
		t.Fatal(err)
	}
	a.Group = ownGroup(t, g, a.spec(stage.EncryptedSpec(storyGroup)))
	group := settled(t, a.Group, 3*bringUp)
	if err := a.EnsureApp(t.Context()); err != nil {
		t.Fatal(err)
	}
	active := group.Status.ActiveSite
	query(t, a.Group, active, "CREATE TABLE "+storyTable+" (id INT AUTO_INCREMENT PRIMARY KEY, label VARCHAR(64) NOT NULL, b VARBINARY(1024))")
	a.write(t, active, "before", 1)
	if err := a.AwaitCaughtUp(t.Context(), active, comeBack); err != nil {
		t.Fatal(err)
	}
	if _, err := a.MakeBackup(t.Context(), "base", "nightly", backupLimit); err != nil {
		t.Fatal(err)
	}
	a.holdsAll(t, active)
	for _, s := range archiveStories {
		if only := os.Getenv("ONLY"); only != "" && !strings.Contains(s.name, only) {
			continue
		}
		began := time.Now()
		passed := t.Run(s.name, func(t *testing.T) { s.play(a, t) })
		lab.Say("%s: passed %t after %s", s.name, passed, time.Since(began).Round(time.Second))
		if passed {
			continue
		}
		// The next one must not fail for what this one has left.
		a.Diagnose(t.Context(), "archive-"+strings.NewReplacer(" ", "-", ",", "").Replace(s.name))
		if err := errors.Join(lab.Restore(t.Context()), a.s3.Back(t.Context()), a.s3.Room(t.Context()), a.s3.SetRate(t.Context(), 0), a.s3.Grant(t.Context(), storyNamespace)); err != nil {
			t.Error(err)
		}
	}
}

// spec gives a group profiles of both methods, which write to one place, and an archive there. The logs have the names of columns.
func (a *archiveStory) spec(spec v1alpha1.MysqlFailoverGroupSpec) v1alpha1.MysqlFailoverGroupSpec {
	spec.MysqlConf = map[string]string{"binlog_row_metadata": "FULL"}
	spec.Backup = &v1alpha1.BackupSpec{PITR: &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly", Interval: metav1.Duration{Duration: storyInterval}}}
	for _, method := range []v1alpha1.BackupMethod{v1alpha1.BackupLogical, v1alpha1.BackupPhysical} {
		name := map[v1alpha1.BackupMethod]string{v1alpha1.BackupLogical: "nightly", v1alpha1.BackupPhysical: "physical"}[method]
		spec.Backup.Profiles = append(spec.Backup.Profiles, v1alpha1.BackupProfile{
			Name: name, Method: method, Storage: a.s3.Storage(storyPrefix),
			Encryption: &v1alpha1.BackupEncryption{Recipients: []string{a.id.Recipient().String()}, IdentitySecretName: identitySecret},
		})
	}
	return spec
}

// active is the active site of a group that is whole.
func (a *archiveStory) active(t *testing.T) (string, *v1alpha1.MysqlFailoverGroup) {
	t.Helper()
	group := settled(t, a.Group, bringUp)
	return group.Status.ActiveSite, group
}

// settled waits for a group that is whole and of which no pod is to be replaced. Sealing its keyrings replaces every pod of a new group that is
// encrypted, and moves its role, after it was ready.
func settled(t *testing.T, g *stage.Group, limit time.Duration) *v1alpha1.MysqlFailoverGroup {
	t.Helper()
	group, err := g.Await(t.Context(), limit, "group "+g.Name+" to be whole and sealed", func(group *v1alpha1.MysqlFailoverGroup) error {
		if e := group.Spec.EncryptionAtRest; e != nil && e.Enabled {
			return errors.Join(notSealed(group), stage.NotUpdated(group))
		}
		return stage.NotUpdated(group)
	})
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// write writes so many megabytes of rows that do not compress, in transactions of one each.
func (a *archiveStory) write(t *testing.T, site, label string, megabytes int) {
	t.Helper()
	writeTo(t, a.Group, site, label, megabytes)
}

func writeTo(t *testing.T, g *stage.Group, site, label string, megabytes int) {
	t.Helper()
	statements := []string{"SET SESSION cte_max_recursion_depth = 2000"}
	for range megabytes {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s (label, b) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1024) "+
			"SELECT '%s', RANDOM_BYTES(1024) FROM n", storyTable, label))
	}
	query(t, g, site, strings.Join(statements, "; "))
}

// executed is the set of a site, on one line.
func executed(t *testing.T, g *stage.Group, site string) string {
	t.Helper()
	return strings.ReplaceAll(query(t, g, site, "SELECT @@GLOBAL.gtid_executed"), `\n`, "")
}

// holdsAll waits until the archive holds all that a site has executed, and no gap that was not there before. It returns that set.
func (a *archiveStory) holdsAll(t *testing.T, site string) string {
	t.Helper()
	return holdsAll(t, a.Group, site, a.gaps)
}

func holdsAll(t *testing.T, g *stage.Group, site string, gaps int) string {
	t.Helper()
	all, began := executed(t, g, site), time.Now()
	s, err := g.AwaitArchiver(t.Context(), site, storyLimit, func(s wire.ArchiverStatus) error {
		lacks, err := lacksOf(t.Context(), g, site, all, s)
		if err == nil && (s.State != wire.ArchiverArchiving || lacks != "") {
			err = fmt.Errorf("it lacks %.200q; %s", lacks, stage.DescribeArchiver(s))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.GapCount != gaps {
		t.Errorf("the archive has %d gaps, and %d are to be expected: %+v", s.GapCount, gaps, s.Gaps)
	}
	t.Logf("all is archived after %s: %s", time.Since(began).Round(100*time.Millisecond), stage.DescribeArchiver(s))
	return all
}

// lacksOf is what the archive lacks of a set, but for its gaps, which are told besides, and for what is in a backup: logs from before the oldest
// one lead nowhere, and go.
func lacksOf(ctx context.Context, g *stage.Group, site, all string, s wire.ArchiverStatus) (string, error) {
	for _, gap := range s.Gaps {
		s.ArchivedGTID += "," + gap.GTIDs
	}
	var backups v1alpha1.MysqlBackupList
	if err := g.Kube.List(ctx, &backups, client.InNamespace(g.Namespace)); err != nil {
		return "", err
	}
	for _, b := range backups.Items {
		if b.Status.Phase == v1alpha1.BackupCompleted && b.Status.GTIDExecuted != "" && b.Spec.Group == g.Name {
			s.ArchivedGTID += "," + b.Status.GTIDExecuted
		}
	}
	group, err := g.Get(ctx)
	if err != nil {
		return "", err
	}
	if r := group.Status.Restore; r != nil && r.GTIDExecuted != "" {
		s.ArchivedGTID += "," + r.GTIDExecuted // a restored group's archive begins with what it was restored to
	}
	out, err := g.RootSQL(ctx, site, fmt.Sprintf("SELECT GTID_SUBTRACT('%s', '%s')", all, strings.TrimPrefix(s.ArchivedGTID, ",")))
	return strings.ReplaceAll(strings.TrimSpace(out), `\n`, ""), err
}

// fails waits until the archiver of a site says that it does not come further, and why.
func (a *archiveStory) fails(t *testing.T, site string, reasons ...string) {
	t.Helper()
	began := time.Now()
	s, err := a.AwaitArchiver(t.Context(), site, storyLimit, func(s wire.ArchiverStatus) error {
		for _, r := range reasons {
			if s.State == wire.ArchiverFailing && s.Reason == r && s.Message != "" {
				return nil
			}
		}
		return fmt.Errorf("it does not say %v; %s", reasons, stage.DescribeArchiver(s))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("it said so after %s: %s: %s", time.Since(began).Round(100*time.Millisecond), s.Reason, s.Message)
}

// uploading begins an upload that takes a minute, and returns once it is on its way.
func (a *archiveStory) uploading(t *testing.T, site, label string) {
	t.Helper()
	a.holdsAll(t, site)
	if err := a.s3.SetRate(t.Context(), slowUpload); err != nil {
		t.Fatal(err)
	}
	a.write(t, site, label, uploadMegabytes)
	all := executed(t, a.Group, site)
	sleep(t, 3*storyInterval)
	p, err := a.Archiver(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Status()
	if err != nil {
		t.Fatal(err)
	}
	if lacks, err := lacksOf(t.Context(), a.Group, site, all, s); err != nil || lacks == "" {
		t.Fatalf("the upload was over before it could be disturbed: %v; %s", err, stage.DescribeArchiver(s))
	}
}
