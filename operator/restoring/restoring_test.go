// SPDX-License-Identifier: Apache-2.0

package restoring

import (
	"encoding/json"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/operator/render"
)

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
