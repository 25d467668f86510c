// SPDX-License-Identifier: Apache-2.0

package backupjob_test

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backupjob"
)

// A verification goes on to the end of the archive, where there is one in the same storage and nobody says otherwise.
func TestAVerificationReplaysTheArchive(t *testing.T) {
	archived := func(g *v1alpha1.MysqlFailoverGroup, enabled bool, profile string) {
		g.Spec.Backup = &v1alpha1.BackupSpec{PITR: &v1alpha1.PITRSpec{Enabled: enabled, Profile: profile}}
	}
	for name, tc := range map[string]struct {
		change func(*backupjob.Job)
		want   bool
	}{
		"no archive":      {func(*backupjob.Job) {}, false},
		"archive":         {func(b *backupjob.Job) { archived(b.Group, true, b.Profile.Name) }, true},
		"off":             {func(b *backupjob.Job) { archived(b.Group, false, b.Profile.Name) }, false},
		"another storage": {func(b *backupjob.Job) { archived(b.Group, true, "weekly") }, false},
		"not wanted": {func(b *backupjob.Job) {
			archived(b.Group, true, b.Profile.Name)
			b.Profile.Verification = &v1alpha1.BackupVerification{AfterEvery: 1, Replay: new(false)}
		}, false},
	} {
		b := backupJob()
		tc.change(&b)
		if got := configOf(t, b.Verify()).Replay; got != tc.want {
			t.Errorf("%s: replays: %t", name, got)
		}
		if configOf(t, b.Make()).Replay {
			t.Errorf("%s: a backup replays", name)
		}
	}
}
