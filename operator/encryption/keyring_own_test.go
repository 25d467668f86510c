// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// I17: a restored Secret is marked as a version only with the content that was compared. A person may replace it between any two steps,
// and could not correct it once it is immutable.
func TestOnlyTheContentThatWasComparedIsCompletedI17(t *testing.T) {
	restored := func(content string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: "mysql-orders-c-keyring-v1"},
			Data:       map[string][]byte{v1alpha1.KeyringKey: []byte(content)},
		}
	}
	site := keyring.Site{Name: "c", Status: v1alpha1.SiteKeyringStatus{
		Name: "c", KeyringSecret: "mysql-orders-c-keyring-v1", KeyringVersion: 1, KeyringDigest: wire.KeyringDigest([]byte("one")),
	}}
	for name, tt := range map[string]struct {
		// then is what a person does right after the Secret was read for the first time.
		then      func(client.Client)
		completed bool
		conflict  bool
	}{
		"nothing happens": {func(client.Client) {}, true, false},
		"another content is put in its place": {func(c client.Client) {
			_ = c.Delete(t.Context(), restored(""))
			_ = c.Create(t.Context(), restored("another"))
		}, false, true},
		"it is taken away again": {func(c client.Client) { _ = c.Delete(t.Context(), restored("")) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			store, read := fake.NewClientBuilder().WithObjects(restored("one")).Build(), 0
			c := interceptor.NewClient(store, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, obj, opts...)
					if read++; read == 1 {
						tt.then(store)
					}
					return err
				},
			})
			r := &Encryption{Base: &scope.Base{Client: c, Live: c}, Options: Options{Escrow: &recorded{client: c}}}
			err := r.completeRestored(t.Context(), &scope.Scope{Group: scopetest.Group(), Key: scopetest.Key}, site, nil)
			if apierrors.IsConflict(err) != tt.conflict || err != nil && !tt.conflict {
				t.Errorf("I17: %v", err)
			}
			now := &corev1.Secret{}
			err = store.Get(t.Context(), client.ObjectKeyFromObject(restored("")), now)
			if completed := err == nil && now.Immutable != nil; completed != tt.completed || completed && string(now.Data[v1alpha1.KeyringKey]) != "one" {
				t.Errorf("I17: %v: completed %t, labels %v", err, completed, now.Labels)
			}
			if !tt.completed {
				if len(now.Labels) > 0 || len(now.Annotations) > 0 {
					t.Errorf("I17: marked as a version: %+v", now.ObjectMeta)
				}
				return
			}
			want := render.SiteLabels("orders", "c")
			want[v1alpha1.LabelName], want[v1alpha1.LabelKeyringVersion] = v1alpha1.NameKeyring, "1"
			if !maps.Equal(now.Labels, want) || now.Annotations[v1alpha1.AnnotationKeyringDigest] != site.Status.KeyringDigest {
				t.Errorf("I17: %+v", now.ObjectMeta)
			}
		})
	}
}
