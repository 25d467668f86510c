// SPDX-License-Identifier: Apache-2.0

package signing_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/signing"
)

const own = "mfg-system"

func group(namespace, name, uid string) *v1alpha1.MysqlFailoverGroup {
	return &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
}

func newKeys(t *testing.T, groups ...client.Object) (*signing.Keys, client.WithWatch) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(groups...).Build()
	return &signing.Keys{Client: c, Live: c, Namespace: own}, c
}

func create(t *testing.T, keys *signing.Keys, g *v1alpha1.MysqlFailoverGroup) signing.Key {
	t.Helper()
	key, err := signing.New()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := keys.Create(t.Context(), g, key)
	if err != nil || !kept.Private.Equal(key.Private) {
		t.Fatalf("kept another one: %v", err)
	}
	return kept
}

func has(t *testing.T, keys *signing.Keys, g *v1alpha1.MysqlFailoverGroup) bool {
	t.Helper()
	_, err := keys.Read(t.Context(), g)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestAKeyIsKeptOnceAndHidden(t *testing.T) {
	g := group("shop", "orders", "u1")
	keys, _ := newKeys(t)
	if has(t, keys, g) {
		t.Fatal("there is one already")
	}
	key := create(t, keys, g)
	other, err := signing.New()
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := keys.Create(t.Context(), g, other); err != nil || !kept.Private.Equal(key.Private) {
		t.Errorf("a key was replaced by one that came later: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", key, key, key, key); strings.Trim(text, " ") != strings.TrimSpace(strings.Repeat("[redacted] ", 4)) {
		t.Errorf("I11: it prints as %s", text)
	}
	// The chain of another key is not put beside the one that is there.
	other.Chain = key.Vouch(other.Public())
	if err := keys.Link(t.Context(), g, other); err != nil {
		t.Error(err)
	}
	if kept, err := keys.Read(t.Context(), g); err != nil || len(kept.Chain) != 1 {
		t.Errorf("a chain of %d keys, %v", len(kept.Chain), err)
	}
	// One that replaced another says so in what it signs.
	if err := errors.Join(keys.Delete(t.Context(), g.UID), keys.Delete(t.Context(), g.UID)); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Create(t.Context(), g, other); err != nil {
		t.Fatal(err)
	}
	kept, err := keys.Read(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := kept.Sign(wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: "a", Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, by, err := wire.VerifyBy(key.Public(), signed); err != nil || !by.Equal(other.Public()) {
		t.Errorf("who trusts the former key does not take it: %v", err)
	}
}

// TestOnlyKeysOfGroupsThatAreGoneAreCollectedI4: without its key a group can renew no lease, and in time no site is open.
func TestOnlyKeysOfGroupsThatAreGoneAreCollectedI4(t *testing.T) {
	alive, gone, again := group("shop", "orders", "alive"), group("shop", "billing", "gone"), group("shop", "billing", "again")
	elsewhere := group("other", "orders", "elsewhere")
	for name, tc := range map[string]struct {
		namespaces []string
		broken     func(obj client.ObjectList) error
		want       map[string]bool
	}{
		"all namespaces":           {nil, nil, map[string]bool{"alive": true, "again": true}},
		"one of them":              {[]string{"shop"}, nil, map[string]bool{"alive": true, "again": true, "elsewhere": true}},
		"groups cannot be listed":  {nil, brokenFor[*v1alpha1.MysqlFailoverGroupList], map[string]bool{"alive": true, "gone": true, "again": true, "elsewhere": true}},
		"secrets cannot be listed": {nil, brokenFor[*corev1.SecretList], map[string]bool{"alive": true, "gone": true, "again": true, "elsewhere": true}},
	} {
		t.Run(name, func(t *testing.T) {
			keys, c := newKeys(t, alive.DeepCopy(), again.DeepCopy(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "mfg-authority-notes"}})
			for _, g := range []*v1alpha1.MysqlFailoverGroup{alive, gone, again, elsewhere} {
				create(t, keys, g)
			}
			keys.Live = interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if tc.broken != nil {
					if err := tc.broken(list); err != nil {
						return err
					}
				}
				return c.List(ctx, list, opts...)
			}})
			err := signing.Collector{Keys: keys, Namespaces: tc.namespaces, Log: slog.New(slog.DiscardHandler)}.Collect(t.Context())
			if (err != nil) != (tc.broken != nil) {
				t.Errorf("error %v", err)
			}
			for _, g := range []*v1alpha1.MysqlFailoverGroup{alive, gone, again, elsewhere} {
				if got := has(t, keys, g); got != tc.want[string(g.UID)] {
					t.Errorf("I4: the key of %s is there: %t, want %t", g.UID, got, tc.want[string(g.UID)])
				}
			}
			if err := c.Get(t.Context(), types.NamespacedName{Namespace: own, Name: "mfg-authority-notes"}, &corev1.Secret{}); err != nil {
				t.Errorf("a Secret that is no key: %v", err)
			}
		})
	}
}

// brokenFor fails lists of one kind.
func brokenFor[L client.ObjectList](list client.ObjectList) error {
	if _, is := list.(L); is {
		return errors.New("away")
	}
	return nil
}

// TestNoKeyIsReadThatTakesMinutes: who may make Secrets beside a group may put one of RSA under the name of the former key, as long as a Secret holds.
func TestNoKeyIsReadThatTakesMinutes(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	if got, err := signing.Parse(text); err != nil || !got.Equal(private) {
		t.Errorf("our own: %v", err)
	}
	if _, err := signing.Parse(append(text, bytes.Repeat([]byte("\n"), 8<<10)...)); !errors.Is(err, signing.ErrIncomplete) {
		t.Errorf("a file that is too long is read: %v", err)
	}
}
