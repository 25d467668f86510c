// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CacheEngine is the program that the cache pods run.
//
// +kubebuilder:validation:Enum=Dragonfly;Valkey
type CacheEngine string

// The cache engines.
const (
	CacheDragonfly CacheEngine = "Dragonfly"
	// CacheValkey is Valkey, or Redis from 7 on.
	CacheValkey CacheEngine = "Valkey"
)

// Behind tells what an offset counts: bytes with Valkey, changes with Dragonfly, which is the default. One of the two is nil.
func (e CacheEngine) Behind(offset *int64) (bytes, changes *int64) {
	if e == CacheValkey {
		return offset, nil
	}
	return nil, offset
}

// CacheSetting is the value of one setting: one line of at most 256 characters.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[^\r\n]*$`
type CacheSetting string

// CacheSpec turns on the cache store: one pod beside each site, one of them the master, on the site that is active. It holds
// sessions and cached data. It may lose keys.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.enabled) || !oldSelf.enabled || !has(self.enabled) || !self.enabled || self.engine == oldSelf.engine",message="the engine of a running cache cannot change, because the two do not replicate from each other: set cache.enabled to false, wait until the cache pods are gone, and turn it on with the other engine",fieldPath=".engine",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.enabled) || !oldSelf.enabled || !has(self.enabled) || !self.enabled || (has(self.tls) && has(self.tls.enabled) ? self.tls.enabled : true) == (has(oldSelf.tls) && has(oldSelf.tls.enabled) ? oldSelf.tls.enabled : true)",message="TLS of a running cache can neither be turned on nor off, because pods with and without it do not replicate from each other while they are updated: set cache.enabled to false, wait until the cache pods are gone, and turn it on as you want it",fieldPath=".tls.enabled",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.enabled) || !oldSelf.enabled || !has(self.enabled) || !self.enabled || (has(self.storage) == has(oldSelf.storage) && (!has(self.storage) || (quantity(self.storage.size).compareTo(quantity(oldSelf.storage.size)) == 0 && has(self.storage.storageClassName) == has(oldSelf.storage.storageClassName) && (!has(self.storage.storageClassName) || self.storage.storageClassName == oldSelf.storage.storageClassName))))",message="the volumes of a running cache can neither change nor come nor go: set cache.enabled to false, wait until the cache pods are gone, and turn it on with the other storage",fieldPath=".storage",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.engine != 'Dragonfly' || quantity(self.maxMemory).compareTo(quantity('256Mi')) >= 0",message="Dragonfly does not start with less than 256Mi: raise cache.maxMemory, or use the engine Valkey",fieldPath=".maxMemory",reason=FieldValueInvalid
type CacheSpec struct {
	// enabled creates a cache pod beside every site. Default false. Turning it off removes the pods and their volumes.
	//
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`
	// engine is Dragonfly or Valkey. Images of Redis from 7 on run with Valkey. It cannot change while enabled. Default Dragonfly.
	//
	// +optional
	// +kubebuilder:default=Dragonfly
	Engine CacheEngine `json:"engine,omitempty"`
	// image is the container image of the engine. Default: a version of the engine that this operator was released with.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^\s]*$`
	Image string `json:"image,omitempty"`
	// imagePullPolicy is the pull policy of that image. Default IfNotPresent.
	//
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// maxMemory is how much data each cache pod holds, with a unit, such as 2Gi. From 64Mi on, with Dragonfly from 256Mi on. Default 512Mi. The memory limit of
	// the pod, if resources sets none, is a quarter more and at least 128Mi more.
	//
	// +optional
	// +kubebuilder:default="512Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('64Mi')) >= 0",message="a cache of less than 64Mi is full before the first session: raise maxMemory",reason=FieldValueInvalid
	MaxMemory resource.Quantity `json:"maxMemory,omitempty,omitzero"`
	// config are settings of the engine, name to value; at most 32. Role, accounts, TLS, ports, files and memory are the operator's, and
	// settings for them are refused with the condition SpecRefused. Default none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && k.matches('^[a-z][a-z0-9_-]*$'))",message="a key of cache.config is the name of an engine's setting: a lower-case letter, then lower-case letters, digits, '_' and '-', at most 64 characters; correct or remove the others",reason=FieldValueInvalid
	Config map[string]CacheSetting `json:"config,omitempty"`
	// resources of the cache container. Default: a memory limit that fits maxMemory.
	//
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
	// storage gives each cache pod a volume, from which it starts with its data after a restart. It cannot change, come or go while enabled.
	// Default none: memory only.
	//
	// +optional
	Storage *CacheStorage `json:"storage,omitempty"`
	// auth is the password that clients and replicas need.
	//
	// +optional
	// +kubebuilder:default={}
	Auth CacheAuth `json:"auth,omitempty,omitzero"`
	// tls encrypts connections to the cache.
	//
	// +optional
	// +kubebuilder:default={}
	TLS CacheTLS `json:"tls,omitempty,omitzero"`
	// planned says how long a planned failover waits for the cache.
	//
	// +optional
	// +kubebuilder:default={}
	Planned CachePlanned `json:"planned,omitempty,omitzero"`
	// emergencyBudget is how long an emergency failover tries to keep the sessions, beside the failover of MySQL and never in its way.
	// From 500ms to 60s. Default 3s.
	//
	// +optional
	// +kubebuilder:default="3s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('500ms') && duration(self) <= duration('60s')",message="emergencyBudget is between 500ms and 60s: choose a value in that range",reason=FieldValueInvalid
	EmergencyBudget metav1.Duration `json:"emergencyBudget,omitempty,omitzero"`
}

