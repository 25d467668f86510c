// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EncryptionAtRestSpec turns on data-at-rest encryption.
//
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || !has(self.coverage) || !has(self.coverage.redoLog) || self.coverage.redoLog || !has(self.coverage.undoLog) || self.coverage.undoLog || !has(self.coverage.systemTablespace) || self.coverage.systemTablespace",message="MySQL makes no master key of InnoDB at its first start with this coverage, and in a sealed keyring none can be made for the first encrypted table: set one of redoLog, undoLog and systemTablespace to true",fieldPath=".coverage",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.enabled) || !oldSelf.enabled || !has(oldSelf.coverage) || !has(oldSelf.coverage.binaryLog) || oldSelf.coverage.binaryLog || (has(self.coverage) && has(self.coverage.binaryLog) && !self.coverage.binaryLog)",message="encryption of the binary log cannot be turned on for a group that is encrypted without it: its key would have to be made in sealed keyrings, and MySQL would not start; leave it off, or make a new group with it and move the data",fieldPath=".coverage.binaryLog",reason=FieldValueForbidden
type EncryptionAtRestSpec struct {
	// enabled turns on data-at-rest encryption; it needs spec.tls and cannot be turned off again. Default false.
	// The operator must have been installed with its escrow endpoint; without it a new group gets no pods.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
	// coverage says what is encrypted; each flag set to false narrows the protection. One of redoLog, undoLog and
	// systemTablespace must stay true: otherwise MySQL makes no master key of InnoDB at its first start, and in a sealed
	// keyring none can be made for the first encrypted table.
	//
	// +optional
	// +kubebuilder:default={}
	Coverage CoverageSpec `json:"coverage,omitempty,omitzero"`
	// keyring says where the keyring lives and how its versions are kept.
	//
	// +optional
	// +kubebuilder:default={}
	Keyring KeyringSpec `json:"keyring,omitempty,omitzero"`
	// temporaryFiles says where MySQL keeps what it cannot encrypt while it works: temporary tables, sort files, and the
	// general and slow log.
	//
	// +optional
	// +kubebuilder:default={}
	TemporaryFiles TemporaryFilesSpec `json:"temporaryFiles,omitempty,omitzero"`
}

// TemporaryMedium is where temporary files lie.
//
// +kubebuilder:validation:Enum=Memory;Disk
type TemporaryMedium string

// Where temporary files lie.
const (
	TemporaryInMemory TemporaryMedium = "Memory"
	TemporaryOnDisk   TemporaryMedium = "Disk"
)

// TemporaryFilesSpec says where MySQL keeps what it cannot encrypt while it works.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sizeLimit) || !has(self.medium) || self.medium != 'Disk'",message="the kubelet evicts a pod that has more on disk than its limit: remove sizeLimit, or set medium to Memory",fieldPath=".sizeLimit",reason=FieldValueForbidden
type TemporaryFilesSpec struct {
	// medium is Memory, so that no row lies in the clear on a disk of the node, or Disk: an emptyDir of the node, in the clear.
	// Default Memory. What is in memory counts towards the memory limit of the site.
	//
	// +optional
	// +kubebuilder:default=Memory
	Medium TemporaryMedium `json:"medium,omitempty"`
	// sizeLimit is the most that they may take in memory, with a unit, such as 4Gi; at least 64Mi. Default an eighth of the site's memory
	// limit, or 1Gi where it has none. A query that needs more fails. A transaction may write a quarter of it to the binary log.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('64Mi')) >= 0",message="MySQL needs 14Mi for temporary files before the first query: set at least 64Mi",reason=FieldValueInvalid
	SizeLimit resource.Quantity `json:"sizeLimit,omitempty,omitzero"`
}

// CoverageSpec says what is encrypted.
type CoverageSpec struct {
	// tables sets default_table_encryption. Default true.
	//
	// +optional
	// +kubebuilder:default=true
	Tables *bool `json:"tables,omitempty"`
	// privilegeCheck sets table_encryption_privilege_check. Default true.
	//
	// +optional
	// +kubebuilder:default=true
	PrivilegeCheck *bool `json:"privilegeCheck,omitempty"`
	// redoLog sets innodb_redo_log_encrypt. Default true.
	//
	// +optional
	// +kubebuilder:default=true
	RedoLog *bool `json:"redoLog,omitempty"`
	// undoLog sets innodb_undo_log_encrypt. Default true.
	//
	// +optional
	// +kubebuilder:default=true
	UndoLog *bool `json:"undoLog,omitempty"`
	// binaryLog sets binlog_encryption, for binary and relay logs. It cannot be turned on later for an encrypted group.
	// Default true.
	//
	// +optional
	// +kubebuilder:default=true
	BinaryLog *bool `json:"binaryLog,omitempty"`
	// systemTablespace encrypts the tablespace mysql, which holds schema, table and column names. Default true.
	//
	// +optional
	// +kubebuilder:default=true
	SystemTablespace *bool `json:"systemTablespace,omitempty"`
}

