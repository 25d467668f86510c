// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/tui/feed"
)

// withBackups adds two profiles to a group: one that is proven, and one of which there is nothing yet.
func withBackups(s *story, g *v1alpha1.MysqlFailoverGroup) *v1alpha1.MysqlFailoverGroup {
	at := func(d time.Duration) *metav1.Time { t := metav1.NewTime(s.at.Add(d)); return &t }
	g.Spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{
		{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups"}}, Schedule: &v1alpha1.BackupSchedule{Cron: "0 2 * * *"}},
		{Name: "weekly", Method: v1alpha1.BackupPhysical, Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups"}}, Schedule: &v1alpha1.BackupSchedule{Cron: "@weekly", Suspend: true}},
	}}
	g.Status.Backup = &v1alpha1.BackupStatus{Profiles: []v1alpha1.BackupProfileStatus{{
		Name: "nightly", Backups: 14, Bytes: 61 << 30, LastBackup: "orders-nightly-20261103-0200", LastSuccess: at(-10 * time.Hour), Next: at(14 * time.Hour),
		LastVerified: "orders-nightly-20261102-0200", VerifiedAt: at(-34 * time.Hour), RestoreSeconds: 412,
	}}}
	g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBackupReady, Status: metav1.ConditionTrue, Reason: "AsExpected"})
	return g
}

// archived gives a group an archive with a gap.
func archived(g *v1alpha1.MysqlFailoverGroup) {
	at := func(second int) *metav1.MicroTime {
		t := metav1.NewMicroTime(time.Date(2026, 11, 3, 1, 0, second, 0, time.UTC))
		return &t
	}
	latest, earliest := metav1.NewTime(at(0).Add(9*time.Hour)), metav1.NewTime(at(0).Add(-48*time.Hour))
	g.Spec.Backup.PITR = &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"}
	g.Status.Backup.PITR = &v1alpha1.PITRStatus{Site: "paris", Earliest: &earliest, Latest: &latest, Lag: "<30s", Bytes: 3 << 30, GapCount: 1,
		Gaps: []v1alpha1.PITRGap{{Transactions: 7, Epoch: 6, Site: "madrid", After: at(0), Before: at(5)}}}
}

// backedUp goes on with backups of orders.
func backedUp(s *story) *story {
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{withBackups(s, object("orders", 7, "paris", "frankfurt", "madrid"))}, At: s.at.Add(ahead)})
	return s
}

// TestBackupPane: what the pane says of each state.
func TestBackupPane(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MysqlFailoverGroup)
		want   []string
		not    string
	}{
		"Well":     {func(*v1alpha1.MysqlFailoverGroup) {}, []string{"nightly 10h old, verified 34h ago in 6m52s, 14 kept (61Gi), next in", "weekly none yet, schedule suspended"}, ""},
		"Running":  {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Backup.Profiles[0].Running = "monday" }, []string{"monday is being made"}, "next in"},
		"Unproven": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Backup.Profiles[0].VerifiedAt = nil }, []string{"10h old, never verified"}, "verified 34h"},
		"Gone":     {func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup = nil }, []string{"its profile is gone"}, "weekly"},
		"NotReady": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBackupReady, Status: metav1.ConditionFalse, Reason: "BackupFailed", Message: "the bucket is full"}}
		}, []string{"the bucket is full [BackupFailed]"}, ""},
		"NotProven": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBackupVerified, Status: metav1.ConditionFalse, Reason: "Differs", Message: "rows are missing"}}
		}, []string{"rows are missing [Differs]"}, ""},
		"None":      {func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Backup, g.Status.Backup = nil, nil }, nil, "Backups"},
		"NoArchive": {func(*v1alpha1.MysqlFailoverGroup) {}, nil, "Recover"},
		"Archive": {func(g *v1alpha1.MysqlFailoverGroup) { archived(g) },
			[]string{"Recover", "any moment until", "ago, from", "archived by paris (3.0Gi), 1 gap", "gap: 7 transactions of madrid in epoch 6, after 2026-11-03 01:00:00Z, before 2026-11-03 01:00:05Z"}, "PITRGap"},
		"ArchiveBegins": {func(g *v1alpha1.MysqlFailoverGroup) { archived(g); g.Status.Backup.PITR = nil }, []string{"no point in time yet"}, "any moment"},
		"ArchiveBad": {func(g *v1alpha1.MysqlFailoverGroup) {
			archived(g)
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPITRReady, Status: metav1.ConditionFalse, Reason: "PITRLags", Message: "the bucket does not answer"}}
		}, []string{"the bucket does not answer [PITRLags]"}, ""},
		"ArchiveKeepsAll": {func(g *v1alpha1.MysqlFailoverGroup) { archived(g); g.Status.Backup.PITR.PruneMessage = "NoDeleteRight" },
			[]string{"nothing is removed from the archive, which grows: NoDeleteRight"}, ""},
		"Restoring": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{From: &v1alpha1.RestoreFrom{Group: "old"}}
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreLoading, Backup: "monday", Site: "paris", Progress: 42}
		}, []string{"Restoring", "from shop/old, backup monday, loaded into paris, 42%"}, ""},
		"RestoreFailed": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{}
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreFailed, Reason: "WrongIdentity", Message: "no key"}
		}, []string{"from shop/orders: failed: no key [WrongIdentity]"}, "Restoring"},
		"Restored": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{}
			g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreCompleted}
		}, nil, "from shop/orders"},
	} {
		t.Run(name, func(t *testing.T) {
			s := backedUp(begin(Options{Group: "orders"}))
			g := s.m.fleet.groups["shop/orders"]
			tc.change(g.object)
			s.m.fleet.rebuild(g)
			s.m.width, s.m.height = 200, 60
			got := s.m.frame().Bare()
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			if tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("says %q:\n%s", tc.not, got)
			}
		})
	}
}
