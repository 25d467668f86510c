// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func TestUnbuiltFeatures(t *testing.T) {
	tests := map[string]struct {
		spec       v1alpha1.MysqlFailoverGroupSpec
		want, stop []string
	}{
		"nothing set": {},
		"set but off": {
			spec: v1alpha1.MysqlFailoverGroupSpec{
				Cache: &v1alpha1.CacheSpec{}, EncryptionAtRest: &v1alpha1.EncryptionAtRestSpec{},
				Failover: v1alpha1.FailoverSpec{OnDivergence: v1alpha1.DivergenceHold},
			},
		},
		"built": {
			spec: v1alpha1.MysqlFailoverGroupSpec{
				Sites: []v1alpha1.Site{{Name: "a", ExternalAddress: "a.example.org"}},
				DNS:   &v1alpha1.DNSSpec{}, Taints: &v1alpha1.TaintsSpec{Enabled: true},
				Failover: v1alpha1.FailoverSpec{OnDivergence: v1alpha1.DivergenceReclone}, InitFromBackup: &v1alpha1.InitFromBackupSpec{Profile: "nightly"},
				EncryptionAtRest: &v1alpha1.EncryptionAtRestSpec{Enabled: true}, Cache: &v1alpha1.CacheSpec{Enabled: true},
				Backup: &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{{Name: "nightly"}}, PITR: &v1alpha1.PITRSpec{}},
			},
		},
		"everything set": {
			spec: v1alpha1.MysqlFailoverGroupSpec{
				Backup:         &v1alpha1.BackupSpec{PITR: &v1alpha1.PITRSpec{Enabled: true}},
				InitFromBackup: &v1alpha1.InitFromBackupSpec{PointInTime: &v1alpha1.PointInTime{Latest: new(true)}},
			},
			want: []string{"spec.backup.pitr", "spec.initFromBackup.pointInTime"},
			stop: []string{"spec.initFromBackup.pointInTime"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			none := v1alpha1.Proven{}
			if diff := cmp.Diff(tc.want, none.Unbuilt(&tc.spec)); diff != "" {
				t.Errorf("Unbuilt (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.stop, none.MustNotRun(&tc.spec)); diff != "" {
				t.Errorf("MustNotRun (-want +got):\n%s", diff)
			}
			now := v1alpha1.IsProven()
			if diff := cmp.Diff(now.Unbuilt(&tc.spec), v1alpha1.UnbuiltFeatures(&tc.spec)); diff != "" {
				t.Errorf("UnbuiltFeatures of this version (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(now.MustNotRun(&tc.spec), v1alpha1.MustNotRun(&tc.spec)); diff != "" {
				t.Errorf("MustNotRun of this version (-want +got):\n%s", diff)
			}
			all := v1alpha1.Proven{PITR: true}
			if left := append(all.Unbuilt(&tc.spec), all.MustNotRun(&tc.spec)...); len(left) > 0 {
				t.Errorf("once all is proven: %v", left)
			}
		})
	}
}