// KeyringSpec says where the keyring lives and how its versions are kept. The defaults match the official 9.x images.
type KeyringSpec struct {
	// dataFileDir is the directory where the keyring is mounted: absolute, without '..', '//' or a slash at the end,
	// outside the data volume. Default /run/mysql-keyring.
	//
	// +optional
	// +kubebuilder:default=/run/mysql-keyring
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.endsWith('/') && !self.contains('//') && !self.matches('/[.][.]?(/|$)') && !self.matches('[^A-Za-z0-9._/-]')",message="dataFileDir must be an absolute, normalised path of letters, digits, '.', '_', '-' and '/': remove '.', '..', '//' and a slash at the end",reason=FieldValueInvalid
	// +kubebuilder:validation:XValidation:rule="self != '/var/lib/mysql' && !self.startsWith('/var/lib/mysql/')",message="dataFileDir is on the data volume, where a stolen volume would hold its own key: choose a directory outside /var/lib/mysql",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="['/var/lib/mysql', '/run/mfg', '/etc/mfg', '/etc/mfg-tls', '/etc/mfg-accounts', '/opt/mfg', '/tmp'].all(p, !p.startsWith(self + '/') && (p == '/var/lib/mysql' || (self != p && !self.startsWith(p + '/'))))",message="dataFileDir would hide a directory that the pod needs: choose a directory of its own, such as /run/mysql-keyring",reason=FieldValueForbidden
	DataFileDir string `json:"dataFileDir,omitempty"`
	// mysqldDir is the directory of the image that holds mysqld; the global manifest is mounted there. Default /usr/sbin.
	//
	// +optional
	// +kubebuilder:default=/usr/sbin
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.endsWith('/') && !self.contains('//') && !self.matches('/[.][.]?(/|$)') && !self.matches('[^A-Za-z0-9._/-]')",message="mysqldDir must be an absolute, normalised path of letters, digits, '.', '_', '-' and '/': remove '.', '..', '//' and a slash at the end",reason=FieldValueInvalid
	MysqldDir string `json:"mysqldDir,omitempty"`
	// pluginDir is MySQL's plugin_dir in the image; the global component config is mounted there. Default
	// /usr/lib64/mysql/plugin.
	//
	// +optional
	// +kubebuilder:default=/usr/lib64/mysql/plugin
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.endsWith('/') && !self.contains('//') && !self.matches('/[.][.]?(/|$)') && !self.matches('[^A-Za-z0-9._/-]')",message="pluginDir must be an absolute, normalised path of letters, digits, '.', '_', '-' and '/': remove '.', '..', '//' and a slash at the end",reason=FieldValueInvalid
	PluginDir string `json:"pluginDir,omitempty"`
	// retainVersions is how many superseded escrow versions are kept for each site. Default 5, from 2 to 50.
	//
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=50
	RetainVersions int32 `json:"retainVersions,omitempty"`
	// escrowTimeoutSeconds is after how many seconds a site that has not escrowed is reported Failed; it keeps retrying
	// either way. Default 600, from 30 to 86400.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	EscrowTimeoutSeconds int32 `json:"escrowTimeoutSeconds,omitempty"`
}

// KeyringPhase is the phase of a site's keyring (specification 3.1).
type KeyringPhase string

// The keyring phases.
const (
	KeyringPending  KeyringPhase = "Pending"
	KeyringUnsealed KeyringPhase = "Unsealed"
	KeyringEscrowed KeyringPhase = "Escrowed"
	KeyringSealed   KeyringPhase = "Sealed"
	KeyringFailed   KeyringPhase = "Failed"
)

// EncryptionAtRestStatus is the state of data-at-rest encryption.
type EncryptionAtRestStatus struct {
	// sealed is true when the keyring of every site is sealed.
	//
	// +required
	Sealed bool `json:"sealed"`
	// sites holds one entry for each site.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sites []SiteKeyringStatus `json:"sites,omitempty"`
	// campaign is the rotation of all sites that is under way, or the last one.
	//
	// +optional
	Campaign *CampaignStatus `json:"campaign,omitempty"`
}

