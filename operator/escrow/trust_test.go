// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// believing has the store give sidecars these authorities.
func (w *world) believing(authorities *string) {
	w.store = New(Options{Client: w.client, Live: w.client, Authorities: func() []byte { return []byte(*authorities) }})
}

// A token comes with what its endpoint is believed by, and follows when that is replaced. The token stays.
func TestTheAuthoritiesLieBesideTheToken(t *testing.T) {
	w, now := newWorld(t), ""
	name := v1alpha1.KeyringTokenSecret(testGroup, "paris")
	if _, is := w.secret(name).Data[v1alpha1.KeyringTokenCA]; is {
		t.Error("authorities of an endpoint whose certificate a person makes")
	}
	w.believing(&now)
	if err := w.store.KeepTrust(t.Context(), w.group, "paris"); !errors.Is(err, errNoAuthority) {
		t.Errorf("without an authority: %v", err)
	}
	if err := w.store.RenewToken(t.Context(), w.group, "lyon", 1); !errors.Is(err, errNoAuthority) {
		t.Errorf("a token that nobody can use: %v", err)
	}
	for _, now = range []string{"first", "first and second", "second"} {
		if err := w.store.KeepTrust(t.Context(), w.group, "paris"); err != nil {
			t.Fatal(err)
		}
		if data := w.secret(name).Data; string(data[v1alpha1.KeyringTokenCA]) != now || string(data[v1alpha1.KeyringTokenKey]) != w.tokens["paris"] {
			t.Errorf("%s: %d keys", now, len(data))
		}
	}
	before := w.secret(name).ResourceVersion
	if err := w.store.KeepTrust(t.Context(), w.group, "paris"); err != nil || w.secret(name).ResourceVersion != before {
		t.Errorf("written for nothing: %v", err)
	}
	if err := w.store.RenewToken(t.Context(), w.group, "lyon", 1); err != nil || string(w.secret(v1alpha1.KeyringTokenSecret(testGroup, "lyon")).Data[v1alpha1.KeyringTokenCA]) != now {
		t.Errorf("a new token: %v", err)
	}
	// A token that is renewed where one is has them too.
	if err := w.store.RenewToken(t.Context(), w.group, "madrid", 2); err != nil || string(w.secret(v1alpha1.KeyringTokenSecret(testGroup, "madrid")).Data[v1alpha1.KeyringTokenCA]) != now {
		t.Errorf("a renewed token: %v", err)
	}
}

func TestTrustIsKeptOnlyWhereAnOwnTokenIs(t *testing.T) {
	w, now := newWorld(t), "authority"
	w.believing(&now)
	if err := w.store.KeepTrust(t.Context(), w.group, "lyon"); err != nil {
		t.Errorf("without a token: %v", err)
	}
	s := w.secret(v1alpha1.KeyringTokenSecret(testGroup, "paris"))
	delete(s.Labels, v1alpha1.LabelManagedBy)
	if err := w.client.Update(t.Context(), s); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if err := w.store.KeepTrust(t.Context(), w.group, "paris"); !errors.Is(err, ErrForeignSecret) {
		t.Errorf("a Secret of somebody else: %v", err)
	}
	if _, is := w.secret(s.Name).Data[v1alpha1.KeyringTokenCA]; is {
		t.Error("it was written")
	}
}
