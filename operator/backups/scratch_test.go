// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// The scratch volume of a Physical backup goes with the Job: at once when the result is persisted, and an hour after a failure. Until then
// people can read the log, as they can for a day after a Logical backup, whose pod holds nothing.
func TestACopyOfTheDataIsNotKept(t *testing.T) {
	for name, tc := range map[string]struct {
		method v1alpha1.BackupMethod
		fails  bool
		// goes says after how long the Job is removed; never if negative.
		goes time.Duration
	}{
		"a Physical backup":            {v1alpha1.BackupPhysical, false, 0},
		"a Physical backup that fails": {v1alpha1.BackupPhysical, true, time.Hour},
		"a Logical backup":             {v1alpha1.BackupLogical, false, -1},
		"a Logical backup that fails":  {v1alpha1.BackupLogical, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			mb := order("monday", running, func(mb *v1alpha1.MysqlBackup) { mb.Status.Method = tc.method })
			// The profile has another method by now.
			w := newWorld(t, scopetest.Group(scopetest.Running, withProfile(nil)), mb)
			w.put(w.madeJob(mb, 1))
			if tc.fails {
				w.ends("backup-monday", terms.ExitConfig, terms.Result{Reason: terms.BadConfig, Backup: "monday"})
			} else {
				w.ends("backup-monday", 0, good("monday"))
			}
			w.step("monday")
			if did := w.took(); !strings.HasPrefix(did, "status ") || strings.HasSuffix(did, "delete backup-monday") != (tc.goes == 0) {
				t.Errorf("did %s", did)
			}
			for range 3 {
				w.step("monday")
			}
			if there := w.jobOf("backup-monday") != nil; there != (tc.goes != 0) {
				t.Fatalf("the Job is there: %t", there)
			}
			if tc.goes > 0 {
				if again := w.step("monday").RequeueAfter; again <= 0 || again > tc.goes {
					t.Errorf("looks again after %v", again)
				}
			}
			w.now = w.now.Add(2 * time.Hour)
			w.step("monday")
			if there := w.jobOf("backup-monday") != nil; there != (tc.goes < 0) {
				t.Errorf("two hours later the Job is there: %t", there)
			}
			want := v1alpha1.BackupCompleted
			if tc.fails {
				want = v1alpha1.BackupFailed
			}
			if st := w.get("monday").Status; st.Phase != want {
				t.Errorf("%+v", st)
			}
		})
	}
}
