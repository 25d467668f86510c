// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SiteRole says whether a site may be promoted.
type SiteRole string

// The site roles.
const (
	PrimaryCandidate SiteRole = "primary-candidate"
	DROnly           SiteRole = "dr-only"
)

// FailoverMode says what the operator may do by itself.
type FailoverMode string

// The failover modes.
const (
	FailoverAuto    FailoverMode = "Auto"
	FailoverManual  FailoverMode = "Manual"
	FailoverObserve FailoverMode = "Observe"
)

// DivergencePolicy says what happens to a site with transactions that the active site lacks.
type DivergencePolicy string

// The divergence policies.
const (
	DivergenceHold    DivergencePolicy = "Hold"
	DivergenceReclone DivergencePolicy = "Reclone"
)

// DeletionPolicy says what outlives the group.
type DeletionPolicy string

// The deletion policies.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionDelete DeletionPolicy = "Delete"
)

// MysqlFailoverGroupSpec is the wished state of a group.
type MysqlFailoverGroupSpec struct {
	Image            string                        `json:"image,omitempty"`
	ImagePullPolicy  corev1.PullPolicy             `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	Sites []Site `json:"sites"`

	// MysqlConf are settings for the [mysqld] section of my.cnf. Keys that the operator owns are ignored.
	MysqlConf map[string]string `json:"mysqlConf,omitempty"`

	TLS      *TLSSpec     `json:"tls,omitempty"`
	Failover FailoverSpec `json:"failover,omitempty,omitzero"`
	Sidecar  SidecarSpec  `json:"sidecar,omitempty,omitzero"`

	Cache            *CacheSpec            `json:"cache,omitempty"`
	Backup           *BackupSpec           `json:"backup,omitempty"`
	InitFromBackup   *InitFromBackupSpec   `json:"initFromBackup,omitempty"`
	EncryptionAtRest *EncryptionAtRestSpec `json:"encryptionAtRest,omitempty"`
	DNS              *DNSSpec              `json:"dns,omitempty"`
	Taints           *TaintsSpec           `json:"taints,omitempty"`

	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// Site is one place that runs one MySQL pod.
type Site struct {
	Name string   `json:"name"`
	Role SiteRole `json:"role"`
	// Priority breaks ties between equally fit candidates; the higher wins.
	Priority int32 `json:"priority,omitempty"`

	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`

	Storage   StorageSpec                 `json:"storage,omitempty,omitzero"`
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	ExternalAddress string `json:"externalAddress,omitempty"`
}

// StorageSpec is the data volume of a site.
type StorageSpec struct {
	Size             resource.Quantity `json:"size,omitempty,omitzero"`
	StorageClassName *string           `json:"storageClassName,omitempty"`
}

// TLSSpec gives the group's certificates.
type TLSSpec struct {
	IssuerRef  *IssuerRef `json:"issuerRef,omitempty"`
	SecretName string     `json:"secretName"`
}

// IssuerRef names a cert-manager issuer.
type IssuerRef struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
}

// FailoverSpec governs failover.
type FailoverSpec struct {
	Mode         FailoverMode    `json:"mode,omitempty"`
	PollInterval metav1.Duration `json:"pollInterval,omitempty,omitzero"`
	// Threshold is how many silent polls in a row make the active site fail.
	Threshold int32 `json:"threshold,omitempty"`
	// CrashGrace is how long a dead mysqld may take to restart in place.
	CrashGrace metav1.Duration `json:"crashGrace,omitempty,omitzero"`
	// Cooldown is how long after a failover no other emergency failover starts by itself.
	Cooldown metav1.Duration `json:"cooldown,omitempty,omitzero"`
	// DrainTimeout bounds how long a candidate may take to apply its relay log.
	DrainTimeout metav1.Duration `json:"drainTimeout,omitempty,omitzero"`
	// MaxLostTransactions blocks an emergency failover that is known to lose more; unset means no limit.
	MaxLostTransactions *int64           `json:"maxLostTransactions,omitempty"`
	OnDivergence        DivergencePolicy `json:"onDivergence,omitempty"`
}

// SidecarSpec governs the fence.
type SidecarSpec struct {
	LeaseTimeout      metav1.Duration `json:"leaseTimeout,omitempty,omitzero"`
	PeerCheckInterval metav1.Duration `json:"peerCheckInterval,omitempty,omitzero"`
	// FenceTimeout is the deadline of the fencing ladder, after which mysqld is killed.
	FenceTimeout metav1.Duration             `json:"fenceTimeout,omitempty,omitzero"`
	Resources    corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
}

// CacheSpec turns on the per-site cache store.
type CacheSpec struct {
	Enabled bool `json:"enabled,omitempty"`
}

// BackupSpec configures backups.
type BackupSpec struct {
	Profiles []BackupProfile `json:"profiles,omitempty"`
	PITR     *PITRSpec       `json:"pitr,omitempty"`
}

// BackupProfile is one way to back up.
type BackupProfile struct {
	Name       string            `json:"name"`
	Encryption *BackupEncryption `json:"encryption,omitempty"`
}

// BackupEncryption encrypts backup artefacts.
type BackupEncryption struct {
	SecretName string `json:"secretName"`
}

// PITRSpec turns on the binlog archive.
type PITRSpec struct {
	Enabled bool   `json:"enabled,omitempty"`
	Profile string `json:"profile,omitempty"`
}

// InitFromBackupSpec loads a new group from a backup.
type InitFromBackupSpec struct {
	Profile string `json:"profile"`
	Backup  string `json:"backup,omitempty"`
}

// EncryptionAtRestSpec turns on data-at-rest encryption.
type EncryptionAtRestSpec struct {
	Enabled  bool         `json:"enabled,omitempty"`
	Coverage CoverageSpec `json:"coverage,omitempty,omitzero"`
	Keyring  KeyringSpec  `json:"keyring,omitempty,omitzero"`
}

// CoverageSpec says what is encrypted.
type CoverageSpec struct {
	Tables           *bool `json:"tables,omitempty"`
	PrivilegeCheck   *bool `json:"privilegeCheck,omitempty"`
	RedoLog          *bool `json:"redoLog,omitempty"`
	UndoLog          *bool `json:"undoLog,omitempty"`
	BinaryLog        *bool `json:"binaryLog,omitempty"`
	SystemTablespace *bool `json:"systemTablespace,omitempty"`
}

// KeyringSpec says where the keyring lives and how its versions are kept.
type KeyringSpec struct {
	DataFileDir          string `json:"dataFileDir,omitempty"`
	MysqldDir            string `json:"mysqldDir,omitempty"`
	PluginDir            string `json:"pluginDir,omitempty"`
	RetainVersions       int32  `json:"retainVersions,omitempty"`
	EscrowTimeoutSeconds int32  `json:"escrowTimeoutSeconds,omitempty"`
}

// DNSSpec publishes the active site by external-dns.
type DNSSpec struct {
	Name       string `json:"name"`
	TTLSeconds int32  `json:"ttlSeconds,omitempty"`
}

// TaintsSpec taints the nodes of sites that are not fit.
type TaintsSpec struct {
	Enabled bool `json:"enabled,omitempty"`
}

// MysqlFailoverGroup is a group of MySQL sites kept alive by asynchronous replication and automatic failover.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mfg,categories=all
type MysqlFailoverGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MysqlFailoverGroupSpec   `json:"spec"`
	Status MysqlFailoverGroupStatus `json:"status,omitempty,omitzero"`
}

// MysqlFailoverGroupList is a list of groups.
//
// +kubebuilder:object:root=true
type MysqlFailoverGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MysqlFailoverGroup `json:"items"`
}
