// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupMethod is how the data is copied.
//
// +kubebuilder:validation:Enum=Logical;Physical
type BackupMethod string

// The methods of backups.
const (
	// BackupLogical is a dump by mysqldump: independent of keyrings, and of the MySQL version within what MySQL can load.
	BackupLogical BackupMethod = "Logical"
	// BackupPhysical is a copy of the data directory by CLONE: restored at the speed of the disk, by the same MySQL version.
	BackupPhysical BackupMethod = "Physical"
)

// BackupPrefer is which site a backup is taken from.
//
// +kubebuilder:validation:Enum=DROnly;Replica;Active
type BackupPrefer string

// Which site a backup is taken from.
const (
	// BackupPreferDROnly takes a dr-only site, or else another replica; never the active site.
	BackupPreferDROnly BackupPrefer = "DROnly"
	// BackupPreferReplica takes a replica that is a primary-candidate, or else a dr-only one; never the active site.
	BackupPreferReplica BackupPrefer = "Replica"
	// BackupPreferActive takes the active site, or else a replica.
	BackupPreferActive BackupPrefer = "Active"
)

// BackupSpec configures backups.
//
// +kubebuilder:validation:XValidation:rule="!has(self.pitr) || !self.pitr.enabled || (has(self.pitr.profile) && has(self.profiles) && self.profiles.exists(p, p.name == self.pitr.profile))",message="point-in-time recovery stores binary logs with a backup profile: name one of backup.profiles in backup.pitr.profile",fieldPath=".pitr.profile",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.pitr) || !self.pitr.enabled || !has(self.pitr.profile) || !has(self.profiles) || self.profiles.all(p, p.name != self.pitr.profile || !has(p.storage.volume))",message="the pods of MySQL store binary logs over the network: a volume that is away would keep them from starting and from ending; name a profile with s3, gcs or azure in backup.pitr.profile",fieldPath=".pitr.profile",reason=FieldValueInvalid
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
//
// +kubebuilder:validation:XValidation:rule="!has(self.storage.s3) || !has(self.storage.s3.endpoint) || !self.storage.s3.endpoint.startsWith('http://') || has(self.encryption)",message="an endpoint without TLS shows the data to the network: use an https:// endpoint, or set encryption.recipients",fieldPath=".encryption",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.verification) || (has(self.encryption) ? has(self.encryption.identitySecretName) : true)",message="an encrypted backup cannot be verified without its age identity: set encryption.identitySecretName, or remove verification",fieldPath=".encryption.identitySecretName",reason=FieldValueRequired
type BackupProfile struct {
	// name of the profile, unique in the group.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// method is Logical (mysqldump) or Physical (CLONE). Default Logical.
	//
	// +optional
	// +kubebuilder:default=Logical
	Method BackupMethod `json:"method,omitempty"`
	// storage is where the backups are. Backups of two groups may share a bucket: each is under the group's namespace and name.
	// It cannot change while backups of the profile exist.
	//
	// +required
	Storage BackupStorage `json:"storage"`
	// encryption encrypts the backups of this profile before they leave the pod that makes them. Default none: anyone who can read the
	// bucket can read the data.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`
	// source says which site a backup is taken from.
	//
	// +optional
	// +kubebuilder:default={}
	Source BackupSource `json:"source,omitempty,omitzero"`
	// schedule makes a backup at given times. Default none: backups are made on demand.
	//
	// +optional
	Schedule *BackupSchedule `json:"schedule,omitempty"`
	// retention says which backups are kept. Default none: all are.
	//
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`
	// verification restores backups into a scratch server, to prove that it can be done. Default none.
	//
	// +optional
	Verification *BackupVerification `json:"verification,omitempty"`
	// scratch is the volume of the pod that makes a Physical backup; it holds one copy of the data, encrypted where the group is.
	// Default: an emptyDir with a limit of the size of the site's data.
	//
	// +optional
	Scratch *BackupScratch `json:"scratch,omitempty"`
	// timeout is how long one backup may take. From 1m to 168h. Default 2h.
	//
	// +optional
	// +kubebuilder:default="2h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="timeout is between 1m and 168h: choose a time in which a backup is surely done",reason=FieldValueInvalid
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`
	// resources of the pods that make and verify backups. Default none.
	//
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
}

// BackupEncryption encrypts backups with age (https://age-encryption.org). What makes backups has the recipients alone, and cannot
// read a backup again.
type BackupEncryption struct {
	// recipients are the public keys, as age-keygen prints them: any one of their identities opens a backup. One to 16. Keep an
	// identity outside the cluster: without one no backup can be read. Recipients of plugins are refused, and one whose letters do not
	// add up is refused with the condition SpecRefused.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^age1([02-9ac-hj-np-z]{58}|pq1[02-9ac-hj-np-z]{58,})$`
	Recipients []string `json:"recipients"`
	// identitySecretName is a Secret in the group's namespace with the private key under the key identity. It is read for restore and
	// verification only, by pods that live as long as these take. Default none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	IdentitySecretName string `json:"identitySecretName,omitempty"`
}

// BackupSource says which site a backup is taken from.
type BackupSource struct {
	// prefer is DROnly, Replica or Active. The active site is taken with Active alone. Default DROnly.
	//
	// +optional
	// +kubebuilder:default=DROnly
	Prefer BackupPrefer `json:"prefer,omitempty"`
	// maxLag is how far a replica may lag and still be taken. From 1s to 24h. Default 5m.
	//
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="source.maxLag is between 1s and 24h: choose a value in that range",reason=FieldValueInvalid
	MaxLag metav1.Duration `json:"maxLag,omitempty,omitzero"`
}

