// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	// maxTries bounds how often Put chooses another number because one was taken.
	maxTries = 8
	// maxVersions bounds how much one site can put into the API server's store.
	maxVersions = wire.MaxKeyringVersions
)

// Pods says which pod the operator takes for a site's; known is false while this process does not manage the group.
type Pods func(namespace, group, site string) (uid string, known bool)

// Options holds what a Store is made of.
type Options struct {
	// Client writes. Live reads past every cache: decisions about keys must not rest on old data.
	Client client.Client
	Live   client.Reader
	// Pods is used by Put alone.
	Pods Pods
	// Authorities returns those of the endpoint's certificate (PEM) if the operator makes it, nil before it has; it is nil if the operator does not.
	Authorities func() []byte
	// Log gets what hinders the store; nil drops it.
	Log *slog.Logger
}

// Store keeps the keyrings of all groups. It is safe for concurrent use, also across processes: a number belongs to the
// process that creates its Secret first.
type Store struct {
	client client.Client
	live   client.Reader
	pods   Pods
	log    *slog.Logger

	authorities func() []byte
}

// New makes a store.
func New(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{client: o.Client, live: o.Live, pods: o.Pods, log: o.Log, authorities: o.Authorities}
}

// Put takes a keyring into escrow if the token is the site's, the site is unsealed and the pod is its own. It returns
// the version of the keyring. Refusals are errors of api/wire. If the same content is pushed again, Put returns the
// version that it has.
func (s *Store) Put(ctx context.Context, push wire.KeyringEscrow, token string) (wire.KeyringEscrowed, error) {
	// First of all: all answers below are only for a client that holds the token.
	if err := s.Authenticate(ctx, push, token); err != nil {
		return wire.KeyringEscrowed{}, err
	}
	if err := checkContent(push); err != nil {
		return wire.KeyringEscrowed{}, err
	}
	group, err := s.unsealed(ctx, push)
	if err != nil {
		return wire.KeyringEscrowed{}, err
	}
	uid, known := s.pods(push.Namespace, push.Group, push.Site)
	switch {
	case !known:
		// Another process may know; a keyring whose pod this process cannot confirm is not taken.
		return wire.KeyringEscrowed{}, wire.ErrNotLeading
	case uid == "" || uid != push.PodUID:
		// A replaced pod holds a keyring that fits no site's data any more.
		return wire.KeyringEscrowed{}, wire.ErrOtherPod
	}
	return s.keep(ctx, group, push)
}

// unsealed returns the group if its live status says that the keyring of the site is unsealed.
func (s *Store) unsealed(ctx context.Context, push wire.KeyringEscrow) (*v1alpha1.MysqlFailoverGroup, error) {
	group := &v1alpha1.MysqlFailoverGroup{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: push.Namespace, Name: push.Group}, group)
	if apierrors.IsNotFound(err) {
		// A token that outlived its group gives access to nothing.
		return nil, wire.ErrNotUnsealed
	}
	if err != nil {
		return nil, fmt.Errorf("read group: %w", err)
	}
	status, ok := statusOf(group, push.Site)
	if !ok {
		return nil, wire.ErrNotUnsealed
	}
	switch status.Phase {
	case v1alpha1.KeyringUnsealed, v1alpha1.KeyringEscrowed:
		return group, nil
	case v1alpha1.KeyringFailed:
		// If it failed because no keyring came into escrow, it is still unsealed and keeps trying. If its Secret is gone, it
		// is sealed or about to be: a person restores its keyring, and nothing may pass for it meanwhile.
		if status.Work != "" && status.Stage != v1alpha1.KeyringSealing {
			return group, nil
		}
	case v1alpha1.KeyringPending, v1alpha1.KeyringSealed:
		// MySQL cannot have written this keyring: it is a replay, or worse.
	}
	return nil, wire.ErrNotUnsealed
}

func statusOf(group *v1alpha1.MysqlFailoverGroup, site string) (v1alpha1.SiteKeyringStatus, bool) {
	if group.Status.EncryptionAtRest == nil {
		return v1alpha1.SiteKeyringStatus{}, false
	}
	for _, s := range group.Status.EncryptionAtRest.Sites {
		if s.Name == site {
			return s, true
		}
	}
	return v1alpha1.SiteKeyringStatus{}, false
}

