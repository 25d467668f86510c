// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// StoragePlace is where backups of a group are. The zero value is nowhere.
//
// +kubebuilder:object:generate=false
type StoragePlace struct {
	// Location names it for people, and leaves out the server and the volume.
	Location string
	// Digest is BackupStorage.Digest.
	Digest string
}

// LiesIn is true for a backup that is in this place. An older operator wrote no digest into the status: then the location decides alone.
func (s *MysqlBackupStatus) LiesIn(place StoragePlace) bool {
	return s.Location == place.Location && (s.StorageDigest == place.Digest || s.StorageDigest == "" || place.Digest == "")
}

// Digest tells the places of backups apart: sha256: and its hexadecimal digits, over all that decides where the backups of a group lie in this
// storage. It is empty without a storage. Statuses and volumes remember it: the same place must have the same digest in every version.
//
// Not in it is how the place is reached: credentials, certificates, the style of paths, and the region, because a bucket has one name in all
// regions of a server. The account of Azure is in the Secret alone: containers of one name in two accounts have the same digest.
func (s BackupStorage) Digest(namespace, group string) string {
	var place []string
	switch {
	case s.S3 != nil:
		place = []string{"s3", serverOf(s.S3.Endpoint), s.S3.Bucket, s.S3.Prefix}
	case s.GCS != nil:
		place = []string{"gcs", s.GCS.Bucket, s.GCS.Prefix}
	case s.Azure != nil:
		place = []string{"azure", s.Azure.Container, s.Azure.Prefix}
	case s.Volume != nil:
		place = []string{"volume", s.Volume.ClaimName, s.Volume.SubPath}
	default:
		return ""
	}
	// No field can hold a line break, and the first says how many there are: two places have no text in common.
	sum := sha256.Sum256([]byte(strings.Join(append(place, namespace, group), "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Location names for people where the backups of a group lie in this storage, as statuses and messages do: kind, bucket and folder. Neither
// the server nor the volume is in it; Digest tells those apart. internal/bucket, which must not know this API, names places in the same form.
func (s BackupStorage) Location(namespace, group string) string {
	place, prefix := "volume:", ""
	switch {
	case s.S3 != nil:
		place, prefix = "s3://"+s.S3.Bucket, s.S3.Prefix
	case s.GCS != nil:
		place, prefix = "gs://"+s.GCS.Bucket, s.GCS.Prefix
	case s.Azure != nil:
		place, prefix = "azure://"+s.Azure.Container, s.Azure.Prefix
	}
	return place + "/" + strings.TrimPrefix(strings.Trim(prefix, "/")+"/"+namespace+"/"+group, "/")
}

// serverOf is the server of an endpoint, in one of the forms that it can be written in; empty for Amazon's. It is the same with and without TLS.
func serverOf(endpoint string) string {
	scheme, rest, is := strings.Cut(endpoint, "://")
	if !is {
		return endpoint
	}
	host, path, _ := strings.Cut(rest, "/")
	usual := ":443"
	if scheme == "http" {
		usual = ":80"
	}
	return strings.TrimSuffix(strings.ToLower(host), usual) + "/" + strings.Trim(path, "/")
}
