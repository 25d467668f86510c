// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Errors of the store beside the refusals of api/wire.
var (
	// ErrMissing: there is no such version in escrow, or its Secret holds nothing.
	ErrMissing = errors.New("no such keyring in escrow")
	// ErrInUse: the version must not be pruned.
	ErrInUse = errors.New("this version of the keyring is in use")
)

// highestVersion is the highest number that the operator accepts as its own. Another party's Secret with a higher
// number in its name must not make the operator run out of numbers.
const highestVersion = 1_000_000_000

// farthest is how far the number of a version may be above the next lower one, or above 0. The operator's numbers are consecutive,
// but for pruned and skipped ones. Another party put a farther one there: if it counted, there would soon be no number left.
const farthest = 100_000

// Version is one keyring in escrow.
type Version struct {
	Number int64
	Secret string
	// Digest is the one in the annotation; Store.Digest hashes the content.
	Digest string
	// Deleting is true while its Secret is being deleted. Its number is used up all the same.
	Deleting bool
	// Owner is the UID of the group that controls it; empty after that group was deleted and its data kept.
	Owner types.UID
}

// Versions returns the versions in escrow for a site, the newest first, read live and without any content.
func (s *Store) Versions(ctx context.Context, namespace, group, site string) ([]Version, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := s.live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{
		v1alpha1.LabelName: v1alpha1.NameKeyring, v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
		v1alpha1.LabelGroup: group, v1alpha1.LabelSite: site,
	})
	if err != nil {
		return nil, fmt.Errorf("list keyrings in escrow: %w", err)
	}
	var out []Version
	for i := range list.Items {
		item := &list.Items[i]
		number, ok := numberOf(group, site, item.Name)
		if !ok {
			continue
		}
		version := Version{
			Number: number, Secret: item.Name, Digest: item.Annotations[v1alpha1.AnnotationKeyringDigest],
			Deleting: item.DeletionTimestamp != nil,
		}
		if owner := metav1.GetControllerOfNoCopy(item); owner != nil {
			version.Owner = owner.UID
		}
		out = append(out, version)
	}
	slices.SortFunc(out, func(a, b Version) int { return cmp.Compare(b.Number, a.Number) })
	return near(out), nil
}

// near leaves out the versions whose numbers are too far above all lower ones; all has the newest first.
func near(all []Version) []Version {
	below := int64(0)
	for i, v := range slices.Backward(all) {
		if v.Number-below > farthest {
			return all[i+1:]
		}
		below = v.Number
	}
	return all
}

// numberOf reads the number out of a name. Labels can be wrong, names cannot: no two Secrets share one.
func numberOf(group, site, name string) (int64, bool) {
	digits, found := strings.CutPrefix(name, strings.TrimSuffix(v1alpha1.KeyringSecret(group, site, 0), "0"))
	n, _ := strconv.ParseInt(digits, 10, 64) // if it is no number, the comparison below fails
	if !found || n < 1 || n > highestVersion || strconv.FormatInt(n, 10) != digits {
		return 0, false
	}
	return n, true
}

// Digest hashes the content of a Secret in escrow, read live.
func (s *Store) Digest(ctx context.Context, namespace, name string) (string, error) {
	digest, _, err := s.Measure(ctx, namespace, name)
	return digest, err
}

// Measure hashes the content of a Secret in escrow, read live, and says how long it is.
func (s *Store) Measure(ctx context.Context, namespace, name string) (digest string, size int, err error) {
	secret, err := s.read(ctx, namespace, name)
	if err != nil {
		return "", 0, err
	}
	content := secret.Data[v1alpha1.KeyringKey]
	return wire.KeyringDigest(content), len(content), nil
}

func (s *Store) read(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %s", ErrMissing, name)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(secret.Data[v1alpha1.KeyringKey]) == 0:
		return nil, fmt.Errorf("%w: %s has no %q", ErrMissing, name, v1alpha1.KeyringKey)
	}
	return secret, nil
}

// Prune deletes one version, named by its Secret. Its caller decides which ones are superfluous, but Prune always refuses to delete the
// version that the site is sealed with, by status, by its Deployment or by any of its pods, any newer than that, the one that the site is
// unsealed from (I17), and the newest one, because its number would be used again.
func (s *Store) Prune(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, name string) error {
	versions, err := s.Versions(ctx, group.Namespace, group.Name, site)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(versions, func(v Version) bool { return v.Secret == name })
	if at < 0 {
		return nil
	}
	if at == 0 {
		return fmt.Errorf("prune %s: it is the newest: %w", name, ErrInUse)
	}
	if err := s.unused(ctx, group, site, name); err != nil {
		return fmt.Errorf("prune %s: %w", name, err)
	}
	secret := &corev1.Secret{}
	if err := s.live.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: name}, secret); err != nil {
		return wrap("prune "+name, client.IgnoreNotFound(err))
	}
	return wrap("prune "+name, client.IgnoreNotFound(s.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})))
}

// unused returns nil if nothing live refers to a version. A version whose users cannot be read counts as in use.
func (s *Store) unused(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, name string) error {
	now := &v1alpha1.MysqlFailoverGroup{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(group), now); err != nil {
		return fmt.Errorf("read group: %w", err)
	}
	status, _ := statusOf(now, site)
	number, _ := numberOf(group.Name, site, name)
	switch {
	case status.KeyringSecret == name:
		return fmt.Errorf("status names it: %w", ErrInUse)
	case status.KeyringVersion > 0 && number > status.KeyringVersion:
		// The caller decided from a cache, before a person rolled the site back: the site can be rolled forward to this version.
		return fmt.Errorf("it is newer than the one that status names: %w", ErrInUse)
	case status.SeedVersion > 0 && number == status.SeedVersion:
		return fmt.Errorf("the site is unsealed from it: %w", ErrInUse)
	}
	deployment := &appsv1.Deployment{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.SiteName(group.Name, site)}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read deployment: %w", err)
	}
	if mounts(deployment.Spec.Template.Spec, name) {
		return fmt.Errorf("the deployment mounts it: %w", ErrInUse)
	}
	var pods corev1.PodList
	err = s.live.List(ctx, &pods, client.InNamespace(group.Namespace), client.MatchingLabels{
		v1alpha1.LabelGroup: group.Name, v1alpha1.LabelSite: site,
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		if mounts(pods.Items[i].Spec, name) {
			return fmt.Errorf("pod %s mounts it: %w", pods.Items[i].Name, ErrInUse)
		}
	}
	return nil
}

// mounts is true if a pod has a Secret as a volume, alone or among others.
func mounts(spec corev1.PodSpec, secret string) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		if v.Secret != nil && v.Secret.SecretName == secret {
			return true
		}
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
			return p.Secret != nil && p.Secret.Name == secret
		})
	})
}