// keep stores a keyring as the next version, unless the newest version is already the same.
func (s *Store) keep(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, push wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
	status, _ := statusOf(group, push.Site)
	// A number is never used again, even if its Secret was deleted: every version that status names has existed.
	used := max(status.KeyringVersion, status.FloorVersion, status.SeedVersion, status.RotatedVersion)
	for range maxTries {
		versions, err := s.Versions(ctx, push.Namespace, push.Group, push.Site)
		if err != nil {
			return wire.KeyringEscrowed{}, err
		}
		if len(versions) > 0 {
			used = max(used, versions[0].Number)
			if s.holds(ctx, push, versions[0]) {
				return wire.KeyringEscrowed{Secret: versions[0].Secret, Version: versions[0].Number, Digest: push.Digest}, nil
			}
		}
		if len(versions) >= maxVersions || used >= highestVersion {
			return wire.KeyringEscrowed{}, wire.ErrTooManyVersions
		}
		secret := secretOf(group, push, used+1)
		err = s.client.Create(ctx, secret, client.FieldOwner(v1alpha1.ManagerController))
		if apierrors.IsAlreadyExists(err) {
			// Another push was faster, perhaps with the same content. Or a Secret without the labels has the name, and the list
			// does not show it: then the number is used up, and so are all that follow it without a gap.
			if used, err = s.taken(ctx, push, used+1); err != nil {
				return wire.KeyringEscrowed{}, err
			}
			continue
		}
		if err != nil {
			return wire.KeyringEscrowed{}, fmt.Errorf("create %s: %w", secret.Name, err)
		}
		return s.confirm(ctx, push, secret)
	}
	return wire.KeyringEscrowed{}, fmt.Errorf("find a number for the keyring of %s/%s/%s: all of %d were taken",
		push.Namespace, push.Group, push.Site, maxTries)
}

// taken returns the last number of the unbroken run from first on whose names belong to Secrets, whatever those are. Someone may have
// made dozens of them in advance: they keep no keyring out, and none of their content passes for ours.
func (s *Store) taken(ctx context.Context, push wire.KeyringEscrow, first int64) (int64, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := s.live.List(ctx, list, client.InNamespace(push.Namespace)); err != nil {
		return 0, fmt.Errorf("list names of secrets: %w", err)
	}
	names := map[int64]bool{first: true}
	for i := range list.Items {
		if number, ok := numberOf(push.Group, push.Site, list.Items[i].Name); ok {
			names[number] = true
		}
	}
	last := first
	for names[last+1] {
		last++
	}
	s.log.Warn("names of the next versions of a keyring are taken; they are passed by", "namespace", push.Namespace,
		"first", v1alpha1.KeyringSecret(push.Group, push.Site, first), "last", v1alpha1.KeyringSecret(push.Group, push.Site, last))
	return last, nil
}

// holds is true if a version durably holds the pushed content.
func (s *Store) holds(ctx context.Context, push wire.KeyringEscrow, v Version) bool {
	secret, err := s.read(ctx, push.Namespace, v.Secret)
	// A Secret that cannot be read, can change or is being deleted does not count: another version costs nothing.
	return err == nil && isKept(secret, push.Digest)
}

// isKept is true for a Secret whose content has that digest and will stay.
func isKept(secret *corev1.Secret, digest string) bool {
	return secret.DeletionTimestamp == nil && secret.Immutable != nil && *secret.Immutable &&
		wire.KeyringDigest(secret.Data[v1alpha1.KeyringKey]) == digest
}

// confirm reads back what was stored and hashes it again: only what the API server returns is in escrow.
func (s *Store) confirm(ctx context.Context, push wire.KeyringEscrow, made *corev1.Secret) (wire.KeyringEscrowed, error) {
	secret, err := s.read(ctx, made.Namespace, made.Name)
	if err != nil {
		return wire.KeyringEscrowed{}, fmt.Errorf("read back: %w", err)
	}
	if secret.UID != made.UID || !isKept(secret, push.Digest) {
		return wire.KeyringEscrowed{}, fmt.Errorf("read back %s: it is not what was stored", made.Name)
	}
	number, _ := numberOf(push.Group, push.Site, made.Name)
	return wire.KeyringEscrowed{Secret: made.Name, Version: number, Digest: push.Digest}, nil
}

// secretOf makes the Secret of one version, as the specification's disaster recovery table describes it.
func secretOf(group *v1alpha1.MysqlFailoverGroup, push wire.KeyringEscrow, number int64) *corev1.Secret {
	m := meta(group, push.Site, v1alpha1.KeyringSecret(push.Group, push.Site, number), v1alpha1.NameKeyring)
	m.Labels[v1alpha1.LabelKeyringVersion] = strconv.FormatInt(number, 10)
	m.Annotations = map[string]string{v1alpha1.AnnotationKeyringDigest: push.Digest}
	if group.DeletionTimestamp != nil && group.Spec.DeletionPolicy != v1alpha1.DeletionDelete {
		// The data stays and needs its keys: no Secret made now may go with the group.
		m.OwnerReferences = nil
	}
	return &corev1.Secret{
		ObjectMeta: m, Type: corev1.SecretTypeOpaque, Immutable: new(true),
		Data: map[string][]byte{v1alpha1.KeyringKey: push.Keyring},
	}
}
