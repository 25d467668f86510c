// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func s3(change func(*v1alpha1.S3Storage)) v1alpha1.BackupStorage {
	s := &v1alpha1.S3Storage{Bucket: "backups", Prefix: "a/b", Region: "us-east-1", Endpoint: "https://s3:9000", SecretName: "s3"}
	if change != nil {
		change(s)
	}
	return v1alpha1.BackupStorage{S3: s}
}

func volume(claim, sub string) v1alpha1.BackupStorage {
	return v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: claim, SubPath: sub}}
}

// TestTheDigestOfAPlaceStays: statuses and volumes remember it. With another formula every backup from before would lie elsewhere.
func TestTheDigestOfAPlaceStays(t *testing.T) {
	for name, tc := range map[string]struct {
		storage v1alpha1.BackupStorage
		want    string
	}{
		"s3":     {s3(nil), "sha256:b511eaf35860abc62ff92d7af9b46752db65f444d6bf89582d0ca00693710e87"},
		"Amazon": {s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "" }), "sha256:b1c89be44b02a58ff4b89600d43dc95a11237f2f95d5d49d03b9c18260949a00"},
		"gcs":    {v1alpha1.BackupStorage{GCS: &v1alpha1.GCSStorage{Bucket: "backups", Prefix: "a/b"}}, "sha256:7c41151aa2811f87cfdaf33de1f8503dbeff6c9b268838a0fd03dc823b4f0215"},
		"azure":  {v1alpha1.BackupStorage{Azure: &v1alpha1.AzureStorage{Container: "backups", Prefix: "a/b"}}, "sha256:ee5effcd95e9a7f9f4ea26a11cf7f40b648a0bed447282ab712d7d8c8bb51ed8"},
		"volume": {volume("nfs", "a/b"), "sha256:5fc1e64dda0d95b5b612aeeb6c070647c75ef766b0774c71d59a7b8ca086c37f"},
		"none":   {v1alpha1.BackupStorage{}, ""},
	} {
		if got := tc.storage.Digest("shop", "orders"); got != tc.want {
			t.Errorf("%s: %s, and it was %s", name, got, tc.want)
		}
	}
}

// TestOneDigestForOnePlace: no two places have the same digest, and no place has two.
func TestOneDigestForOnePlace(t *testing.T) {
	places := map[string]string{}
	for place, storages := range map[string][]v1alpha1.BackupStorage{
		"s3": {
			s3(nil),
			s3(func(s *v1alpha1.S3Storage) { s.Region = "eu-west-1" }),
			s3(func(s *v1alpha1.S3Storage) { s.ForcePathStyle = new(bool) }),
			s3(func(s *v1alpha1.S3Storage) { s.SecretName, s.CASecretName = "other", "ca" }),
			s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://S3:9000/" }),
			s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "http://s3:9000" }),
		},
		"s3 on the usual port": {
			s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://s3" }),
			s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://s3:443" }),
			s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "http://s3:80/" }),
		},
		"s3 on another port":   {s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://s3:80" })},
		"s3 on another server": {s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://s4:9000" })},
		"s3 below a path":      {s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://s3:9000/Tenant" })},
		"s3 below another":     {s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "https://s3:9000/tenant" })},
		"Amazon":               {s3(func(s *v1alpha1.S3Storage) { s.Endpoint = "" })},
		"another bucket":       {s3(func(s *v1alpha1.S3Storage) { s.Bucket = "other" })},
		"another prefix":       {s3(func(s *v1alpha1.S3Storage) { s.Prefix = "a" })},
		"no prefix":            {s3(func(s *v1alpha1.S3Storage) { s.Prefix = "" })},
		"gcs":                  {{GCS: &v1alpha1.GCSStorage{Bucket: "backups", Prefix: "a/b", SecretName: "x"}}, {GCS: &v1alpha1.GCSStorage{Bucket: "backups", Prefix: "a/b"}}},
		"gcs, another bucket":  {{GCS: &v1alpha1.GCSStorage{Bucket: "other", Prefix: "a/b"}}},
		"azure":                {{Azure: &v1alpha1.AzureStorage{Container: "backups", Prefix: "a/b"}}},
		"azure, another":       {{Azure: &v1alpha1.AzureStorage{Container: "other", Prefix: "a/b"}}},
		"volume":               {volume("backups", "a/b")},
		"another claim":        {volume("other", "a/b")},
		"another folder":       {volume("backups", "a")},
		"the root":             {volume("backups", "")},
	} {
		for i, s := range storages {
			digest := s.Digest("shop", "orders")
			if other, known := places[digest]; i > 0 && other != place || i == 0 && known {
				t.Errorf("%s, %d has the digest of %q", place, i, other)
			}
			places[digest] = place
		}
	}
	if s3(nil).Digest("shop", "orders") == s3(nil).Digest("shop", "invoices") || s3(nil).Digest("shop", "orders") == s3(nil).Digest("store", "orders") {
		t.Error("two groups share a folder")
	}
}

func TestABackupLiesInAPlace(t *testing.T) {
	here := v1alpha1.StoragePlace{Location: "s3://b/shop/orders", Digest: "sha256:1"}
	for name, tc := range map[string]struct {
		status v1alpha1.MysqlBackupStatus
		want   bool
	}{
		"the same":                    {v1alpha1.MysqlBackupStatus{Location: here.Location, StorageDigest: here.Digest}, true},
		"another server":              {v1alpha1.MysqlBackupStatus{Location: here.Location, StorageDigest: "sha256:2"}, false},
		"of an older operator":        {v1alpha1.MysqlBackupStatus{Location: here.Location}, true},
		"of an older one, elsewhere":  {v1alpha1.MysqlBackupStatus{Location: "s3://c/shop/orders"}, false},
		"never begun, and so nowhere": {v1alpha1.MysqlBackupStatus{}, false},
	} {
		if tc.status.LiesIn(here) != tc.want {
			t.Errorf("%s: want %t", name, tc.want)
		}
	}
}
