// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestBackupsOf: a profile that left the specification is told of while there are backups of it, and only then.
func TestBackupsOf(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 3, 2, 0, 0, 0, time.UTC))
	later := metav1.NewTime(at.Add(time.Hour))
	g := &v1alpha1.MysqlFailoverGroup{}
	if BackupsOf(g) != nil || RestoreOf(g) != nil {
		t.Error("there are none")
	}
	g.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{Name: "b"}, {Name: "a", Method: v1alpha1.BackupPhysical}}}
	g.Status.Backup = &v1alpha1.BackupStatus{Profiles: []v1alpha1.BackupProfileStatus{
		{Name: "z", Backups: 1, LastSuccess: &at}, {Name: "gone"}, {Name: "y", Running: "x"}, {Name: "a", LastSuccess: &later, VerifiedAt: &at},
	}}
	b := BackupsOf(g)
	var names []string
	for _, p := range b.Profiles {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"b", "a", "y", "z"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last, proven := b.Last()
	if !last.Equal(later.Time) || !proven.Equal(at.Time) || !b.Profiles[3].Removed || b.Profiles[0].Method != "Logical" || b.Bad() {
		t.Errorf("%v %v %+v", last, proven, b)
	}
}

// TestStorageWords names each kind of place.
func TestStorageWords(t *testing.T) {
	for want, s := range map[string]v1alpha1.BackupStorage{
		"s3://b":         {S3: &v1alpha1.S3Storage{Bucket: "b"}},
		"s3://b/p/q":     {S3: &v1alpha1.S3Storage{Bucket: "b", Prefix: "p/q"}},
		"gs://b":         {GCS: &v1alpha1.GCSStorage{Bucket: "b"}},
		"azure://c/p":    {Azure: &v1alpha1.AzureStorage{Container: "c", Prefix: "p"}},
		"volume:claim/x": {Volume: &v1alpha1.VolumeStorage{ClaimName: "claim", SubPath: "x"}},
		"":               {},
	} {
		if got := StorageWords(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBackupProblems: conditions of backups speak against health, each with what to do next.
func TestBackupProblems(t *testing.T) {
	for kind, command := range map[string]string{
		v1alpha1.ConditionBackupReady:    "kubectl mfg backup list orders -n shop",
		v1alpha1.ConditionBackupVerified: "kubectl mfg backup list orders -n shop",
		v1alpha1.ConditionRestoreReady:   "kubectl mfg events orders -n shop --warnings",
	} {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionUnknown} {
			g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
			g.Status.ActiveSite = "paris"
			g.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: "Because", Message: "words"}}
			r := Build(g, LiveView{Denied: true})
			bad := status == metav1.ConditionFalse
			if (len(r.Problems) == 1) != bad || bad && (r.Problems[0].Message != "words" || len(r.Hints) == 0 || r.Hints[0].Command != command) {
				t.Errorf("%s is %s: %+v %+v", kind, status, r.Problems, r.Hints)
			}
		}
	}
}

// TestNeedsAttention: of each profile the newest that has ended counts, and every proof that failed.
func TestNeedsAttention(t *testing.T) {
	of := func(profile string, phase v1alpha1.BackupPhase, outcome v1alpha1.BackupOutcome) v1alpha1.MysqlBackup {
		b := v1alpha1.MysqlBackup{Spec: v1alpha1.MysqlBackupSpec{Group: "g", Profile: profile}, Status: v1alpha1.MysqlBackupStatus{Phase: phase}}
		if outcome != "" {
			b.Status.Verified = &v1alpha1.BackupVerified{Outcome: outcome}
		}
		return b
	}
	done, failed, running := v1alpha1.BackupCompleted, v1alpha1.BackupFailed, v1alpha1.BackupRunning
	for name, tc := range map[string]struct {
		newestFirst []v1alpha1.MysqlBackup
		want        bool
	}{
		"None":        {nil, false},
		"Well":        {[]v1alpha1.MysqlBackup{of("a", running, ""), of("a", done, v1alpha1.BackupPassed)}, false},
		"Mended":      {[]v1alpha1.MysqlBackup{of("a", done, ""), of("a", failed, "")}, false},
		"NewestFails": {[]v1alpha1.MysqlBackup{of("a", running, ""), of("a", failed, ""), of("a", done, "")}, true},
		"OtherFails":  {[]v1alpha1.MysqlBackup{of("a", done, ""), of("b", failed, "")}, true},
		"Spoilt":      {[]v1alpha1.MysqlBackup{of("a", done, ""), of("a", done, v1alpha1.BackupNotRestorable)}, true},
	} {
		for i := range tc.newestFirst {
			tc.newestFirst[i].CreationTimestamp = metav1.NewTime(time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC).Add(-time.Duration(i) * time.Hour))
		}
		if got := NewBackupList(tc.newestFirst).NeedsAttention(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
