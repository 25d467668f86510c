// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Where a pod that reads or writes backups has what it needs for it.
const (
	BackupCredentialsDir = "/etc/mfg-backup/credentials" //nolint:gosec // where they are, and none itself
	BackupCADir          = "/etc/mfg-backup/ca"
	BackupIdentityDir    = "/etc/mfg-backup/identity"
	// BackupVolumeDir is where a storage of kind volume is mounted.
	BackupVolumeDir = "/var/lib/mfg-backup"
)

const (
	volumeBackupCredentials = "backup-credentials" //nolint:gosec // the name of a volume
	volumeBackupCA          = "backup-ca"
	volumeBackupIdentity    = "backup-identity"
	volumeBackupStorage     = "backup-storage"

	defaultRegion = "us-east-1"
)

// BackupAccess is which backups of a storage a pod is to reach, and how.
type BackupAccess struct {
	Storage v1alpha1.BackupStorage
	// Namespace and Group are those whose backups they are: each group has a folder of its own below the prefix of the storage.
	Namespace, Group string
	// IdentitySecret has the age identity that opens encrypted backups; empty for pods that read none.
	IdentitySecret string
	// ReadOnly mounts a storage of kind volume so that nothing can be written to it.
	ReadOnly bool
}

// BackupPlace is what the pod gets for it. Secrets are in files alone: nothing of Bucket is one.
type BackupPlace struct {
	Bucket wire.BackupBucket
	// IdentityFile has the age identity; empty without one.
	IdentityFile string
	Volumes      []corev1.Volume
	Mounts       []corev1.VolumeMount
}

// BackupStorage says how a pod reaches backups. The keys of Secrets are optional in the pod: the program says which one is missing, which
// a pod that is never started cannot.
func BackupStorage(a BackupAccess) BackupPlace {
	p := BackupPlace{Bucket: wire.BackupBucket{Namespace: a.Namespace, Group: a.Group}}
	switch s := a.Storage; {
	case s.S3 != nil:
		p.s3(*s.S3)
	case s.GCS != nil:
		p.Bucket.GCS, p.Bucket.Prefix = &wire.BackupGCS{Bucket: s.GCS.Bucket}, s.GCS.Prefix
		p.credentials(s.GCS.SecretName, v1alpha1.BackupGCSCredentials)
	case s.Azure != nil:
		p.Bucket.Azure, p.Bucket.Prefix = &wire.BackupAzure{Container: s.Azure.Container}, s.Azure.Prefix
		p.credentials(s.Azure.SecretName, v1alpha1.BackupAccountName, v1alpha1.BackupAccountKey)
	case s.Volume != nil:
		p.folder(*s.Volume, a.ReadOnly)
	}
	if a.IdentitySecret != "" {
		p.secret(volumeBackupIdentity, BackupIdentityDir, a.IdentitySecret, v1alpha1.BackupIdentityKey)
		p.IdentityFile = path.Join(BackupIdentityDir, v1alpha1.BackupIdentityKey)
	}
	return p
}

func (p *BackupPlace) s3(s v1alpha1.S3Storage) {
	region := s.Region
	if region == "" {
		region = defaultRegion
	}
	p.Bucket.S3 = &wire.BackupS3{Bucket: s.Bucket, Region: region, Endpoint: s.Endpoint, ForcePathStyle: s.ForcePathStyle}
	p.Bucket.Prefix = s.Prefix
	p.credentials(s.SecretName, v1alpha1.BackupAccessKeyID, v1alpha1.BackupSecretKey, v1alpha1.BackupSessionToken)
	if s.CASecretName != "" {
		p.secret(volumeBackupCA, BackupCADir, s.CASecretName, v1alpha1.BackupCAKey)
		p.Bucket.CAFile = path.Join(BackupCADir, v1alpha1.BackupCAKey)
	}
}

func (p *BackupPlace) folder(s v1alpha1.VolumeStorage, readOnly bool) {
	p.Bucket.Folder = BackupVolumeDir
	p.Volumes = append(p.Volumes, corev1.Volume{Name: volumeBackupStorage, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.ClaimName},
	}})
	p.Mounts = append(p.Mounts, corev1.VolumeMount{Name: volumeBackupStorage, MountPath: BackupVolumeDir, SubPath: s.SubPath, ReadOnly: readOnly})
}

func (p *BackupPlace) credentials(secret string, keys ...string) {
	p.secret(volumeBackupCredentials, BackupCredentialsDir, secret, keys...)
	p.Bucket.CredentialsDir = BackupCredentialsDir
}

// secret mounts keys of a Secret as files of the same names, and nothing else of it.
func (p *BackupPlace) secret(volume, dir, name string, keys ...string) {
	var files []corev1.KeyToPath
	for _, key := range keys {
		files = append(files, items(key, key)...)
	}
	v := secretVolume(volume, name, secretMode, files)
	v.Secret.Optional = new(true)
	p.Volumes = append(p.Volumes, v)
	p.Mounts = append(p.Mounts, corev1.VolumeMount{Name: volume, MountPath: dir, ReadOnly: true})
}
