// SPDX-License-Identifier: Apache-2.0

// Package signing keeps the keys that sign statements: for each group one Secret in the namespace of the operator, where nobody who
// works with groups needs any right. The name has the UID of the group, so a group that is made again gets a key of its own.
// docs/decisions/0016 says why. Nothing of a private key is in any message (I11).
package signing

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// ErrIncomplete means that a Secret is there and holds no private key that can be read.
var ErrIncomplete = errors.New("it holds no Ed25519 private key")

// Key is what signs the statements of a group.
type Key struct {
	Private ed25519.PrivateKey
	// Chain leads from the keys before to this one, which is its last.
	Chain wire.Chain
}

// New makes a key that has replaced no other.
func New() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("generate key: %w", err)
	}
	return Key{Private: private}.alone(), nil
}

func (k Key) alone() Key {
	k.Chain = wire.Chain{{Key: k.Public()}}
	return k
}

// Public is what is known of it outside.
func (k Key) Public() ed25519.PublicKey {
	public, _ := k.Private.Public().(ed25519.PublicKey)
	return public
}

// Sign signs a statement, and says in it how the key follows from those before.
func (k Key) Sign(s wire.Statement) (wire.Signed, error) {
	if len(k.Chain) > 1 {
		s.Keys = k.Chain
	}
	return wire.Sign(k.Private, s)
}

// Vouch is the chain that goes on from this key to another.
func (k Key) Vouch(next ed25519.PublicKey) wire.Chain { return k.Chain.Next(k.Private, next) }

// String hides the key from logs and messages.
func (Key) String() string { return "[redacted]" }

// GoString hides it from %#v.
func (k Key) GoString() string { return k.String() }

// Keys reads and writes the Secrets.
type Keys struct {
	// Client writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Namespace is that of the operator.
	Namespace string
}

func (k *Keys) name(uid types.UID) types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: v1alpha1.AuthoritySecret(uid)}
}

// Read returns the key of a group. An error that apierrors.IsNotFound knows means that there is none.
func (k *Keys) Read(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (Key, error) {
	secret := &corev1.Secret{}
	if err := k.Live.Get(ctx, k.name(group.UID), secret); err != nil {
		return Key{}, fmt.Errorf("read the key that signs: %w", err)
	}
	return decode(secret)
}

// Create keeps a key for a group, and returns the one that is kept: another one, if somebody was faster.
func (k *Keys) Create(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, key Key) (Key, error) {
	data, err := encode(key)
	if err != nil {
		return Key{}, err
	}
	name := k.name(group.UID)
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelName: v1alpha1.NameAuthority,
			v1alpha1.LabelKeyOfNamespace: group.Namespace, v1alpha1.LabelKeyOfGroup: group.Name,
		}},
		Type: corev1.SecretTypeOpaque, Data: data,
	}
	if err := k.Client.Create(ctx, secret, client.FieldOwner(v1alpha1.ManagerController)); err != nil && !apierrors.IsAlreadyExists(err) {
		return Key{}, fmt.Errorf("keep the key that signs: %w", err)
	}
	// What is read back is what is there.
	return k.Read(ctx, group)
}

// Link keeps how the key of a group follows from those before, if it still is that one.
func (k *Keys) Link(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, key Key) error {
	secret := &corev1.Secret{}
	if err := k.Live.Get(ctx, k.name(group.UID), secret); err != nil {
		return fmt.Errorf("read the key that signs: %w", err)
	}
	if have, err := decode(secret); err != nil || !have.Private.Equal(key.Private) {
		return err // the next look decides again
	}
	data, err := encode(key)
	if err != nil {
		return err
	}
	before := secret.DeepCopy()
	secret.Data = data
	// The lock keeps a key that came meanwhile from getting the chain of this one.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Patch(ctx, secret, patch, client.FieldOwner(v1alpha1.ManagerController)); err != nil {
		return fmt.Errorf("keep what leads to the key that signs: %w", err)
	}
	return nil
}

// Delete removes the key of a group that is going.
func (k *Keys) Delete(ctx context.Context, uid types.UID) error {
	name := k.name(uid)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := client.IgnoreNotFound(k.Client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete the key that signs: %w", err)
	}
	return nil
}

func encode(key Key) (map[string][]byte, error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key.Private)
	if err != nil {
		return nil, fmt.Errorf("encode the key that signs: %w", err)
	}
	chain, err := json.Marshal(key.Chain)
	if err != nil {
		return nil, fmt.Errorf("encode what leads to the key that signs: %w", err)
	}
	return map[string][]byte{
		v1alpha1.AuthorityPrivateKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		v1alpha1.AuthorityChain:      chain,
	}, nil
}

// decode reads a Secret. A chain that does not lead to the key, as when a person has put another key there, counts as none.
func decode(secret *corev1.Secret) (Key, error) {
	private, err := Parse(secret.Data[v1alpha1.AuthorityPrivateKey])
	if err != nil {
		return Key{}, fmt.Errorf("secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	key := Key{Private: private}
	unreadable := json.Unmarshal(secret.Data[v1alpha1.AuthorityChain], &key.Chain) != nil
	if unreadable || len(key.Chain) == 0 {
		key = key.alone()
	} else if last, ok := key.Chain.Last(key.Chain[0].Key); !ok || !last.Equal(key.Public()) {
		key = key.alone()
	}
	return key, nil
}

// mostText is far more than a key of ours has. One of another kind may take minutes to read, and who may make Secrets beside a group may have
// put it there.
const mostText = 4 << 10

// Parse reads a private key, PEM.
func Parse(text []byte) (ed25519.PrivateKey, error) {
	if len(text) > mostText {
		return nil, ErrIncomplete
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, ErrIncomplete
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, ErrIncomplete // not wrapped: nothing of a key may get into a message (I11)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, ErrIncomplete
	}
	return key, nil
}