// CacheStorage is the volume of each cache pod.
type CacheStorage struct {
	// size of the volume, with a unit. From 64Mi on. Default 1Gi.
	//
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(self).compareTo(quantity('64Mi')) >= 0",message="a cache volume has at least 64Mi: raise the size, or leave storage out",reason=FieldValueInvalid
	Size resource.Quantity `json:"size,omitempty,omitzero"`
	// storageClassName is the storage class of the volume. Default: the cluster's default class.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// CacheAuth is the password of the cache.
type CacheAuth struct {
	// secretName is a Secret in the group's namespace with the key password: 8 to 128 letters, digits, '-', '_' and '.'.
	// Default: the operator makes one, named <group>-cache-auth. A new password reaches the pods without a restart.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	SecretName string `json:"secretName,omitempty"`
}

// CacheTLS encrypts connections to the cache.
type CacheTLS struct {
	// enabled encrypts all connections to the cache with the certificate of spec.tls. Default: true if the group has TLS from its
	// beginning, else false. True needs spec.tls.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// CacheOnTimeout says what a planned failover does if the cache of its target does not catch up in time.
//
// +kubebuilder:validation:Enum=Proceed;Refuse
type CacheOnTimeout string

// What a planned failover does if the cache of its target does not catch up in time.
const (
	CacheProceed CacheOnTimeout = "Proceed"
	CacheRefuse  CacheOnTimeout = "Refuse"
)

// CachePlanned says how long a planned failover waits for the cache.
type CachePlanned struct {
	// syncTimeout is how long a planned failover waits for the target's cache to catch up, before writes to MySQL pause. From 0s to 10m.
	// Default 30s.
	//
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('10m')",message="syncTimeout is at most 10m: choose a shorter one",reason=FieldValueInvalid
	SyncTimeout metav1.Duration `json:"syncTimeout,omitempty,omitzero"`
	// onTimeout is Proceed, which moves MySQL and may lose sessions, or Refuse, which changes nothing. Default Proceed.
	//
	// +optional
	// +kubebuilder:default=Proceed
	OnTimeout CacheOnTimeout `json:"onTimeout,omitempty"`
}

// CacheRole is what a cache pod does.
type CacheRole string

// The roles of a cache pod. They are the values of the label cache-role, too.
const (
	CacheMaster  CacheRole = "master"
	CacheReplica CacheRole = "replica"
)

// CacheMove is why the cache's master changes.
type CacheMove string

// Why the cache's master changes.
const (
	// CacheMovePlanned: MySQL moves by a planned failover, and the cache with it.
	CacheMovePlanned CacheMove = "Planned"
	// CacheMoveEmergency: MySQL failed over, and the cache follows.
	CacheMoveEmergency CacheMove = "Emergency"
	// CacheMoveOnly: the master is gone while its site is active.
	CacheMoveOnly CacheMove = "CacheOnly"
	// CacheMoveHome: the cache of the active site is back and takes over again.
	CacheMoveHome CacheMove = "Home"
	// CacheMoveRollout: the master's pod is about to be updated or evicted.
	CacheMoveRollout CacheMove = "Rollout"
	// CacheMoveRequested: a person asked for it.
	CacheMoveRequested CacheMove = "Requested"
	// CacheMoveFirst: the first master of the group.
	CacheMoveFirst CacheMove = "First"
)

// CacheMethod is how a cache became the master.
type CacheMethod string

// How a cache became the master.
const (
	// CacheByTakeOver: the engine handed over, with every key.
	CacheByTakeOver CacheMethod = "TakeOver"
	// CacheByPromotion: a replica was promoted without its master; what it had not received is lost.
	CacheByPromotion CacheMethod = "Promotion"
	// CacheByFirstStart: the first master of the group.
	CacheByFirstStart CacheMethod = "FirstStart"
	// CacheByRestart: the process of the master ended and began again, and nobody else held more than it.
	CacheByRestart CacheMethod = "Restart"
)

// CacheStatus is the state of the cache store. operator/cache writes it, through the field manager mfg-cache-status.
type CacheStatus struct {
	// activeSite is the site whose cache is the master and takes the traffic; empty while none does.
	//
	// +optional
	ActiveSite string `json:"activeSite,omitempty"`
	// activeRun names the process that is the master, as the engine and its pod do: one that began again may have come back empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ActiveRun string `json:"activeRun,omitempty"`
	// transition is the change of the master that is under way.
	//
	// +optional
	Transition *CacheTransition `json:"transition,omitempty"`
	// sites holds one entry for each cache pod.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sites []CacheSiteStatus `json:"sites,omitempty"`
	// lastPromotion is the last change of the master.
	//
	// +optional
	LastPromotion *CachePromotion `json:"lastPromotion,omitempty"`
}

// CacheTransition is a change of the master that is under way. It is persisted before its first effect.
type CacheTransition struct {
	// kind is why the master changes.
	Kind CacheMove `json:"kind"`
	// from is the site that had the master; empty for the first one.
	//
	// +optional
	From string `json:"from,omitempty"`
	// to is the site whose cache becomes the master.
	To string `json:"to"`
	// epoch is status.epoch when it was decided.
	//
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// startedAt is when it was decided.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// toRun names the process at the site to when it was decided. If that process begins again, it is not the master meant here.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ToRun string `json:"toRun,omitempty"`
	// method is how to becomes the master. It is persisted before a promotion that loses what was not received.
	//
	// +optional
	Method CacheMethod `json:"method,omitempty"`
	// reason is why sessions are lost; empty while none are.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
}

// CacheSiteStatus is what is known of one cache pod.
type CacheSiteStatus struct {
	// name of the site.
	Name string `json:"name"`
	// role is master or replica; empty while the pod is not reached.
	//
	// +optional
	Role CacheRole `json:"role,omitempty"`
	// link is Up, Down or Syncing for a replica.
	//
	// +optional
	Link string `json:"link,omitempty"`
	// offsetBehind is roughly how many bytes of the master's changes a replica has not received, with Dragonfly how many changes; 0 below
	// 64 KiB, or 100 changes; absent while that is not known. The metrics have it exactly.
	//
	// +optional
	OffsetBehind *int64 `json:"offsetBehind,omitempty"`
	// usedMemory is the memory that its data takes.
	//
	// +optional
	UsedMemory *resource.Quantity `json:"usedMemory,omitempty"`
	// image that the pod runs.
	//
	// +optional
	Image string `json:"image,omitempty"`
	// message says what is wrong; empty if nothing is.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// CachePromotion is one change of the master.
type CachePromotion struct {
	// at is when the new master took the traffic.
	At metav1.MicroTime `json:"at"`
	// kind is why.
	Kind CacheMove `json:"kind"`
	// epoch is status.epoch when it was decided.
	//
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// from is the site that had the master before; empty if there was none.
	//
	// +optional
	From string `json:"from,omitempty"`
	// to is the site that has it.
	To string `json:"to"`
	// method is how.
	Method CacheMethod `json:"method"`
	// sessionsPreserved is true if every key of the old master is in the new one.
	SessionsPreserved bool `json:"sessionsPreserved"`
	// tookMillis is how long the traffic had no master, in milliseconds.
	//
	// +optional
	TookMillis int64 `json:"tookMillis,omitempty"`
	// reason is why sessions were not preserved, one CamelCase word; empty if they were.
	//
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// message says it to people.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
