// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// isKept tries as an administrator what must not happen by accident.
func (c *cluster) isKept() {
	const name = "mysql-orders-paris-keyring-v1"
	remove := func(edit func(*corev1.Secret)) func() error {
		return func() error {
			s := c.secret("shop", name)
			edit(s)
			return c.admin.Update(c.t.Context(), s)
		}
	}
	for what, try := range map[string]func() error{
		"delete":  func() error { return c.admin.Delete(c.t.Context(), c.secret("shop", name)) },
		"content": remove(func(s *corev1.Secret) { s.Data["keyring"] = one("ff") }),
		"mutable": remove(func(s *corev1.Secret) { s.Immutable = nil }),
		"name":    remove(func(s *corev1.Secret) { delete(s.Labels, v1alpha1.LabelName) }),
		"labels":  remove(func(s *corev1.Secret) { s.Labels = nil }),
		"site":    remove(func(s *corev1.Secret) { s.Labels[v1alpha1.LabelSite] = "madrid" }),
		"number":  remove(func(s *corev1.Secret) { delete(s.Labels, v1alpha1.LabelKeyringVersion) }),
		"digest":  remove(func(s *corev1.Secret) { s.Annotations = nil }),
		"owner":   remove(func(s *corev1.Secret) { s.OwnerReferences = nil }),
		// With its UID alone the group would still be the owner.
		"controller":    remove(func(s *corev1.Secret) { s.OwnerReferences[0].Controller = new(false) }),
		"no controller": remove(func(s *corev1.Secret) { s.OwnerReferences[0].Controller = nil }),
		"kind":          remove(func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "MysqlFailoverGroups" }),
		"owner's name":  remove(func(s *corev1.Secret) { s.OwnerReferences[0].Name = "bills" }),
		"version":       remove(func(s *corev1.Secret) { s.OwnerReferences[0].APIVersion = "mysql-mfg.io/v9" }),
		"two owners": remove(func(s *corev1.Secret) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"})
		}),
		"half-hearted": func() error {
			s := c.secret("shop", name)
			s.Labels[v1alpha1.LabelAllowDeletion] = "yes"
			if err := c.admin.Update(c.t.Context(), s); err != nil {
				c.t.Fatal(err)
			}
			return c.admin.Delete(c.t.Context(), s)
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			c.t.Errorf("%s: %v", what, err)
		}
	}
	// There is no operation for it: each object of a collection is asked for by itself.
	err := c.admin.DeleteAllOf(c.t.Context(), &corev1.Secret{}, client.InNamespace("shop"), client.MatchingLabels{v1alpha1.LabelName: v1alpha1.NameKeyring})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), v1alpha1.LabelAllowDeletion+"=true") {
		c.t.Errorf("delete all: %v", err)
	}
	if owner := metav1.GetControllerOf(c.secret("shop", name)); owner == nil || owner.UID != c.group("shop").UID || owner.Name != testGroup {
		c.t.Errorf("the owner was changed: %+v", owner)
	}
	c.isOpenToOthers(name)
}

// isOpenToOthers shows that what changes nothing of the escrow is nobody's business.
func (c *cluster) isOpenToOthers(name string) {
	s := c.secret("shop", name)
	s.Labels["example.org/backup"], s.Annotations["example.org/seen"] = "weekly", "yes"
	if err := c.admin.Update(c.t.Context(), s); err != nil {
		c.t.Errorf("a label of others: %v", err)
	}
	// Whoever restores a Secret by hand as documented may be overtaken by the operator, which completes it.
	s = c.secret("shop", name)
	s.OwnerReferences[0].BlockOwnerDeletion = nil
	if err := c.admin.Update(c.t.Context(), s); err != nil {
		c.t.Errorf("the same owner as the documentation writes it: %v", err)
	}
	if s = c.secret("shop", name); string(s.Data["keyring"]) != string(realKeyring(c.t)) || s.Labels[v1alpha1.LabelSite] != "paris" {
		c.t.Error("it was changed")
	}
}

// isLetGo shows what the garbage collector may do: take an owner off, as after an orphaning deletion, and no more.
func (c *cluster) isLetGo() {
	s := c.secret("shop", "mysql-orders-paris-keyring-v1")
	if err := c.collector.Delete(c.t.Context(), s); !apierrors.IsForbidden(err) {
		c.t.Errorf("collect: %v", err)
	}
	before := s.DeepCopy()
	s.OwnerReferences = nil
	if err := c.collector.Patch(c.t.Context(), s, client.MergeFrom(before)); err != nil {
		c.t.Errorf("orphan: %v", err)
	}
	before = s.DeepCopy()
	delete(s.Labels, v1alpha1.LabelSite)
	if err := c.collector.Patch(c.t.Context(), s, client.MergeFrom(before)); !apierrors.IsForbidden(err) {
		c.t.Errorf("change: %v", err)
	}
}