// SiteKeyringStatus is the keyring of one site.
type SiteKeyringStatus struct {
	// name of the site.
	//
	// +required
	Name string `json:"name"`
	// phase of the site's keyring: Pending, Unsealed, Escrowed, Sealed or Failed.
	//
	// +optional
	Phase KeyringPhase `json:"phase,omitempty"`
	// keyringSecret is the name of the current escrow Secret.
	//
	// +optional
	KeyringSecret string `json:"keyringSecret,omitempty"`
	// keyringVersion is the current escrow version.
	//
	// +optional
	KeyringVersion int64 `json:"keyringVersion,omitempty"`
	// keyringDigest is the digest of the keyring's content: sha256: and its hexadecimal digits.
	//
	// +optional
	KeyringDigest string `json:"keyringDigest,omitempty"`
	// work is why the keyring is writable, or is about to be: Bootstrap, Clone or Rotation; empty while it is sealed.
	//
	// +optional
	Work KeyringWork `json:"work,omitempty"`
	// since is when the phase was entered, or when the rotation of the master keys was begun in it.
	//
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// rotated is true once both master keys were rotated in the rotation that is under way.
	//
	// +optional
	Rotated bool `json:"rotated,omitempty"`
	// request is the id of the request that the rotation under way is to answer.
	//
	// +optional
	Request string `json:"request,omitempty"`
	// stage is how far the work has come within the phase: Rotating once the master keys may have been rotated, Sealing
	// once the site is rendered with the escrowed keyring.
	//
	// +optional
	Stage KeyringStage `json:"stage,omitempty"`
	// round grows by one with every unseal: each has a pod and a token of its own.
	//
	// +optional
	Round int64 `json:"round,omitempty"`
	// seedVersion is the escrow version that the unsealed keyring started from; 0 means a fresh keyring.
	//
	// +optional
	SeedVersion int64 `json:"seedVersion,omitempty"`
	// seedDigest is the digest of that version; without a version, of a keyring that was found in the pod.
	//
	// +optional
	SeedDigest string `json:"seedDigest,omitempty"`
	// floorVersion is the highest version that was in escrow when the keyring was unsealed: what is newer was escrowed since.
	//
	// +optional
	FloorVersion int64 `json:"floorVersion,omitempty"`
	// rotationPod is the UID of the pod in which mysqld last ran while the master keys may have been rotated: its memory may
	// hold the only copy of the new ones.
	//
	// +optional
	RotationPod string `json:"rotationPod,omitempty"`
	// rotatedVersion is the escrow version that the last rotation of both master keys ended with; 0 if there was none. A
	// version that a clone or a first start made does not count.
	//
	// +optional
	RotatedVersion int64 `json:"rotatedVersion,omitempty"`
	// plainAccepted is true if a person accepted, by encryption-adopt, that the site goes on from a volume whose data is in the clear.
	//
	// +optional
	PlainAccepted bool `json:"plainAccepted,omitempty"`
	// message says what is waited for, or what went wrong.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// rotationRefused is why the last order to rotate the site's master keys was refused. It is gone with the next order for
	// any site of the group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RotationRefused string `json:"rotationRefused,omitempty"`
	// coverage is what is encrypted on the site.
	//
	// +optional
	Coverage CoverageStatus `json:"coverage,omitempty,omitzero"`
}

// KeyringWork is why a site's keyring must be written.
type KeyringWork string

// The three kinds of work that write a keyring (specification, keyring lifecycle 3).
const (
	KeyringBootstrap KeyringWork = "Bootstrap"
	KeyringClone     KeyringWork = "Clone"
	KeyringRotation  KeyringWork = "Rotation"
)

// KeyringStage is how far the work on a keyring has come within its phase.
type KeyringStage string

// The stages.
const (
	KeyringRotating KeyringStage = "Rotating"
	KeyringSealing  KeyringStage = "Sealing"
)

// CoverageStatus is what is encrypted on one site, as read from its MySQL.
type CoverageStatus struct {
	// keyringComponent is the name of the keyring component.
	//
	// +optional
	KeyringComponent string `json:"keyringComponent,omitempty"`
	// keyringReadOnly is true when MySQL cannot change the keyring.
	//
	// +required
	KeyringReadOnly bool `json:"keyringReadOnly"`
	// systemTablespaceEncrypted is true when the tablespace mysql is encrypted.
	//
	// +required
	SystemTablespaceEncrypted bool `json:"systemTablespaceEncrypted"`
	// unencryptedTablespaces is how many user tablespaces are still in the clear, and user tables in the system tablespace or of an
	// engine that cannot encrypt.
	//
	// +required
	UnencryptedTablespaces int32 `json:"unencryptedTablespaces"`
	// redoLogEncrypted is true when the redo log is encrypted.
	//
	// +required
	RedoLogEncrypted bool `json:"redoLogEncrypted"`
	// undoLogEncrypted is true when the undo log is encrypted.
	//
	// +required
	UndoLogEncrypted bool `json:"undoLogEncrypted"`
	// binlogEncrypted is true when binary and relay logs are encrypted.
	//
	// +required
	BinlogEncrypted bool `json:"binlogEncrypted"`
}
