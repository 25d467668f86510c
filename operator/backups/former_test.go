// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// A group that was applied again owns no place in which the group before it wrote. Its API keeps a profile's storage while the status counts
// backups (api/v1alpha1), so those of the other group must not count: the profile could go nowhere, and every backup would end with ForeignOwner.
func TestBackupsOfAFormerGroupKeepNoStorage(t *testing.T) {
	for reason, tc := range map[string]struct {
		made time.Time
		want int32
	}{
		"all by this group":                    {began.Add(-time.Hour), 2},
		"made in the second of the first":      {began, 2},
		"applied again after the first backup": {began.Add(time.Minute), 1},
		"applied again after both":             {began.Add(2 * time.Hour), 0},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(func(*v1alpha1.BackupProfile) {}), func(g *v1alpha1.MysqlFailoverGroup) {
				g.CreationTimestamp = metav1.NewTime(tc.made)
			}), order("monday", completedAt(began)), order("tuesday", completedAt(began), func(mb *v1alpha1.MysqlBackup) {
				mb.Status.StartedAt, mb.Status.FinishedAt = timeOf(began.Add(time.Hour)), timeOf(began.Add(time.Hour))
			}))
			w.now = began.Add(3 * time.Hour)
			w.group()
			if st := w.status(); st.Backups != tc.want || st.Bytes != int64(tc.want)*100 {
				t.Errorf("%d backups with %d bytes, want %d", st.Backups, st.Bytes, tc.want)
			}
			if w.count() != 2 {
				t.Error("it removed what it does not count")
			}
		})
	}
}
