// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"errors"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	testPod   = "0a52c1f0-3f0c-4f0e-9f4b-6a1f0d7e2b11"
	testGroup = "orders"
)

var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, admissionv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
})

// world is a store over a cluster in memory, with a group of two sites: paris is unsealed, madrid sealed.
type world struct {
	t      *testing.T
	client client.WithWatch
	store  *Store
	group  *v1alpha1.MysqlFailoverGroup
	tokens map[string]string
	// looksAfter is false while this process knows nothing of the group.
	looksAfter bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, tokens: map[string]string{}, looksAfter: true}
	w.group = &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: testGroup, UID: "group-uid"},
		Status: v1alpha1.MysqlFailoverGroupStatus{EncryptionAtRest: &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
			{Name: "paris", Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringBootstrap},
			{Name: "madrid", Phase: v1alpha1.KeyringSealed, KeyringVersion: 3, KeyringSecret: "mysql-orders-madrid-keyring-v3"},
		}}},
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme()).WithObjects(append(objects, w.group)...).
		WithStatusSubresource(w.group).Build()
	w.use(w.client)
	for _, site := range []string{"paris", "madrid"} {
		if err := w.store.RenewToken(t.Context(), w.group, site, 1); err != nil {
			t.Fatal(err)
		}
		w.tokens[site] = w.token(site)
	}
	return w
}

// use puts the store over another client.
func (w *world) use(c client.Client) {
	w.store = New(Options{Client: c, Live: c, Pods: func(namespace, group, site string) (string, bool) {
		if namespace != "shop" || group != testGroup || site != "paris" {
			return "", w.looksAfter
		}
		return testPod, w.looksAfter
	}})
}

// intercept has the store use the same cluster through hooks.
func (w *world) intercept(funcs interceptor.Funcs) { w.use(interceptor.NewClient(w.client, funcs)) }

// replace has somebody make a Secret again under its name right before the store deletes it. The client in memory knows nothing of
// the UIDs of preconditions, so they are looked at here, as an API server does.
func (w *world) replace(name string) {
	w.intercept(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
		if obj.GetName() != name {
			return c.Delete(ctx, obj, opts...)
		}
		made := w.secret(name)
		if err := c.Delete(ctx, made.DeepCopy()); err != nil {
			return err
		}
		made.UID, made.ResourceVersion = "made anew", ""
		if err := c.Create(ctx, made); err != nil {
			return err
		}
		given := (&client.DeleteOptions{}).ApplyOptions(opts)
		if p := given.Preconditions; p != nil && p.UID != nil && *p.UID != made.UID {
			return apierrors.NewConflict(corev1.Resource("secrets"), name, errors.New("the UID in the precondition is another one"))
		}
		return c.Delete(ctx, made)
	}})
}

func (w *world) token(site string) string {
	w.t.Helper()
	return string(w.secret(v1alpha1.KeyringTokenSecret(testGroup, site)).Data["token"])
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// names are all Secrets that hold keyrings.
func (w *world) names() []string {
	w.t.Helper()
	var list corev1.SecretList
	if err := w.client.List(w.t.Context(), &list, client.InNamespace("shop")); err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, s := range list.Items {
		if len(s.Data["keyring"]) > 0 {
			out = append(out, s.Name)
		}
	}
	return out
}

// status changes the status of a site's keyring.
func (w *world) status(site string, change func(*v1alpha1.SiteKeyringStatus)) {
	w.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.group), g); err != nil {
		w.t.Fatal(err)
	}
	for i := range g.Status.EncryptionAtRest.Sites {
		if s := &g.Status.EncryptionAtRest.Sites[i]; s.Name == site {
			change(s)
		}
	}
	if err := w.client.Status().Update(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(push wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
	return w.store.Put(w.t.Context(), push, w.tokens["paris"])
}

// pushOf is what the sidecar of paris pushes.
func pushOf(content []byte) wire.KeyringEscrow {
	return wire.KeyringEscrow{
		Namespace: "shop", Group: testGroup, Site: "paris", PodUID: testPod, Digest: wire.KeyringDigest(content), Keyring: content,
	}
}

// version is an escrow Secret as the operator makes it.
func version(site string, number int64, content []byte) *corev1.Secret {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: testGroup, UID: "group-uid"}}
	push := pushOf(content)
	push.Site = site
	return secretOf(g, push, number)
}
