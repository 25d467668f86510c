// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SiteRole says whether a site may be promoted.
//
// +kubebuilder:validation:Enum=primary-candidate;dr-only
type SiteRole string

// The site roles.
const (
	PrimaryCandidate SiteRole = "primary-candidate"
	DROnly           SiteRole = "dr-only"
)

// DeletionPolicy says what outlives the group.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The deletion policies.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionDelete DeletionPolicy = "Delete"
)

// MysqlFailoverGroupSpec is the wished state of a group.
//
// +kubebuilder:validation:XValidation:rule="!has(self.encryptionAtRest) || !self.encryptionAtRest.enabled || has(self.tls)",message="encryption at rest needs TLS, because every replica is cloned over the network: set spec.tls, {} has the operator make a certificate",fieldPath=".tls",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.encryptionAtRest) || !oldSelf.encryptionAtRest.enabled || (has(self.encryptionAtRest) && self.encryptionAtRest.enabled)",message="encryption at rest cannot be turned off: load the data into a new group without encryption instead",fieldPath=".encryptionAtRest",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.tls) || has(self.tls)",message="TLS cannot be taken off a group, because its sites verify each other: leave spec.tls, and set tls.plainConnections to Allow to let clients connect without TLS, or make a new group without it and move the data",fieldPath=".tls",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.cache) || !has(self.cache.tls) || !has(self.cache.tls.enabled) || !self.cache.tls.enabled || has(self.tls)",message="TLS of the cache uses the group's certificate: set spec.tls, or leave cache.tls.enabled out",fieldPath=".cache.tls.enabled",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.encryptionAtRest) || !self.encryptionAtRest.enabled || !has(self.backup) || !has(self.backup.profiles) || self.backup.profiles.all(p, p.method != 'Physical' || has(p.encryption))",message="a Physical backup of an encrypted group holds its keyring, and would give it to everybody who reads the bucket: set encryption.recipients in the profile, or take the method Logical",fieldPath=".backup.profiles",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.encryptionAtRest) || !self.encryptionAtRest.enabled || !has(self.backup) || !has(self.backup.pitr) || !self.backup.pitr.enabled || !has(self.backup.profiles) || self.backup.profiles.all(p, !has(self.backup.pitr.profile) || p.name != self.backup.pitr.profile || has(p.encryption))",message="the archive has the binary logs of an encrypted group in the clear, for everybody who reads the bucket: set encryption.recipients in the profile that backup.pitr.profile names",fieldPath=".backup.pitr.profile",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.initFromBackup) || !has(self.initFromBackup.profile) || (has(self.backup) && has(self.backup.profiles) && self.backup.profiles.exists(p, p.name == self.initFromBackup.profile))",message="the backup to start from is looked for with a profile of this group: name one of backup.profiles, or set initFromBackup.storage instead",fieldPath=".initFromBackup.profile",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(self.initFromBackup) || !has(self.initFromBackup.profile) || has(self.initFromBackup.encryption) || !has(self.backup) || !has(self.backup.profiles) || !self.backup.profiles.exists(p, p.name == self.initFromBackup.profile && has(p.encryption) && !has(p.encryption.identitySecretName))",message="the backups of this profile are encrypted, and nothing opens them: set initFromBackup.encryption.identitySecretName, or that of the profile",fieldPath=".initFromBackup.encryption",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.application) || (has(self.application) && self.application == oldSelf.application)",message="the database and its account are made once, and the Secret names them: leave spec.application as it is; make others yourself with CREATE DATABASE and CREATE USER",fieldPath=".application",reason=FieldValueForbidden
type MysqlFailoverGroupSpec struct {
	// image is the container image that holds mysqld 9.x. Default mysql:9.7.
	//
	// +optional
	// +kubebuilder:default="mysql:9.7"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Image string `json:"image,omitempty"`
	// imagePullPolicy is the pull policy of the MySQL image. Default IfNotPresent.
	//
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// imagePullSecrets are Secrets in the group's namespace with which its images are pulled. Default none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// sites are the places that run one MySQL pod each: 2 to 16, at least two of them primary-candidate. The active
	// site cannot be removed, nor the sites between which the role is moving.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.filter(s, s.role == 'primary-candidate').size() >= 2",message="at least two sites need the role primary-candidate, or there is nowhere to fail over to: add a site or change the role of one",reason=FieldValueInvalid
	Sites []Site `json:"sites"`

	// priorityClassName is the priority class of the pods of MySQL. It must be there. With one that preempts, the scheduler ends pods of
	// less priority to make room. Default none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system-')",message="classes that begin with system- are for what the cluster consists of: make one of your own",reason=FieldValueForbidden
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// topologySpreadConstraints spread the pods of MySQL over places, beside the affinity of the sites. Default none.
	//
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []TopologySpread `json:"topologySpreadConstraints,omitempty"`
	// podLabels are more labels of the pods of MySQL, at most 16: none that the operator or Kubernetes gives. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key of podLabels is the name of a label, with a domain or without: correct or remove the others",reason=FieldValueInvalid
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['app.kubernetes.io/component', 'app.kubernetes.io/part-of', 'app.kubernetes.io/version'] || !k.matches('^([^/]*[.])?(mysql-mfg|kubernetes|k8s)[.]io/') && !(k in ['pod-template-hash', 'controller-revision-hash']))",message="pods are found by the labels of mysql-mfg.io, kubernetes.io and k8s.io: remove them, but for app.kubernetes.io/component, part-of and version",reason=FieldValueForbidden
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// podAnnotations are more annotations of the pods of MySQL, at most 16 of at most 2048 characters: none of the operator, and none that
	// loosens their confinement. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a key of podAnnotations is the name of an annotation, with a domain or without: correct or remove the others",reason=FieldValueInvalid
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?mysql-mfg[.]io/') && !k.matches('^kubectl[.]kubernetes[.]io/') && !k.matches('^[^/]*(apparmor|seccomp)[.]security[.]'))",message="annotations of mysql-mfg.io and kubectl.kubernetes.io, and profiles of AppArmor and seccomp, are not the group's to give: remove them",reason=FieldValueForbidden
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// mysqlConf are settings for the [mysqld] section of my.cnf, name to value; at most 200. Settings that
	// docs/reference/mysql-conf.md does not have are refused, with the condition SpecRefused. A value is one line of at most 1024 characters. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 128 && k.matches('^[A-Za-z][A-Za-z0-9_.-]*$'))",message="a key of mysqlConf is the name of a MySQL setting: a letter, then letters, digits, '_', '-' and '.', at most 128 characters; correct or remove the others",reason=FieldValueInvalid
	MysqlConf map[string]string `json:"mysqlConf,omitempty"`

	// tls gives the certificates for connections to MySQL. With it every connection must be encrypted, unless plainConnections says
	// otherwise. Default none: connections may be in plain text. It can be added to a group that runs, in steps (docs/tls.md), but not
	// taken off.
	//
	// +optional
	TLS *TLSSpec `json:"tls,omitempty"`
	// failover governs when the active site changes.
	//
	// +optional
	// +kubebuilder:default={}
	Failover FailoverSpec `json:"failover,omitempty,omitzero"`
	// sidecar governs the fence, which keeps a site that is cut off from taking writes.
	//
	// +optional
	// +kubebuilder:default={}
	Sidecar SidecarSpec `json:"sidecar,omitempty,omitzero"`

	// cache turns on the cache store: one pod beside each site, whose master follows the active site. Default none.
	//
	// +optional
	Cache *CacheSpec `json:"cache,omitempty"`
	// backup configures backups and point-in-time recovery. Default none.
	//
	// +optional
	Backup *BackupSpec `json:"backup,omitempty"`
	// initFromBackup loads a new group from a backup: the first site is given its data, and nothing opens and no other site is made
	// before it has all of it. It cannot change once the group has run, but it can be removed. Default none.
	//
	// +optional
	InitFromBackup *InitFromBackupSpec `json:"initFromBackup,omitempty"`
	// encryptionAtRest turns on data-at-rest encryption. Default none.
	//
	// +optional
	EncryptionAtRest *EncryptionAtRestSpec `json:"encryptionAtRest,omitempty"`
	// dns publishes the active site through external-dns, by a DNSEndpoint that follows it. Default none.
	//
	// +optional
	DNS *DNSSpec `json:"dns,omitempty"`
	// taints marks the nodes of sites that are not active, so that applications are scheduled next to the database.
	// Default none.
	//
	// +optional
	Taints *TaintsSpec `json:"taints,omitempty"`

	// application has the operator make a database, an account for it and the Secret mysql-<group>-app, once. It can be added to a group,
	// but neither changed nor taken off it. Default none.
	//
	// +optional
	Application *ApplicationSpec `json:"application,omitempty"`

	// maxReadLag takes replicas that lag more out of the Service of the read replicas. Default unset: every healthy
	// replica takes reads. From 1s to 24h.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="maxReadLag is between 1s and 24h: choose a value in that range, or leave it out for no limit",reason=FieldValueInvalid
	MaxReadLag *metav1.Duration `json:"maxReadLag,omitempty"`

	// deletionPolicy says what happens to the data volumes and generated Secrets when the group is deleted: Retain keeps
	// them, Delete removes them. Default Retain.
	//
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// TopologySpread spreads the pods of MySQL of the group over places: what Kubernetes calls a topology spread constraint, with their labels.
type TopologySpread struct {
	// topologyKey is the label of nodes whose values are the places, such as topology.kubernetes.io/zone.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253",message="the domain of a label has at most 253 characters: name the label that the nodes have",reason=FieldValueInvalid
	TopologyKey string `json:"topologyKey"`
	// maxSkew is by how many pods two places may differ. Default 1, up to 16.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// whenUnsatisfiable is DoNotSchedule, which leaves a site without a pod, or ScheduleAnyway.
	//
	// +required
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	WhenUnsatisfiable corev1.UnsatisfiableConstraintAction `json:"whenUnsatisfiable"`
}

