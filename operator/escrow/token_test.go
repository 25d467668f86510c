// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

func TestTokenSecretsOfOthersOpenNothing(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"another group of the same name": func(s *corev1.Secret) { s.Labels[v1alpha1.LabelGroup] = "orders-x" },
		"not the operator's":             func(s *corev1.Secret) { delete(s.Labels, v1alpha1.LabelManagedBy) },
		"empty":                          func(s *corev1.Secret) { s.Data = nil },
		"weak":                           func(s *corev1.Secret) { s.Data["token"] = []byte("secret") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.secret(v1alpha1.KeyringTokenSecret(testGroup, "paris"))
			change(s)
			if err := w.client.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			for _, token := range []string{w.tokens["paris"], "secret", ""} {
				if _, err := w.store.Put(t.Context(), pushOf(one("00")), token); !errors.Is(err, wire.ErrUnauthorized) {
					t.Errorf("token of %d bytes: %v", len(token), err)
				}
			}
		})
	}
}

// Two sites are unsealed, and each has a token: that of one opens nothing of the other.
func TestTokensOpenTheirOwnSiteAlone(t *testing.T) {
	w := newWorld(t)
	w.status("madrid", func(s *v1alpha1.SiteKeyringStatus) {
		s.Phase, s.Work = v1alpha1.KeyringUnsealed, v1alpha1.KeyringRotation
	})
	w.store = New(Options{Client: w.client, Live: w.client, Pods: func(_, _, _ string) (string, bool) { return testPod, true }})
	for _, site := range []string{"paris", "madrid"} {
		for _, of := range []string{"madrid", "paris"} {
			p := pushOf(one("00"))
			p.Site = site
			_, err := w.store.Put(t.Context(), p, w.tokens[of])
			if site == of && err != nil || site != of && !errors.Is(err, wire.ErrUnauthorized) {
				t.Errorf("a keyring of %s with the token of %s: %v", site, of, err)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token := NewToken()
		if seen[token] || !wire.IsEscrowToken(token) {
			t.Fatalf("token of %d bytes, twice %v", len(token), seen[token])
		}
		seen[token] = true
	}
	w := newWorld(t)
	if w.tokens["paris"] == w.tokens["madrid"] {
		t.Error("two sites have the same token")
	}
	s := w.secret("mysql-orders-paris-keyring-token")
	if metav1.GetControllerOf(s) == nil || s.Labels[v1alpha1.LabelName] == v1alpha1.NameKeyring {
		t.Errorf("a token is no keyring, and goes with the group: %v %v", s.Labels, s.OwnerReferences)
	}
	s.Labels[v1alpha1.LabelGroup] = "other"
	if err := w.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := w.store.RenewToken(t.Context(), w.group, "paris", 2); !errors.Is(err, ErrForeignSecret) {
		t.Errorf("renew what belongs to another: %v", err)
	}
	if err := w.store.DropToken(t.Context(), w.group, "paris"); !errors.Is(err, ErrForeignSecret) {
		t.Errorf("drop what belongs to another: %v", err)
	}
	for range 2 {
		if err := w.store.DropToken(t.Context(), w.group, "madrid"); err != nil {
			t.Errorf("drop: %v", err)
		}
	}
	if !slices.Equal(w.names(), []string{}) {
		t.Errorf("tokens made keyrings: %v", w.names())
	}
}

// A round is carried out again after a crash of the operator: the pod that has its token by then must keep it.
func TestTokensBelongToARound(t *testing.T) {
	w := newWorld(t)
	again := w.group.DeepCopy()
	again.UID = "another-uid"
	for _, step := range []struct {
		reason string
		group  *v1alpha1.MysqlFailoverGroup
		round  int64
		same   bool
	}{
		{"the same round", w.group, 1, true},
		{"the next round", w.group, 2, false},
		{"the same round", w.group, 2, true},
		{"a group that was made again", again, 2, false},
	} {
		before := w.token("paris")
		if err := w.store.RenewToken(t.Context(), step.group, "paris", step.round); err != nil {
			t.Fatal(err)
		}
		if same := w.token("paris") == before; same != step.same {
			t.Errorf("%s: the same token: %v", step.reason, same)
		}
	}
	s := w.secret("mysql-orders-paris-keyring-token")
	s.Data["token"] = []byte("weak")
	if err := w.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := w.store.RenewToken(t.Context(), again, "paris", 2); err != nil || !wire.IsEscrowToken(w.token("paris")) {
		t.Errorf("a token that was broken is kept: %v", err)
	}
}

// A token that another process made again is not taken away: its pod could not push any more.
func TestOnlyTheTokenThatWasReadIsDropped(t *testing.T) {
	name := v1alpha1.KeyringTokenSecret(testGroup, "madrid")
	w := newWorld(t)
	w.replace(name)
	if err := w.store.DropToken(t.Context(), w.group, "madrid"); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if s := w.secret(name); s.UID != "made anew" {
		t.Errorf("%+v", s.ObjectMeta)
	}
}

// Nor is one overwritten that another process renewed since it was read, for a later round perhaps.
func TestOnlyTheTokenThatWasReadIsRenewed(t *testing.T) {
	w := newWorld(t)
	renewed := NewToken()
	w.intercept(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		s := w.secret(obj.GetName())
		s.Data["token"], s.Annotations[v1alpha1.AnnotationKeyringRound] = []byte(renewed), "3"
		if err := c.Update(ctx, s); err != nil {
			return err
		}
		return c.Patch(ctx, obj, patch, opts...)
	}})
	if err := w.store.RenewToken(t.Context(), w.group, "paris", 2); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if w.token("paris") != renewed {
		t.Error("the token of the later round is gone")
	}
}
