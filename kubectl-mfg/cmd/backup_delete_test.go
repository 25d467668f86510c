// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestBackupDeleteKeepsNothingLate: once a backup was deleted, a Job may be removing its artifact, which the mark does not stop.
func TestBackupDeleteKeepsNothingLate(t *testing.T) {
	goes := func(f *backupAPI) { f.backups[0].DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		before, tick func(*backupAPI)
		want         string
	}{
		"Before":    {goes, nil, "look for what is left in s3://backups/shop/orders/backups/old"},
		"Meanwhile": {func(f *backupAPI) { f.busy = 1 }, goes, "kubectl mfg backup show old -n shop"},
		"NoLocation": {func(f *backupAPI) {
			goes(f)
			f.backups[0].Status.Location = ""
		}, nil, "in the storage of profile nightly"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, ofOrders("old", -50*time.Hour), ofOrders("fresh", -2*time.Hour))
			tc.before(f)
			got := run(t, f, runOptions{tick: func(n int) {
				if tc.tick != nil && n == 1 {
					tc.tick(f)
				}
			}}, strings.Fields("backup delete old -n shop --keep-artifact --yes --timeout 3s")...)
			if got.code != cli.ExitRefused || len(f.did) > 0 || len(f.backups[0].Annotations) > 0 || !strings.Contains(got.errOut, tc.want) {
				t.Errorf("did %v: %+v", f.did, got)
			}
		})
	}
}
