// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// BackupStorage is where backups are: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="(has(self.s3) ? 1 : 0) + (has(self.gcs) ? 1 : 0) + (has(self.azure) ? 1 : 0) + (has(self.volume) ? 1 : 0) == 1",message="a backup goes to one place: set exactly one of storage.s3, storage.gcs, storage.azure and storage.volume",reason=FieldValueInvalid
type BackupStorage struct {
	// s3 is a bucket of Amazon S3, or of a server that speaks its protocol.
	//
	// +optional
	S3 *S3Storage `json:"s3,omitempty"`
	// gcs is a bucket of Google Cloud Storage.
	//
	// +optional
	GCS *GCSStorage `json:"gcs,omitempty"`
	// azure is a container of Azure Blob Storage.
	//
	// +optional
	Azure *AzureStorage `json:"azure,omitempty"`
	// volume is a volume of the cluster. It is lost with the cluster.
	//
	// +optional
	Volume *VolumeStorage `json:"volume,omitempty"`
}

// S3Storage is a bucket that is reached by the protocol of Amazon S3.
type S3Storage struct {
	// bucket is the name of the bucket, which must exist.
	//
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	Bucket string `json:"bucket"`
	// prefix is put before the keys of all objects. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*$`
	Prefix string `json:"prefix,omitempty"`
	// region of the bucket. Default us-east-1, which most servers other than Amazon's take.
	//
	// +optional
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Region string `json:"region,omitempty"`
	// endpoint is the address of a server other than Amazon's, as in https://s3.example.org:9000. Default none: Amazon's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9_./-]*)?$`
	Endpoint string `json:"endpoint,omitempty"`
	// forcePathStyle puts the bucket into the path instead of the host name. Default: true with endpoint, false without.
	//
	// +optional
	ForcePathStyle *bool `json:"forcePathStyle,omitempty"`
	// secretName is a Secret in the group's namespace with the keys accessKeyID and secretAccessKey, and sessionToken if there is one.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	SecretName string `json:"secretName"`
	// caSecretName is a Secret in the group's namespace whose key ca.crt has the certificates that the server's is checked against.
	// Default none: those of the image.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	CASecretName string `json:"caSecretName,omitempty"`
}

// GCSStorage is a bucket of Google Cloud Storage.
type GCSStorage struct {
	// bucket is the name of the bucket, which must exist.
	//
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=222
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9._-]*[a-z0-9]$`
	Bucket string `json:"bucket"`
	// prefix is put before the keys of all objects. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*$`
	Prefix string `json:"prefix,omitempty"`
	// secretName is a Secret in the group's namespace whose key credentials.json has the key of a service account.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	SecretName string `json:"secretName"`
}

// AzureStorage is a container of Azure Blob Storage.
type AzureStorage struct {
	// container is the name of the container, which must exist.
	//
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Container string `json:"container"`
	// prefix is put before the keys of all objects. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*$`
	Prefix string `json:"prefix,omitempty"`
	// secretName is a Secret in the group's namespace with the keys accountName and accountKey.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	SecretName string `json:"secretName"`
}

// VolumeStorage is a volume of the cluster.
type VolumeStorage struct {
	// claimName is a PersistentVolumeClaim in the group's namespace that several pods can mount, on any node that they may run on.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ClaimName string `json:"claimName"`
	// subPath is the folder in the volume. Default: its root.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_=-][A-Za-z0-9_.=-]*(/[A-Za-z0-9_=-][A-Za-z0-9_.=-]*)*$`
	SubPath string `json:"subPath,omitempty"`
}

// InitFromBackupSpec loads a new group from a backup.
//
// +kubebuilder:validation:XValidation:rule="has(self.profile) != has(self.storage)",message="a backup is found in one place: set either initFromBackup.profile, one of backup.profiles, or initFromBackup.storage",reason=FieldValueInvalid
type InitFromBackupSpec struct {
	// profile is the one of backup.profiles whose storage holds the backup. Either it or storage.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile,omitempty"`
	// storage is where the backup is, if no profile of this group names the place. Either it or profile.
	//
	// +optional
	Storage *BackupStorage `json:"storage,omitempty"`
	// encryption says how the backup is opened. Default: with the identity of the profile; a backup in storage is taken for unencrypted.
	//
	// +optional
	Encryption *RestoreEncryption `json:"encryption,omitempty"`
	// from is the group that the backup was made of. Default: the namespace and the name of this group.
	//
	// +optional
	From *RestoreFrom `json:"from,omitempty"`
	// backup is the name of the backup. Default: the newest that there is when the restore begins.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=56
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Backup string `json:"backup,omitempty"`
	// pointInTime is where in the history of the group the restore stops, beyond the backup. Default: at the backup.
	//
	// +optional
	PointInTime *PointInTime `json:"pointInTime,omitempty"`
}

// PointInTime is one point in the history of a group: exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="(has(self.time) ? 1 : 0) + (has(self.gtid) ? 1 : 0) + (has(self.beforeGTID) ? 1 : 0) + (has(self.beforeFailover) ? 1 : 0) + (has(self.latest) ? 1 : 0) == 1",message="a restore stops at one point: set exactly one of pointInTime.time, gtid, beforeGTID, beforeFailover and latest",reason=FieldValueInvalid
type PointInTime struct {
	// time takes all transactions that were committed until then, to the microsecond.
	//
	// +optional
	Time *Moment `json:"time,omitempty"`
	// gtid takes all transactions up to and with this one.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	GTID string `json:"gtid,omitempty"`
	// beforeGTID takes all transactions before this one.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	BeforeGTID string `json:"beforeGTID,omitempty"`
	// beforeFailover takes all transactions before the failover that began this epoch. At least 2.
	//
	// +optional
	// +kubebuilder:validation:Minimum=2
	BeforeFailover int64 `json:"beforeFailover,omitempty"`
	// latest, which is true, takes all that there is.
	//
	// +optional
	// +kubebuilder:validation:Enum=true
	Latest *bool `json:"latest,omitempty"`
}

// RestoreEncryption says how an encrypted backup is opened.
type RestoreEncryption struct {
	// identitySecretName is a Secret in the group's namespace with an age identity under the key identity.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	IdentitySecretName string `json:"identitySecretName"`
}

// RestoreFrom names the group that a backup was made of. It need not exist any more.
type RestoreFrom struct {
	// namespace of the group. Default: that of this group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// group is its name. Default: that of this group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Group string `json:"group,omitempty"`
}