// Site is one place that runs one MySQL pod.
type Site struct {
	// name of the site: a DNS label of at most 20 characters, unique in the group. The names primary and replicas are
	// taken by the group's Services.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['primary', 'replicas'])",message="the names primary and replicas belong to the group's own Services: choose another name for the site",reason=FieldValueInvalid
	Name string `json:"name"`
	// role is primary-candidate for a site that may be promoted, dr-only for one that never is.
	//
	// +required
	Role SiteRole `json:"role"`
	// priority breaks ties between equally fit candidates, and chooses the first active site; the higher wins.
	// Default 0, from -1000 to 1000.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority,omitempty"`

	// nodeSelector restricts the nodes on which the site's pod runs. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// affinity is the scheduling affinity of the site's pod. Default none.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// tolerations of the site's pod. Default none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// storage is the data volume of the site.
	//
	// +optional
	// +kubebuilder:default={}
	Storage StorageSpec `json:"storage,omitempty,omitzero"`
	// resources of the mysql container. Without a CPU in requests or limits: a request of 250m CPU. Give it what your load needs.
	//
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	// externalAddress is where the site can be reached from outside the cluster: a host name or an IP address, without
	// a port. It is what the DNS name of spec.dns points to while this site is active. Default none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`
	ExternalAddress string `json:"externalAddress,omitempty"`
}

