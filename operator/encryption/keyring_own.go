// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// escrowList reads the metadata of the escrow Secrets of a group, or of one site of it, live and without their content.
func (r *Encryption) escrowList(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) ([]metav1.PartialObjectMetadata, error) {
	labels := client.MatchingLabels{
		v1alpha1.LabelName: v1alpha1.NameKeyring, v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelGroup: group.Name,
	}
	if site != "" {
		labels[v1alpha1.LabelSite] = site
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.Live.List(ctx, list, client.InNamespace(group.Namespace), labels); err != nil {
		return nil, fmt.Errorf("list escrow secrets: %w", err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	}
	return list.Items, nil
}

// ownKeyrings makes the group the owner of a site's escrow Secrets. With Retain the finalizer removes that owner again
// before the group goes; until then the chart's admission policy refuses the garbage collector, which in a foreground
// deletion does not wait for finalizers.
func (r *Encryption) ownKeyrings(ctx context.Context, s *scope.Scope, site keyring.Site) error {
	items, err := r.escrowList(ctx, s.Group, site.Name)
	if err != nil {
		return err
	}
	for i := range items {
		item := &items[i]
		owner := metav1.GetControllerOfNoCopy(item)
		switch {
		case item.DeletionTimestamp != nil, s.Group.DeletionTimestamp != nil:
			// A group that is letting its Secrets go does not own them again.
		case owner == nil, apply.IsGone(s.Group, *owner):
			if err := r.own(ctx, s.Group, item); err != nil {
				return fmt.Errorf("own %s: %w", item.Name, err)
			}
		}
	}
	return r.completeRestored(ctx, s, site, items)
}

// own makes the group the controller of an object.
func (r *Encryption) own(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, item *metav1.PartialObjectMetadata) error {
	before := item.DeepCopy()
	item.OwnerReferences = slices.DeleteFunc(item.OwnerReferences, func(o metav1.OwnerReference) bool { return apply.IsGone(group, o) })
	item.OwnerReferences = append(item.OwnerReferences, *metav1.NewControllerRef(group, v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup")))
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Client.Patch(ctx, item, patch, client.FieldOwner(v1alpha1.ManagerController)))
}

// completeRestored completes a Secret that a person restored without labels: its content has the digest that status names,
// so it is the lost one. It reads the Secret once, and completes it only if it is still unchanged: a person may put another
// keyring in its place meanwhile, and could not correct that once the Secret is immutable.
func (r *Encryption) completeRestored(ctx context.Context, s *scope.Scope, site keyring.Site, listed []metav1.PartialObjectMetadata) error {
	st := site.Status
	for i := range listed {
		if listed[i].Name == st.KeyringSecret {
			return nil
		}
	}
	if st.KeyringSecret == "" || st.KeyringDigest == "" {
		return nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: st.KeyringSecret}, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if wire.KeyringDigest(secret.Data[v1alpha1.KeyringKey]) != st.KeyringDigest {
		return nil // a Secret with other content is left to the person who put it there
	}
	before := secret.DeepCopy()
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	for key, value := range render.SiteLabels(s.Key.Name, site.Name) {
		secret.Labels[key] = value
	}
	secret.Labels[v1alpha1.LabelName] = v1alpha1.NameKeyring
	secret.Labels[v1alpha1.LabelKeyringVersion] = strconv.FormatInt(st.KeyringVersion, 10)
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[v1alpha1.AnnotationKeyringDigest] = st.KeyringDigest
	secret.Immutable = new(true)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, secret, patch, client.FieldOwner(v1alpha1.ManagerController))); err != nil {
		return fmt.Errorf("complete %s: %w", secret.Name, err)
	}
	return nil
}

// RemoveKeyrings removes the token of a site that left the specification, and its keyrings if its data goes too.
func (r *Encryption) RemoveKeyrings(ctx context.Context, s *scope.Scope, site string, dataGoes bool) error {
	if r.Escrow == nil || !scope.Encrypted(s.Group) {
		return nil
	}
	r.escrows.forget(s.SiteKey(site))
	if err := r.Escrow.DropToken(ctx, s.Group, site); err != nil {
		return err
	}
	if !dataGoes {
		return nil
	}
	items, err := r.escrowList(ctx, s.Group, site)
	if err != nil {
		return err
	}
	for i := range items {
		uid := items[i].UID
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &items[i], client.Preconditions{UID: &uid})); err != nil {
			return fmt.Errorf("remove %s: %w", items[i].Name, err)
		}
	}
	return nil
}

// KeyringData returns the escrow Secrets of a group, for its finalizer.
func (r *Encryption) KeyringData(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) ([]client.Object, error) {
	if r.Escrow == nil {
		return nil, r.keyringsOutOfReach(group)
	}
	items, err := r.escrowList(ctx, group, "")
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for i := range items {
		out = append(out, &items[i])
	}
	return out, nil
}

// ErrKeyringsOutOfReach means that the operator, installed without its escrow listener, has no right to list Secrets.
var ErrKeyringsOutOfReach = errors.New("the group may have keyrings in escrow, and the operator was installed without its escrow listener, " +
	"so it cannot let go of them: set auxiliary.escrowTLS.enabled in the chart mfg; the deletion continues then")

// keyringsOutOfReach keeps the group if any of its keyrings ever came into escrow: the garbage collector would delete
// what the group owns, and volumes that stay would be useless without their keyrings.
func (r *Encryption) keyringsOutOfReach(group *v1alpha1.MysqlFailoverGroup) error {
	if group.Status.EncryptionAtRest == nil {
		return nil
	}
	if r.Changed(scope.KeyOf(group), string(eventDeletionWaits.Reason), ErrKeyringsOutOfReach.Error()) {
		r.Recorder.Emit(group, nil, eventDeletionWaits, "%s", ErrKeyringsOutOfReach)
	}
	return ErrKeyringsOutOfReach
}
