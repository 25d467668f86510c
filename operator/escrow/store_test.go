// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

func TestPutStoresOneImmutableVersion(t *testing.T) {
	w := newWorld(t)
	content := realKeyring(t)
	got, err := w.put(pushOf(content))
	if err != nil {
		t.Fatal(err)
	}
	name := "mysql-orders-paris-keyring-v1"
	if diff := cmp.Diff(wire.KeyringEscrowed{Secret: name, Version: 1, Digest: wire.KeyringDigest(content)}, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	s := w.secret(name)
	if string(s.Data["keyring"]) != string(content) || len(s.Data) != 1 || s.Immutable == nil || !*s.Immutable {
		t.Error("the Secret does not hold the keyring for good")
	}
	labels := map[string]string{
		"app.kubernetes.io/name": "mysql-keyring", "app.kubernetes.io/instance": "orders", "app.kubernetes.io/managed-by": "operator",
		"mysql-mfg.io/failover-group": "orders", "mysql-mfg.io/site": "paris", "mysql-mfg.io/keyring-version": "1",
	}
	if diff := cmp.Diff(labels, s.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"mysql-mfg.io/keyring-digest": got.Digest}, s.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(s); owner == nil || owner.UID != "group-uid" || owner.Kind != "MysqlFailoverGroup" {
		t.Errorf("owner %+v", owner)
	}
	if digest, err := w.store.Digest(t.Context(), "shop", name); err != nil || digest != got.Digest {
		t.Errorf("digest of what is stored: %s, %v", digest, err)
	}
}

func TestPutRefuses(t *testing.T) {
	with := func(change func(*wire.KeyringEscrow)) wire.KeyringEscrow {
		p := pushOf(one("00"))
		change(&p)
		return p
	}
	phase := func(p v1alpha1.KeyringPhase, work v1alpha1.KeyringWork) func(*world) {
		return func(w *world) {
			w.status("paris", func(s *v1alpha1.SiteKeyringStatus) { s.Phase, s.Work = p, work })
		}
	}
	other := NewToken()
	tests := map[string]struct {
		reason string
		push   wire.KeyringEscrow
		token  string // the site's if empty
		before func(*world)
		want   error
	}{
		"WrongToken":     {reason: "a stranger", token: other, want: wire.ErrUnauthorized},
		"EmptyToken":     {reason: "no token", token: " ", want: wire.ErrUnauthorized},
		"ShortToken":     {reason: "part of the token", token: other[:len(other)-1], want: wire.ErrUnauthorized},
		"TokenOfAnother": {reason: "madrid has a token of its own", push: with(func(p *wire.KeyringEscrow) { p.Site = "madrid" }), want: wire.ErrUnauthorized},
		"StaleToken": {reason: "renewed at every unseal", before: func(w *world) {
			if err := w.store.RenewToken(w.t.Context(), w.group, "paris", 2); err != nil {
				w.t.Fatal(err)
			}
		}, want: wire.ErrUnauthorized},
		"DroppedToken": {reason: "taken away when sealed", before: func(w *world) {
			if err := w.store.DropToken(w.t.Context(), w.group, "paris"); err != nil {
				w.t.Fatal(err)
			}
		}, want: wire.ErrUnauthorized},
		"UnknownSite":      {reason: "as a wrong token", push: with(func(p *wire.KeyringEscrow) { p.Site = "rome" }), want: wire.ErrUnauthorized},
		"UnknownGroup":     {reason: "as a wrong token", push: with(func(p *wire.KeyringEscrow) { p.Group = "billing" }), want: wire.ErrUnauthorized},
		"UnknownNamespace": {reason: "as a wrong token", push: with(func(p *wire.KeyringEscrow) { p.Namespace = "other" }), want: wire.ErrUnauthorized},
		"NoName":           {reason: "as a wrong token", push: with(func(p *wire.KeyringEscrow) { p.Site = "" }), want: wire.ErrUnauthorized},
		"PathAsName":       {reason: "never part of a request", push: with(func(p *wire.KeyringEscrow) { p.Group = "../x" }), want: wire.ErrUnauthorized},
		"LongName":         {reason: "never part of a request", push: with(func(p *wire.KeyringEscrow) { p.Site = strings.Repeat("a", 254) }), want: wire.ErrUnauthorized},
		"WrongDigest":      {push: with(func(p *wire.KeyringEscrow) { p.Digest = wire.KeyringDigest([]byte("x")) }), want: wire.ErrDigestMismatch},
		"NoDigest":         {push: with(func(p *wire.KeyringEscrow) { p.Digest = "" }), want: wire.ErrDigestMismatch},
		"NotAKeyring":      {push: pushOf([]byte("hello")), want: wire.ErrNotAKeyring},
		"EmptyKeyring":     {push: pushOf([]byte(`{"version":"1.0","elements":[]}`)), want: wire.ErrNotAKeyring},
		"OtherPod":         {push: with(func(p *wire.KeyringEscrow) { p.PodUID = "x" }), want: wire.ErrOtherPod},
		"NoPod":            {push: with(func(p *wire.KeyringEscrow) { p.PodUID = "" }), want: wire.ErrOtherPod},
		"NotLookedAfter":   {before: func(w *world) { w.looksAfter = false }, want: wire.ErrNotLeading},
		"Sealed":           {reason: "a replay", before: phase(v1alpha1.KeyringSealed, ""), want: wire.ErrNotUnsealed},
		"Pending":          {reason: "not unsealed yet", before: phase(v1alpha1.KeyringPending, v1alpha1.KeyringRotation), want: wire.ErrNotUnsealed},
		"FailedSealed":     {reason: "its Secret was lost", before: phase(v1alpha1.KeyringFailed, ""), want: wire.ErrNotUnsealed},
		"NoPhase":          {reason: "not encrypted", before: phase("", ""), want: wire.ErrNotUnsealed},
		"NoStatus":         {reason: "the site left", before: func(w *world) { w.status("paris", func(s *v1alpha1.SiteKeyringStatus) { s.Name = "rome" }) }, want: wire.ErrNotUnsealed},
		"NoGroup": {reason: "the token outlived the group", before: func(w *world) {
			if err := w.client.Delete(w.t.Context(), w.group.DeepCopy()); err != nil {
				w.t.Fatal(err)
			}
		}, want: wire.ErrNotUnsealed},
		"FailedSealing": {reason: "its Secret was lost while it was being sealed", before: func(w *world) {
			w.status("paris", func(s *v1alpha1.SiteKeyringStatus) {
				s.Phase, s.Work, s.Stage = v1alpha1.KeyringFailed, v1alpha1.KeyringClone, v1alpha1.KeyringSealing
			})
		}, want: wire.ErrNotUnsealed},
		"Sealing": {reason: "its pod is unsealed until it is replaced", before: func(w *world) {
			w.status("paris", func(s *v1alpha1.SiteKeyringStatus) {
				s.Phase, s.Stage = v1alpha1.KeyringEscrowed, v1alpha1.KeyringSealing
			})
		}},
		"Unsealed":       {before: phase(v1alpha1.KeyringUnsealed, v1alpha1.KeyringClone)},
		"Escrowed":       {reason: "MySQL may write again before it is sealed", before: phase(v1alpha1.KeyringEscrowed, v1alpha1.KeyringClone)},
		"FailedUnsealed": {reason: "it keeps trying", before: phase(v1alpha1.KeyringFailed, v1alpha1.KeyringClone)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			push, token := tc.push, w.tokens["paris"]
			if push.Digest == "" && push.Keyring == nil {
				push = pushOf(one("00"))
			}
			if tc.token != "" {
				token = tc.token
			}
			if tc.before != nil {
				tc.before(w)
			}
			_, err := w.store.Put(t.Context(), push, token)
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, err, tc.want)
			}
			if stored := w.names(); (len(stored) == 0) != (tc.want != nil) {
				t.Errorf("%s: stored %v", tc.reason, stored)
			}
			// I11: key bytes and tokens are in no error.
			if err != nil && (strings.Contains(err.Error(), token) && token != " " || strings.Contains(err.Error(), "INNODB")) {
				t.Errorf("%q tells too much", err)
			}
		})
	}
}

