// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// BackupSpec configures backups.
//
// +kubebuilder:validation:XValidation:rule="!has(self.pitr) || !self.pitr.enabled || (has(self.pitr.profile) && has(self.profiles) && self.profiles.exists(p, p.name == self.pitr.profile))",message="point-in-time recovery stores binary logs with a backup profile: name one of backup.profiles in backup.pitr.profile",fieldPath=".pitr.profile",reason=FieldValueInvalid
type BackupSpec struct {
	// profiles are the ways to back up, at most 16. Default none.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Profiles []BackupProfile `json:"profiles,omitempty"`
	// pitr turns on point-in-time recovery. Default none.
	//
	// +optional
	PITR *PITRSpec `json:"pitr,omitempty"`
}

// BackupProfile is one way to back up.
type BackupProfile struct {
	// name of the profile, unique in the group.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// encryption encrypts the artifacts of this profile. Default none.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`
}

// BackupEncryption encrypts backup artifacts.
type BackupEncryption struct {
	// secretName is the Secret, in the group's namespace, that holds the key.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// PITRSpec turns on the binlog archive.
type PITRSpec struct {
	// enabled makes the sidecar of the active site archive binary logs. Default false.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
	// profile is the backup profile whose storage takes the binary logs. Required once enabled.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile,omitempty"`
}

// InitFromBackupSpec loads a new group from a backup.
type InitFromBackupSpec struct {
	// profile is the backup profile whose storage holds the backup.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile"`
	// backup is the name of the backup. Default: the newest.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Backup string `json:"backup,omitempty"`
}

// DNSSpec publishes the active site by external-dns.
type DNSSpec struct {
	// name is the DNS name that follows the active site.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// ttlSeconds is the time to live of the record in seconds. Default 30, from 1 to 300.
	//
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	TTLSeconds int32 `json:"ttlSeconds,omitempty"`
}

// TaintsSpec taints the nodes of sites that are not fit to run the application next to the database: all but the node
// of the active site.
type TaintsSpec struct {
	// enabled puts the taint <group>.<namespace>.mysql-mfg.io/inactive-site=<site>:PreferNoSchedule on the node of every
	// site that is not active. The operator needs the right to change nodes: nodeTaints.enabled of its chart.
	// Default false.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
}
