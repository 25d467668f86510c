// SPDX-License-Identifier: Apache-2.0

// Package render turns a group into the Kubernetes objects that it should have. It is pure: the same input gives the
// same bytes, in any order of maps and lists; keys and passwords are made elsewhere and come in as values. Every
// object carries its TypeMeta and only the fields that the operator owns, so that it can be applied by the server.
// What the pod looks like and why is told in docs/internals/fence.md; golden files in testdata show it.
package render

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const kind = "MysqlFailoverGroup"

// Input is what the objects of a group depend on.
type Input struct {
	Group   *v1alpha1.MysqlFailoverGroup
	Install Install
	// Anchors are the public keys that the sites trust first of all, by site: wire.EncodeKey.
	Anchors map[string]string
	// Keyrings are those of the encrypted sites, by name.
	Keyrings map[string]Keyring
	// Unlisted are the sites that no other one is told of yet (status.sites[].unlisted).
	Unlisted map[string]bool
	// Restarted are the restarts that the pods carry, of sites that are there: v1alpha1.RestartOf.
	Restarted map[string]string
	// Restore has one site loaded from a backup before it starts; nil normally.
	Restore *Restore
}

// Install is how the operator was installed: the same for every group.
type Install struct {
	SidecarImage      string
	SidecarPullPolicy corev1.PullPolicy
	// OperatorURL is where sidecars reach the operator's auxiliary listener.
	OperatorURL string
	// BackupImage has the program that makes and verifies backups; empty if the installation makes none.
	BackupImage      string
	BackupPullPolicy corev1.PullPolicy
	// EscrowURL is where they reach its escrow endpoint, over TLS.
	EscrowURL string
	// EscrowOwn is true if the operator makes the certificate of that endpoint: its authorities come with the token then.
	EscrowOwn bool
	// PlatformAssignsIDs leaves users and groups of all pods to the platform.
	PlatformAssignsIDs bool
}

// Host is the name under which the MySQL and the sidecar of a site are reached, and which its certificate must carry.
func Host(namespace, group, site string) string {
	return v1alpha1.SiteName(group, site) + "." + namespace + ".svc"
}

// GroupLabels are on every managed object of a group.
func GroupLabels(group string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      v1alpha1.NameMySQL,
		v1alpha1.LabelInstance:  group,
		v1alpha1.LabelGroup:     group,
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
	}
}

// SiteLabels are on every managed object of one site, and on its pod.
func SiteLabels(group, site string) map[string]string {
	labels := GroupLabels(group)
	labels[v1alpha1.LabelSite] = site
	return labels
}

// podSelector selects the pod of one site. It must never change: a Deployment's selector is immutable.
func podSelector(group, site string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:  v1alpha1.NameMySQL,
		v1alpha1.LabelGroup: group,
		v1alpha1.LabelSite:  site,
	}
}

func (in Input) meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       in.Group.Namespace,
		Labels:          maps.Clone(labels),
		OwnerReferences: []metav1.OwnerReference{in.owner()},
	}
}

// keptMeta is the metadata of objects that hold what cannot be made again: with the deletion policy Retain nobody owns
// them, so no garbage collector takes them with the group.
func (in Input) keptMeta(name string, labels map[string]string) metav1.ObjectMeta {
	meta := in.meta(name, labels)
	if in.Group.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
		meta.OwnerReferences = nil
	}
	return meta
}

func (in Input) owner() metav1.OwnerReference {
	return *metav1.NewControllerRef(in.Group, v1alpha1.GroupVersion.WithKind(kind))
}