// I12: while no pod of the site is known, nothing passes for it, least of all a push that names none.
func TestNoPodIsKnownI12(t *testing.T) {
	w := newWorld(t)
	w.store.pods = func(_, _, _ string) (string, bool) { return "", true }
	for _, uid := range []string{"", testPod} {
		push := pushOf(one("00"))
		push.PodUID = uid
		if got, err := w.put(push); !errors.Is(err, wire.ErrOtherPod) || len(w.names()) > 0 {
			t.Errorf("I12: from pod %q: %+v, %v; stored %v", uid, got, err, w.names())
		}
	}
}

// A stranger learns nothing from how much is asked of the API server: a known site with a wrong token costs what an
// unknown one costs.
func TestStrangersCannotTellSitesFromNothing(t *testing.T) {
	for name, push := range map[string]wire.KeyringEscrow{
		"known":   pushOf(one("00")),
		"unknown": {Namespace: "shop", Group: "billing", Site: "rome", PodUID: testPod, Digest: wire.KeyringDigest(one("00")), Keyring: one("00")},
		"damaged": {Namespace: "shop", Group: testGroup, Site: "paris", Keyring: one("00")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var calls []string
			w.intercept(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					calls = append(calls, fmt.Sprintf("get %T", obj))
					return c.Get(ctx, key, obj, opts...)
				},
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					calls = append(calls, "list")
					return nil
				},
			})
			_, err := w.store.Put(t.Context(), push, NewToken())
			if !errors.Is(err, wire.ErrUnauthorized) || err.Error() != wire.ErrUnauthorized.Error() {
				t.Errorf("refused with %v", err)
			}
			if diff := cmp.Diff([]string{"get *v1.Secret"}, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// In a namespace that the operator does not look after it may read nothing; that is no news for a stranger either.
func TestForbiddenIsUnauthorized(t *testing.T) {
	w := newWorld(t)
	w.intercept(interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, errors.New("not in your role"))
	}})
	if _, err := w.put(pushOf(one("00"))); !errors.Is(err, wire.ErrUnauthorized) {
		t.Errorf("refused with %v", err)
	}
}