// BackupSchedule is when backups are made.
type BackupSchedule struct {
	// cron is minute, hour, day of the month, month and day of the week, as in "0 2 * * *", or @hourly, @daily, @weekly, @monthly or
	// @yearly. The start of each group is spread over a few minutes after it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[0-9*,/-]+ [0-9*,/-]+ [0-9*,/?-]+ [0-9A-Za-z*,/-]+ [0-9A-Za-z*,/?-]+)$`
	Cron string `json:"cron"`
	// timeZone is the time zone of cron, as in Europe/Berlin. Default UTC.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`
	TimeZone string `json:"timeZone,omitempty"`
	// suspend makes no backups by the schedule while true. Default false.
	//
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`
	// startingDeadline is until when after its time a backup may still be started, or tried again. From 1m to 168h. Default 1h.
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="schedule.startingDeadline is between 1m and 168h: choose a value in that range",reason=FieldValueInvalid
	StartingDeadline metav1.Duration `json:"startingDeadline,omitempty,omitzero"`
}

// BackupRetention says which backups of a profile are kept: each that count, maxAge or minCount keeps. The newest verified one is
// always kept.
//
// +kubebuilder:validation:XValidation:rule="has(self.count) || has(self.maxAge)",message="minCount alone would remove nothing that is known: set retention.count or retention.maxAge",fieldPath=".count",reason=FieldValueRequired
type BackupRetention struct {
	// count is how many of the newest backups are kept. From 1 to 1000. Default unset.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count int32 `json:"count,omitempty"`
	// maxAge keeps the backups that are younger. If it stands without count, none is removed while none is younger. From 1h to 87600h.
	// Default unset.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('87600h')",message="retention.maxAge is between 1h and 87600h: choose a value in that range, or leave it out",reason=FieldValueInvalid
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
	// minCount is how many of the newest backups are kept however old they are. From 1 to 1000. Default 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinCount int32 `json:"minCount,omitempty"`
}

// BackupVerification restores backups into a scratch server.
//
// +kubebuilder:validation:XValidation:rule="has(self.afterEvery) || has(self.cron)",message="nothing says when backups are verified: set verification.afterEvery or verification.cron",fieldPath=".afterEvery",reason=FieldValueRequired
type BackupVerification struct {
	// afterEvery verifies the newest backup once so many were made since the last verification. From 1 to 1000. Default unset.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	AfterEvery int32 `json:"afterEvery,omitempty"`
	// cron verifies the newest backup at given times, in the form and the time zone of schedule; without schedule in UTC. Default unset.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[0-9*,/-]+ [0-9*,/-]+ [0-9*,/?-]+ [0-9A-Za-z*,/-]+ [0-9A-Za-z*,/?-]+)$`
	Cron string `json:"cron,omitempty"`
	// query is one SELECT that is run on the restored data, with at most 10 minutes of time. The verification fails unless it returns a
	// row whose first column is neither NULL, 0 nor empty. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^\s*([Ss][Ee][Ll][Ee][Cc][Tt]|[Ww][Ii][Tt][Hh])\s`
	Query string `json:"query,omitempty"`
	// replay applies the archived binary logs too, where there are any. Default true.
	//
	// +optional
	// +kubebuilder:default=true
	Replay *bool `json:"replay,omitempty"`
	// scratch is the volume of the scratch server, which holds the whole data. Default: an emptyDir with a limit of the size of the
	// site's data.
	//
	// +optional
	Scratch *BackupScratch `json:"scratch,omitempty"`
}

// BackupScratch is a volume that is made for one pod and removed with it.
type BackupScratch struct {
	// size of the volume, with a unit, such as 50Gi. At least 512Mi.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('512Mi')) >= 0",message="a scratch volume of less than 512Mi cannot hold an empty database: raise the size",reason=FieldValueInvalid
	Size resource.Quantity `json:"size"`
	// storageClassName is the storage class of the volume. Default: the cluster's default class.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// PITRSpec turns on the archive of binary logs.
type PITRSpec struct {
	// enabled runs a container in the pods of MySQL that archives the binary logs of the active site. To turn it on or off replaces the pods
	// one after the other. Default false.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
	// profile is the backup profile whose storage takes the binary logs. Required once enabled.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile,omitempty"`
	// interval is how often what was written is uploaded: the most that is lost with all sites, but for one upload. From 5s to 10m.
	// Default 30s.
	//
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('10m')",message="pitr.interval is between 5s and 10m: choose a value in that range",reason=FieldValueInvalid
	Interval metav1.Duration `json:"interval,omitempty,omitzero"`
	// secretName is a Secret with credentials for the MySQL pods, in the form of the profile's; they need no right to read or delete
	// backups. Default: the profile's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	SecretName string `json:"secretName,omitempty"`
	// resources of the container that archives. Default: requests of cpu 50m and memory 64Mi, and a limit of memory 256Mi. It stays below
	// the limit, which is at least 128Mi.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('128Mi')) >= 0",message="with less than 128Mi of memory nothing is archived: raise resources.limits.memory of pitr",fieldPath=".limits",reason=FieldValueInvalid
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
}
