// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestBackupDeleteKeepsNothingLate: once a backup was deleted, a Job may be removing its artifact, which the mark does not stop.
func TestBackupDeleteKeepsNothingLate(t *testing.T) {
	goes := func(f *backupAPI) { f.backups[0].DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		before, tick func(*backupAPI)
		want         string
	}{
		"Before":    {goes, nil, "look for what is left in s3://backups/shop/orders"},
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

// TestBackupDeleteMeanwhile: a person confirms what the plan says. Hours may pass over the question, in which others begin to use the backup.
func TestBackupDeleteMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		args      string
		meanwhile func(*backupAPI)
		code      int
		did       []string
		want      string
	}{
		"Restored":    {"old", restoring("old"), cli.ExitRefused, nil, "group shop/orders-2 is being restored from backup old"},
		"ToBe":        {"old", restoring(""), cli.ExitRefused, nil, "group shop/orders-2 is to be restored from the newest backup"},
		"OnlyOne":     {"old", func(f *backupAPI) { f.backups = f.backups[:1] }, cli.ExitRefused, nil, "it is the only one"},
		"Base":        {"old", archived(-30 * time.Hour), cli.ExitRefused, nil, "the archive of binary logs builds on it"},
		"ProfileGone": {"old", func(f *backupAPI) { f.groups[0].Spec.Backup.Profiles[0].Name = "other" }, cli.ExitRefused, nil, "the artifact STAYS in the storage"},
		"Other":       {"old", restoring("fresh"), cli.ExitHealthy, []string{"delete old"}, "backup old is gone"},
		"OneMore": {"old", func(f *backupAPI) { f.backups = append(f.backups, ofOrders("newer", 0)) }, cli.ExitHealthy, []string{"delete old"},
			"backup old is gone"},
		"Kept": {"old --keep-artifact", restoring("old"), cli.ExitHealthy, []string{"annotate old keep-artifact", "delete old"}, "its artifact is still in the storage"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProfile(t, ofOrders("old", -50*time.Hour), ofOrders("fresh", -2*time.Hour))
			got := run(t, f, runOptions{stdin: "y\n", typed: func() { tc.meanwhile(f) }, tick: func(int) {
				f.backups = slices.DeleteFunc(f.backups, func(b v1alpha1.MysqlBackup) bool { return b.DeletionTimestamp != nil })
			}}, strings.Fields("backup delete -n shop "+tc.args)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d and %q: %+v", got.code, tc.code, tc.want, got)
			}
			if diff := cmp.Diff(tc.did, f.did); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
