// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Bounds of names, as in Kubernetes.
const (
	maxNamespace = 63
	maxName      = 253
)

// ErrForeignSecret means that a Secret whose name the operator needs belongs to something else.
var ErrForeignSecret = errors.New("the secret belongs to something else")

// NewToken makes a bearer token. crypto/rand ends the program rather than return less randomness.
func NewToken() string {
	raw := make([]byte, wire.EscrowTokenBytes)
	_, _ = rand.Read(raw)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Authenticate compares the token with that of the site. Whatever is wrong, the answer is the same and takes the same
// call: a stranger does not learn which groups and sites exist. It caches nothing: a token is refused from the moment
// when it is replaced or removed.
func (s *Store) Authenticate(ctx context.Context, push wire.KeyringEscrow, token string) error {
	if !plausible(push) || !wire.IsEscrowToken(token) {
		return wire.ErrUnauthorized
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: push.Namespace, Name: v1alpha1.KeyringTokenSecret(push.Group, push.Site)}
	err := s.live.Get(ctx, key, secret)
	// Forbidden means a namespace that this operator does not manage.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", wire.ErrTokenUnread, err)
	}
	want := secret.Data[v1alpha1.KeyringTokenKey]
	// Two groups can have the same name for this Secret: group a with site b-c, and group a-b with site c.
	usable := err == nil && wire.IsEscrowToken(string(want)) && belongs(secret, push.Group, push.Site)
	given, expected := sha256.Sum256([]byte(token)), sha256.Sum256(want)
	if subtle.ConstantTimeCompare(given[:], expected[:]) != 1 || !usable {
		return wire.ErrUnauthorized
	}
	return nil
}

// plausible is true for names that Kubernetes could have. Other names never get into a request to the API server.
func plausible(push wire.KeyringEscrow) bool {
	return isName(push.Namespace, maxNamespace) && isName(push.Group, maxName) && isName(push.Site, maxName) &&
		len(v1alpha1.KeyringTokenSecret(push.Group, push.Site)) <= maxName
}

func isName(s string, longest int) bool {
	if s == "" || len(s) > longest || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if b := s[i]; (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '-' {
			return false
		}
	}
	return true
}

// belongs is true for an object that the operator made for a site.
func belongs(obj client.Object, group, site string) bool {
	l := obj.GetLabels()
	return l[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByOperator && l[v1alpha1.LabelGroup] == group && l[v1alpha1.LabelSite] == site
}

// RenewToken gives a site a new token for a round, which grows with every unseal: older tokens are refused from now on. A
// second call for the same round changes nothing.
func (s *Store) RenewToken(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, round int64) error {
	secret := &corev1.Secret{ObjectMeta: meta(group, site, v1alpha1.KeyringTokenSecret(group.Name, site), v1alpha1.NameMySQL)}
	secret.Annotations = map[string]string{v1alpha1.AnnotationKeyringRound: strconv.FormatInt(round, 10)}
	secret.Data = map[string][]byte{v1alpha1.KeyringTokenKey: []byte(NewToken())}
	if err := s.trustInto(secret.Data); err != nil {
		return err
	}
	err := s.client.Create(ctx, secret, client.FieldOwner(v1alpha1.ManagerController))
	if !apierrors.IsAlreadyExists(err) {
		return wrap("create escrow token", err)
	}
	old := &corev1.Secret{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(secret), old); err != nil {
		return wrap("read escrow token", err)
	}
	if !belongs(old, group.Name, site) {
		return fmt.Errorf("renew token in %s: %w", old.Name, ErrForeignSecret)
	}
	// A group that was made again has another UID, and its rounds start again.
	owner := metav1.GetControllerOfNoCopy(old)
	if owner != nil && owner.UID == group.UID && wire.IsEscrowToken(string(old.Data[v1alpha1.KeyringTokenKey])) &&
		old.Annotations[v1alpha1.AnnotationKeyringRound] == secret.Annotations[v1alpha1.AnnotationKeyringRound] {
		return nil
	}
	before := old.DeepCopy()
	old.Data, old.OwnerReferences, old.Annotations = secret.Data, secret.OwnerReferences, secret.Annotations
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return wrap("renew escrow token", s.client.Patch(ctx, old, patch, client.FieldOwner(v1alpha1.ManagerController)))
}

// DropToken removes a site's token once the site is sealed.
func (s *Store) DropToken(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error {
	secret, err := s.token(ctx, group, site, "drop token")
	if err != nil || secret == nil {
		return err
	}
	err = s.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	return wrap("drop escrow token", client.IgnoreNotFound(err))
}

// token reads the Secret with a site's token; nil if there is none. Errors name what the caller was doing.
func (s *Store) token(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, doing string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.KeyringTokenSecret(group.Name, site)}
	err := s.live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // see above
	}
	if err != nil {
		return nil, wrap("read escrow token", err)
	}
	if !belongs(secret, group.Name, site) {
		return nil, fmt.Errorf("%s in %s: %w", doing, secret.Name, ErrForeignSecret)
	}
	return secret, nil
}

// meta returns the metadata of a Secret of a site: the labels of every object of the group, and the group as controller.
func meta(group *v1alpha1.MysqlFailoverGroup, site, name, what string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: group.Namespace, Name: name,
		Labels: map[string]string{
			v1alpha1.LabelName: what, v1alpha1.LabelInstance: group.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator,
			v1alpha1.LabelGroup: group.Name, v1alpha1.LabelSite: site,
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(group, v1alpha1.GroupVersion.WithKind(kind))},
	}
}

const kind = "MysqlFailoverGroup"

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
