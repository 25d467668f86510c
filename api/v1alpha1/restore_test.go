// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// I25: a group awaits its backup until status says that it is there, and then only that site is the one to be opened first.
func TestAwaitsRestoreI25(t *testing.T) {
	completed := &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreCompleted, Site: "b"}
	toPoint := &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreCompleted, Site: "b", Target: "until transaction a:1"}
	bucket := &v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "b", Prefix: "p/"}}
	monday := &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreCompleted, Site: "b", Backup: "monday", Location: "s3://b/p/shop/orders"}
	for name, tc := range map[string]struct {
		from   *v1alpha1.InitFromBackupSpec
		status *v1alpha1.RestoreStatus
		epoch  int64
		awaits bool
		site   string
	}{
		"begins empty":                   {},
		"nothing is known yet":           {from: &v1alpha1.InitFromBackupSpec{}, awaits: true},
		"loading":                        {from: &v1alpha1.InitFromBackupSpec{}, status: &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreLoading, Site: "b"}, awaits: true},
		"failed":                         {from: &v1alpha1.InitFromBackupSpec{}, status: &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreFailed, Site: "b"}, awaits: true},
		"restored":                       {from: &v1alpha1.InitFromBackupSpec{}, status: completed, site: "b"},
		"restored, not to the point":     {from: &v1alpha1.InitFromBackupSpec{PointInTime: &v1alpha1.PointInTime{GTID: "a:1"}}, status: completed, awaits: true},
		"restored, to another point":     {from: &v1alpha1.InitFromBackupSpec{PointInTime: &v1alpha1.PointInTime{BeforeGTID: "a:1"}}, status: toPoint, awaits: true},
		"restored, to no point now":      {from: &v1alpha1.InitFromBackupSpec{}, status: toPoint, awaits: true},
		"restored to the point":          {from: &v1alpha1.InitFromBackupSpec{PointInTime: &v1alpha1.PointInTime{GTID: "a:1"}}, status: toPoint, site: "b"},
		"restored, the backup asked for": {from: &v1alpha1.InitFromBackupSpec{Storage: bucket, Backup: "monday"}, status: monday, site: "b"},
		"restored, the newest":           {from: &v1alpha1.InitFromBackupSpec{Storage: bucket}, status: monday, site: "b"},
		"restored, from another backup":  {from: &v1alpha1.InitFromBackupSpec{Storage: bucket, Backup: "tuesday"}, status: monday, awaits: true},
		"restored, from another place":   {from: &v1alpha1.InitFromBackupSpec{Storage: &v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "c", Prefix: "p"}}}, status: monday, awaits: true},
		"restored, from another group":   {from: &v1alpha1.InitFromBackupSpec{Storage: bucket, From: &v1alpha1.RestoreFrom{Group: "g"}}, status: monday, awaits: true},
		"restored, from no known place":  {from: &v1alpha1.InitFromBackupSpec{Profile: "gone"}, status: monday, awaits: true},
		"has been open":                  {from: &v1alpha1.InitFromBackupSpec{}, status: completed, epoch: 1},
		"has been open, status is lost":  {from: &v1alpha1.InitFromBackupSpec{}, epoch: 1},
		"taken back":                     {status: completed},
	} {
		g := &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{InitFromBackup: tc.from}}
		g.Namespace, g.Name = "shop", "orders"
		g.Status.Restore, g.Status.Epoch = tc.status, tc.epoch
		if g.AwaitsRestore() != tc.awaits || g.RestoredSite() != tc.site {
			t.Errorf("%s: awaits %t, restored %q", name, g.AwaitsRestore(), g.RestoredSite())
		}
	}
}

func TestRestoreStorage(t *testing.T) {
	nightly := v1alpha1.BackupProfile{
		Name: "nightly", Storage: v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "nightly"}},
		Encryption: &v1alpha1.BackupEncryption{IdentitySecretName: "of-profile"},
	}
	own := &v1alpha1.RestoreEncryption{IdentitySecretName: "own"}
	for name, tc := range map[string]struct {
		from     *v1alpha1.InitFromBackupSpec
		claim    string
		identity string
		ok       bool
	}{
		"nothing":             {},
		"profile":             {&v1alpha1.InitFromBackupSpec{Profile: "nightly"}, "nightly", "of-profile", true},
		"profile, own key":    {&v1alpha1.InitFromBackupSpec{Profile: "nightly", Encryption: own}, "nightly", "own", true},
		"profile of no group": {&v1alpha1.InitFromBackupSpec{Profile: "weekly"}, "", "", false},
		"storage":             {&v1alpha1.InitFromBackupSpec{Storage: &v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "x"}}, Encryption: own}, "x", "own", true},
		"storage in the clear": {&v1alpha1.InitFromBackupSpec{Storage: &v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "x"}}},
			"x", "", true},
	} {
		spec := &v1alpha1.MysqlFailoverGroupSpec{InitFromBackup: tc.from, Backup: &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{nightly}}}
		storage, identity, ok := spec.RestoreStorage()
		claim := ""
		if storage.Volume != nil {
			claim = storage.Volume.ClaimName
		}
		if claim != tc.claim || identity != tc.identity || ok != tc.ok {
			t.Errorf("%s: %q, %q, %t", name, claim, identity, ok)
		}
	}
}

func TestRestoreSource(t *testing.T) {
	g := &v1alpha1.MysqlFailoverGroup{}
	g.Namespace, g.Name = "shop", "orders"
	for _, tc := range []struct {
		from *v1alpha1.RestoreFrom
		want string
	}{
		{nil, "shop/orders"}, {&v1alpha1.RestoreFrom{Namespace: "old"}, "old/orders"}, {&v1alpha1.RestoreFrom{Group: "g"}, "shop/g"},
		{&v1alpha1.RestoreFrom{Namespace: "old", Group: "g"}, "old/g"},
	} {
		g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{From: tc.from}
		if namespace, name := g.RestoreSource(); namespace+"/"+name != tc.want {
			t.Errorf("%+v: %s/%s", tc.from, namespace, name)
		}
	}
}
