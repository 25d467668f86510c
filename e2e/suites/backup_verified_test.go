// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// verifyLimit is how long a verification of a few rows may take, its pod included.
const verifyLimit = 4 * time.Minute

// Every backup is proven by a restore, by both methods, and status, condition and metrics say so. A byte in the storage is turned over: the next
// proof fails, and event, condition and the metric that the alert goes by say that; a backup that is made after it is proven again.
func TestBackupVerified(t *testing.T) {
	p := &backupStory{s3: storage(t, stage.S3Options{Name: "s3"}), id: identity(t), marker: "MARKER-VERIFIED"}
	g := fresh(t, backupNamespace, backupGroup, p.s3.Grant)
	if err := lab.PutIdentity(t.Context(), backupNamespace, identitySecret, p.id.String()); err != nil {
		t.Fatal(err)
	}
	spec := stage.DefaultSpec(backupGroup)
	spec.Backup = backedUp(p.s3, p.id, v1alpha1.BackupLogical).Backup
	nightly := spec.Backup.Profiles[0]
	nightly.Verification = &v1alpha1.BackupVerification{AfterEvery: 1, Query: "SELECT COUNT(*) FROM app.marked"}
	copies := *nightly.DeepCopy()
	copies.Name, copies.Method = "copies", v1alpha1.BackupPhysical
	spec.Backup.Profiles = []v1alpha1.BackupProfile{nightly, copies}
	g = ownGroup(t, g, spec)
	group, err := g.AwaitReady(t.Context(), bringUp)
	if err != nil {
		t.Fatal(err)
	}
	query(t, g, group.Status.ActiveSite, strings.Join(stage.OddSchema(p.marker), "; "))
	if err := g.AwaitCaughtUp(t.Context(), group.Status.ActiveSite, comeBack); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"nightly", "copies"} {
		began := time.Now()
		if _, err := g.MakeBackup(t.Context(), profile+"-good", profile, backupLimit); err != nil {
			t.Fatal(err)
		}
		b := awaitVerdict(t, g, profile+"-good", v1alpha1.BackupPassed, began)
		t.Logf("%s was proven %s after it was ordered, its restore took %d s", b.Name, time.Since(began).Round(time.Second), b.Status.Verified.RestoreSeconds)
		provenIs(t, g, profile, 1)
		if at := gauge(t, g, "operator_backup_verified_timestamp_seconds", profile); time.Since(time.Unix(int64(at), 0)) > verifyLimit {
			t.Errorf("the metric says that %s was proven at %v", profile, time.Unix(int64(at), 0))
		}
	}
	awaitCondition(t, g, metav1.ConditionTrue, v1alpha1.ReasonBackupVerified)

	p.turnOver(t, "nightly-good", "dump.")
	began := time.Now()
	a := plugin(t, "backup", "verify", g.Name, "nightly-good", "-n", g.Namespace)
	if a.code == 0 || !strings.Contains(a.out+a.errOut, "DamagedBackup") && !strings.Contains(a.out+a.errOut, "not what was written") {
		t.Errorf("exit code %d of the verification of a damaged backup: %s%s", a.code, a.out, a.errOut)
	}
	awaitVerdict(t, g, "nightly-good", v1alpha1.BackupNotRestorable, began)
	awaitCondition(t, g, metav1.ConditionFalse, v1alpha1.ReasonBackupNotRestorable)
	provenIs(t, g, "nightly", 0)
	provenIs(t, g, "copies", 1)
	if err := stage.Poll(t.Context(), time.Minute, "the event of it", func(ctx context.Context) error {
		lines, err := g.Events(ctx)
		if err == nil && !strings.Contains(strings.Join(lines, "\n"), string(v1alpha1.ReasonBackupNotRestorable)) {
			err = errors.New(strings.Join(lines, "\n"))
		}
		return err
	}); err != nil {
		t.Error(err)
	}

	began = time.Now()
	if _, err := g.MakeBackup(t.Context(), "nightly-next", "nightly", backupLimit); err != nil {
		t.Fatal(err)
	}
	awaitVerdict(t, g, "nightly-next", v1alpha1.BackupPassed, began)
	awaitCondition(t, g, metav1.ConditionTrue, v1alpha1.ReasonBackupVerified)
	provenIs(t, g, "nightly", 1)
}

// awaitVerdict waits for a verdict on a backup that is not older than a moment.
func awaitVerdict(t *testing.T, g *stage.Group, name string, want v1alpha1.BackupOutcome, after time.Time) *v1alpha1.MysqlBackup {
	t.Helper()
	b, err := g.AwaitBackup(t.Context(), name, verifyLimit, func(b *v1alpha1.MysqlBackup) error {
		if v := b.Status.Verified; v == nil || v.At == nil || v.At.Add(time.Second).Before(after) {
			return errors.New("there is no new verdict: " + stage.DescribeBackup(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := b.Status.Verified; v.Outcome != want {
		t.Fatalf("%s: %s: %s, want %s", name, v.Outcome, v.Message, want)
	}
	return b
}

func awaitCondition(t *testing.T, g *stage.Group, want metav1.ConditionStatus, reason v1alpha1.Reason) {
	t.Helper()
	if _, err := g.Await(t.Context(), time.Minute, "condition "+v1alpha1.ConditionBackupVerified+" to be "+string(want), func(group *v1alpha1.MysqlFailoverGroup) error {
		c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionBackupVerified)
		if c == nil || c.Status != want || c.Reason != string(reason) {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// provenIs waits until the metric that the alert goes by has a value.
func provenIs(t *testing.T, g *stage.Group, profile string, want float64) {
	t.Helper()
	if err := stage.Poll(t.Context(), time.Minute, "the metric of "+profile, func(context.Context) error {
		if got := gauge(t, g, "operator_backup_verified", profile); got != want {
			return fmt.Errorf("it is %v, want %v", got, want)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// gauge is a metric of a profile as the operator shows it; -1 if it does not.
func gauge(t *testing.T, g *stage.Group, name, profile string) float64 {
	t.Helper()
	raw, err := lab.Fetch(t.Context(), "mfg-metrics", "8080", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if !regexp.MustCompile(`^\w*`+name+`\{`).MatchString(line) || !strings.Contains(line, `failover_group="`+g.Name+`"`) ||
			!strings.Contains(line, `mysql_namespace="`+g.Namespace+`"`) || !strings.Contains(line, `profile="`+profile+`"`) {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	return -1
}

// turnOver changes one bit of an object of a backup, in the storage.
func (p *backupStory) turnOver(t *testing.T, backup, object string) {
	t.Helper()
	turned := 0
	root := filepath.Join(p.dir(t), backupPrefix, backupNamespace, backupGroup, "backups", backup)
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), object) {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		raw[len(raw)*2/3] ^= 1
		turned++
		return os.WriteFile(path, raw, 0o644)
	}); err != nil || turned == 0 {
		t.Fatalf("%d objects were turned over: %v", turned, err)
	}
}
