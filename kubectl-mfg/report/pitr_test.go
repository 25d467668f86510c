// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// TestPITROf: an archive is told of once it is turned on, as status has it.
func TestPITROf(t *testing.T) {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	if PITROf(g) != nil {
		t.Error("a group without backups has an archive")
	}
	g.Spec.Backup = &v1alpha1.BackupSpec{PITR: &v1alpha1.PITRSpec{Profile: "nightly"}}
	if PITROf(g) != nil {
		t.Error("an archive that is turned off is told of")
	}
	g.Spec.Backup.PITR.Enabled = true
	if p := PITROf(g); p == nil || p.Profile != "nightly" || p.Latest != nil || p.Bad() {
		t.Errorf("%+v", p)
	}
	at := metav1.NewTime(time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC))
	micro := metav1.NewMicroTime(at.Add(123456 * time.Microsecond))
	g.Status.Backup = &v1alpha1.BackupStatus{PITR: &v1alpha1.PITRStatus{Site: "paris", Latest: &at, GapCount: 1, Gaps: []v1alpha1.PITRGap{{Transactions: 7, After: &micro, Site: "rome"}}, Reason: "PITRGap", Message: "7 are missing", PruneMessage: "NoDeleteRight"}}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPITRReady, Status: metav1.ConditionFalse, Reason: "PITRGap", Message: "of the condition"}}
	p := PITROf(g)
	if !p.Bad() || p.Message != "7 are missing" || p.PruneMessage != "NoDeleteRight" || !p.Latest.Equal(at.Time) || p.Gaps[0].After.Nanosecond() != 123456000 || p.Gaps[0].Before != nil {
		t.Errorf("%+v", p)
	}
}

// TestPITRProblems: what is wrong with an archive is a problem with a next step; one that is about to begin is none.
func TestPITRProblems(t *testing.T) {
	r := MysqlFailoverGroupReport{Metadata: Metadata{Name: "orders", Namespace: "shop"}, Conditions: []Condition{{Type: v1alpha1.ConditionPITRReady, Status: "False", Reason: v1alpha1.ReasonPITRGap, Message: "7 are missing"}}}
	found := pitrProblems(r)
	if len(found) != 1 || found[0].Message != "7 are missing" {
		t.Fatalf("%+v", found)
	}
	hints, is := r.backupHints(found[0])
	if !is || !strings.Contains(hints[0].Command, "kubectl mfg backup timeline orders") {
		t.Errorf("%+v", hints)
	}
	r.Conditions[0].Reason = v1alpha1.ReasonPITRStarting
	if found := pitrProblems(r); found != nil {
		t.Errorf("%+v", found)
	}
}

// TestRecoverable: from the oldest backup from which the archive leads on.
func TestRecoverable(t *testing.T) {
	noon := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	r := Timeline{Archive: wire.ArchiveTimeline{Latest: noon, Backups: []wire.ArchiveBackup{
		{Name: "new", FinishedAt: noon.Add(-time.Hour), Reaches: true}, {Name: "old", FinishedAt: noon.Add(-2 * time.Hour), Reaches: true}, {Name: "useless", FinishedAt: noon.Add(-3 * time.Hour)}}}}
	if from, to := r.Recoverable(); !from.Equal(noon.Add(-2*time.Hour)) || !to.Equal(noon) || r.NeedsAttention() {
		t.Errorf("%s to %s", from, to)
	}
	r.Archive.Backups = r.Archive.Backups[2:]
	if from, _ := r.Recoverable(); !from.IsZero() || !r.NeedsAttention() {
		t.Errorf("from %s", from)
	}
}
