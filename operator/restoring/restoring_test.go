// SPDX-License-Identifier: Apache-2.0

package restoring

import (
	"encoding/json"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// A group whose initFromBackup is withdrawn waits for nothing any more, and must not alarm.
func TestTheGaugesOfAWithdrawnRestoreGo(t *testing.T) {
	g := &v1alpha1.MysqlFailoverGroup{}
	g.Namespace, g.Name = "shop", "withdrawn"
	s := &scope.Scope{Group: g}
	s.Key.Namespace, s.Key.Name = g.Namespace, g.Name
	restorePending.WithLabelValues("shop", "withdrawn").Set(1)
	restoreSeconds.WithLabelValues("shop", "withdrawn").Set(60)
	r := New(nil, Options{Image: func() bool { return true }, Proven: func() (p v1alpha1.Proven) { return p }, Paused: func(*scope.Scope) string { return "" }})
	if err := r.Begin(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n, m := testutil.CollectAndCount(restorePending), testutil.CollectAndCount(restoreSeconds); n+m != 0 {
		t.Errorf("%d and %d gauges are left", n, m)
	}
}

// I25: by its location status tells what was restored, so that of a group is the one that the program is told.
func TestTheLocationIsThatOfTheProgramI25(t *testing.T) {
	for want, storage := range map[string]v1alpha1.BackupStorage{
		"s3://b/x/y/shop/orders":  {S3: &v1alpha1.S3Storage{Bucket: "b", Prefix: "/x/y/"}},
		"gs://b/shop/orders":      {GCS: &v1alpha1.GCSStorage{Bucket: "b"}},
		"azure://c/x/shop/orders": {Azure: &v1alpha1.AzureStorage{Container: "c", Prefix: "x"}},
		"volume:/shop/orders":     {Volume: &v1alpha1.VolumeStorage{ClaimName: "v", SubPath: "sub"}},
	} {
		g := &v1alpha1.MysqlFailoverGroup{}
		g.Namespace, g.Name = "shop", "orders"
		g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{Storage: &storage}
		raw, err := json.Marshal(render.BackupStorage(input(g, "a").From).Bucket)
		if err != nil {
			t.Fatal(err)
		}
		var program bucket.Config
		if err := json.Unmarshal(raw, &program); err != nil {
			t.Fatal(err)
		}
		if got, told := g.RestoreLocation(), program.Location(); got != want || told != want {
			t.Errorf("%s, and the program says %s, want %s", got, told, want)
		}
	}
}