// StorageSpec is the data volume of a site.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="the storage class of a site cannot change: add a site with the other class, move the role there and remove this one",fieldPath=".storageClassName",reason=FieldValueForbidden
type StorageSpec struct {
	// size of the data volume, with a unit, such as 100Gi. Default 10Gi, at least 512Mi. It can grow, where the storage class allows it; a volume that has more keeps it.
	//
	// +optional
	// +kubebuilder:default="10Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('512Mi')) >= 0",message="a data volume of less than 512Mi is full before the first row: raise the size",reason=FieldValueInvalid
	Size resource.Quantity `json:"size,omitempty,omitzero"`
	// storageClassName is the storage class of the data volume. Default: the cluster's default class. It cannot change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// TLSSpec gives the group's certificates. Empty ({}), the operator makes an authority and a certificate for the group, and renews both.
//
// +kubebuilder:validation:XValidation:rule="!has(self.issuerRef) || has(self.secretName)",message="cert-manager writes the certificate of issuerRef into a Secret: name it in spec.tls.secretName, or leave both out (tls: {}), and the operator makes a certificate",fieldPath=".secretName",reason=FieldValueRequired
type TLSSpec struct {
	// issuerRef names a cert-manager issuer; with it the operator asks for a certificate and cert-manager writes it to
	// secretName. Default none: secretName must exist, or is not given either.
	//
	// +optional
	IssuerRef *IssuerRef `json:"issuerRef,omitempty"`
	// secretName is the Secret, in the group's namespace, that holds tls.crt, tls.key and ca.crt. Default none: the operator makes and renews
	// them, in the Secret mysql-<group>-tls.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	SecretName string `json:"secretName,omitempty"`
	// plainConnections says whether clients may connect without TLS. Allow: they may. RefuseWhenUnused: the sites refuse them once no site
	// has seen one for 10 minutes. Refuse: the sites refuse them now, also those that are in use. The operator updates the sites for it,
	// one by one. Default: Refuse in a group that was made with TLS, Allow in one that got it later; the operator never changes that.
	//
	// +optional
	PlainConnections PlainConnections `json:"plainConnections,omitempty"`
}

// Made is true if the operator makes the certificate; false without TLS too.
func (t *TLSSpec) Made() bool { return t != nil && t.SecretName == "" }

// Secret is the Secret with tls.crt, tls.key and ca.crt of a group; empty without TLS.
func (t *TLSSpec) Secret(group string) string {
	switch {
	case t == nil:
		return ""
	case t.Made():
		return MadeTLSSecret(group)
	}
	return t.SecretName
}

// IssuerRef names a cert-manager issuer.
type IssuerRef struct {
	// name of the issuer.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// kind of the issuer, Issuer or ClusterIssuer. Default Issuer.
	//
	// +optional
	// +kubebuilder:default=Issuer
	// +kubebuilder:validation:Enum=Issuer;ClusterIssuer
	Kind string `json:"kind,omitempty"`
}
