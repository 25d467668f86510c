// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MysqlFailoverGroup is a group of MySQL sites kept alive by asynchronous replication and automatic failover. Exactly
// one site is the active site and takes writes; every other site replicates from it.
//
// The name is at most 30 characters, and name and site name together at most 42, so that every name derived from them
// stays within the 63 characters that Services and labels allow.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=mysqlfailovergroups,singular=mysqlfailovergroup,shortName=mfg,categories=all,scope=Namespaced
// +kubebuilder:selectablefield:JSONPath=`.status.activeSite`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="True when every site serves and replicates"
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.activeSite`,description="The site that takes writes"
// +kubebuilder:printcolumn:name="Sites",type=string,JSONPath=`.status.readySites`,description="Sites that are ready, of all sites"
// +kubebuilder:printcolumn:name="Lag",type=string,JSONPath=`.status.replicationLag`,description="Largest replication lag of any replica"
// +kubebuilder:printcolumn:name="Sealed",type=boolean,JSONPath=`.status.encryptionAtRest.sealed`,description="Whether every keyring is sealed; empty without encryption"
// +kubebuilder:printcolumn:name="Failover",type=string,JSONPath=`.status.lastFailover`,description="Kind of the last failover, or Blocked"
// +kubebuilder:printcolumn:name="Recoverable",type=date,JSONPath=`.status.backup.pitr.latest`,priority=1,description="How long ago the latest point in time is that the archive of binary logs reaches; empty without one"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.status.epoch`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 30 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name of a group is at most 30 characters, lower-case letters, digits and '-', starting with a letter: choose such a name",fieldPath=".metadata.name",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="self.spec.sites.all(s, s.name.size() + self.metadata.name.size() <= 42)",message="the group's name and a site's name together are longer than 42 characters: shorten one of them",fieldPath=".spec.sites",reason=FieldValueInvalid
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || oldSelf.spec.sites.all(s, !((has(oldSelf.status.activeSite) && s.name == oldSelf.status.activeSite) || (has(oldSelf.status.transition) && (s.name == oldSelf.status.transition.to || (has(oldSelf.status.transition.from) && s.name == oldSelf.status.transition.from)))) || self.spec.sites.exists(t, t.name == s.name && (t.role == s.role || t.role == 'primary-candidate')))",message="the active site can neither be removed nor become dr-only, nor can the two sites between which the role is moving: move the role away with a planned failover first, or wait until the move has ended",fieldPath=".spec.sites",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.epoch) || oldSelf.status.epoch == 0 || (has(oldSelf.status.tls) && has(oldSelf.status.tls.phase) && oldSelf.status.tls.phase == 'Plain') || !has(oldSelf.spec.tls) || !has(self.spec.tls) || (has(self.spec.tls.secretName) == has(oldSelf.spec.tls.secretName) && (!has(self.spec.tls.secretName) || self.spec.tls.secretName == oldSelf.spec.tls.secretName))",message="a group that has run keeps the Secret of its certificate, or sites would not trust each other while they are updated: put the new certificate into the Secret that is named, which the sites take without a restart; a certificate that the operator makes (tls: {}) stays its own, and no other becomes so: make a new group for that",fieldPath=".spec.tls.secretName",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(oldSelf.spec.tls) || !has(self.spec.tls) || (has(oldSelf.status) && has(oldSelf.status.tls) && has(oldSelf.status.tls.phase) && oldSelf.status.tls.phase == 'Plain')",message="TLS comes to a group in steps, and its operator has not said yet that it knows them: wait until status.tls.phase is Plain, which takes an operator of this version a minute",fieldPath=".spec.tls",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.spec.encryptionAtRest) || !self.spec.encryptionAtRest.enabled || (has(oldSelf.spec.encryptionAtRest) && oldSelf.spec.encryptionAtRest.enabled) || !has(oldSelf.status) || !has(oldSelf.status.tls) || !has(oldSelf.status.tls.phase) || oldSelf.status.tls.phase in ['Clients', 'Required']",message="encryption at rest needs sites that verify each other, and this group is still on its way there: set spec.tls, wait until status.tls.phase is Clients or Required, and then enable encryption",fieldPath=".spec.encryptionAtRest.enabled",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.tls) || (!(has(oldSelf.status.tls.later) && oldSelf.status.tls.later) && !(has(oldSelf.status.tls.phase) && oldSelf.status.tls.phase == 'Plain')) || !has(oldSelf.spec.cache) || !has(oldSelf.spec.cache.enabled) || !oldSelf.spec.cache.enabled || !has(self.spec.cache) || !has(self.spec.cache.enabled) || !self.spec.cache.enabled || (has(self.spec.cache.tls) && has(self.spec.cache.tls.enabled) && self.spec.cache.tls.enabled) == (has(oldSelf.spec.cache.tls) && has(oldSelf.spec.cache.tls.enabled) && oldSelf.spec.cache.tls.enabled)",message="TLS of a running cache can neither be turned on nor off, and the cache of a group that got TLS later has none unless it says so: set cache.enabled to false, wait until the cache pods are gone, and turn it on as you want it",fieldPath=".spec.cache.tls.enabled",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.tls) || !has(oldSelf.status.tls.phase) || oldSelf.status.tls.phase != 'Plain' || !has(self.spec.cache) || !has(self.spec.cache.enabled) || !self.spec.cache.enabled || !has(self.spec.cache.tls) || !has(self.spec.cache.tls.enabled) || !self.spec.cache.tls.enabled",message="the group's certificate is not in use yet, and the cache would show it: wait until status.tls.phase is Certificates or later, and then turn the cache on with TLS",fieldPath=".spec.cache.tls.enabled",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.epoch) || oldSelf.status.epoch == 0 || !has(self.spec.initFromBackup) || (has(oldSelf.spec.initFromBackup) && self.spec.initFromBackup == oldSelf.spec.initFromBackup)",message="a group that has run is not restored over: make a new group with initFromBackup, and take initFromBackup back here",fieldPath=".spec.initFromBackup",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.backup) || !has(oldSelf.status.backup.profiles) || !has(oldSelf.spec.backup) || !has(oldSelf.spec.backup.profiles) || !has(self.spec.backup) || !has(self.spec.backup.profiles) || oldSelf.status.backup.profiles.all(s, !has(s.backups) || s.backups == 0 || oldSelf.spec.backup.profiles.all(p, p.name != s.name || self.spec.backup.profiles.all(q, q.name != s.name || q.storage == p.storage)))",message="the storage of a profile cannot change while it holds backups, or nobody would find them: add another profile with the new storage",fieldPath=".spec.backup.profiles",reason=FieldValueForbidden
type MysqlFailoverGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wished state of the group.
	//
	// +required
	Spec MysqlFailoverGroupSpec `json:"spec"`
	// status is what the operator observed and durably intends.
	//
	// +optional
	Status MysqlFailoverGroupStatus `json:"status,omitempty,omitzero"`
}

// MysqlFailoverGroupList is a list of groups.
//
// +kubebuilder:object:root=true
type MysqlFailoverGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the groups.
	//
	// +required
	Items []MysqlFailoverGroup `json:"items"`
}
