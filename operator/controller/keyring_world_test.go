// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// vault is the store of keyrings, over the API server of the test.
type vault struct{ c client.Client }

func (v vault) Versions(ctx context.Context, ns, group, site string) ([]keyring.Version, error) {
	var list corev1.SecretList
	if err := v.c.List(ctx, &list, client.InNamespace(ns), client.MatchingLabels{
		v1alpha1.LabelName: v1alpha1.NameKeyring, v1alpha1.LabelGroup: group, v1alpha1.LabelSite: site,
	}); err != nil {
		return nil, err
	}
	var out []keyring.Version
	for _, s := range list.Items {
		var number int64
		if _, err := fmt.Sscan(s.Labels[v1alpha1.LabelKeyringVersion], &number); err != nil {
			return nil, err
		}
		out = append(out, keyring.Version{Name: s.Name, Number: number,
			Digest: wire.KeyringDigest(s.Data[v1alpha1.KeyringKey]), Annotated: s.Annotations[v1alpha1.AnnotationKeyringDigest]})
	}
	return out, nil
}

func (v vault) Digest(ctx context.Context, ns, name string) (string, error) {
	var s corev1.Secret
	if err := v.c.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &s); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return wire.KeyringDigest(s.Data[v1alpha1.KeyringKey]), nil
}

func (v vault) Prune(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, _, name string) error {
	return v.c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: name}})
}

func (v vault) RenewToken(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, site string, round int64) error {
	if err := v.DropToken(ctx, g, site); err != nil {
		return err
	}
	return v.c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.Namespace, Name: v1alpha1.KeyringTokenSecret(g.Name, site),
		Annotations:     map[string]string{v1alpha1.AnnotationKeyringRound: fmt.Sprint(round)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g, v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))},
	}})
}

func (v vault) DropToken(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, site string) error {
	return client.IgnoreNotFound(v.c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.Namespace, Name: v1alpha1.KeyringTokenSecret(g.Name, site),
	}}))
}

// encryptedWorld is a world with a group that is to be encrypted.
func encryptedWorld(t *testing.T, options ...scopetest.Option) *world {
	t.Helper()
	w := newWorld(t, scopetest.Group(append(options, scopetest.WithEncryption)...))
	w.r.encryption.Escrow, w.r.encryption.EscrowURL, w.r.Install.EscrowURL = vault{w.c}, "https://operator:8443", "https://operator:8443"
	return w
}

// secret is the escrow Secret of a version.
func secret(site string, number int64, content string) *corev1.Secret {
	labels := render.SiteLabels(scopetest.Key.Name, site)
	labels[v1alpha1.LabelName], labels[v1alpha1.LabelKeyringVersion] = v1alpha1.NameKeyring, fmt.Sprint(number)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: scopetest.Key.Namespace, Name: v1alpha1.KeyringSecret(scopetest.Key.Name, site, number), Labels: labels,
			Annotations:     map[string]string{v1alpha1.AnnotationKeyringDigest: wire.KeyringDigest([]byte(content))},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(scopetest.Group(), v1alpha1.GroupVersion.WithKind("MysqlFailoverGroup"))},
		},
		Data: map[string][]byte{v1alpha1.KeyringKey: []byte(content)}, Immutable: new(true),
	}
}

// push is what a sidecar has the operator store.
func (w *world) push(site string, number int64, content string) {
	w.t.Helper()
	w.must(w.c.Create(w.ctx, secret(site, number, content)))
	w.escrowSeen()
}

// escrowSeen is what the watch of escrow Secrets does.
func (w *world) escrowSeen() {
	for _, site := range []string{"a", "b", "c"} {
		w.r.encryption.GroupOfKeyring(w.ctx, secret(site, 1, ""))
	}
}

// boot starts the pods of sites, with what their sidecars say of the keyring: sealed ones what they have mounted, others
// what is given.
func (w *world) boot(live string, sites ...string) {
	w.t.Helper()
	w.settle(sites...)
	for _, site := range sites {
		var d appsv1.Deployment
		w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site))
		look := encryption.RenderedAs(scopetest.Key.Name, site, d.Spec.Template.Spec)
		if !look.Keyring {
			continue
		}
		digest := wire.KeyringDigest([]byte(live))
		if look.Sealed {
			var s corev1.Secret
			w.get(&s, look.Secret)
			digest = wire.KeyringDigest(s.Data[v1alpha1.KeyringKey])
		}
		w.live(site, func(k *wire.KeyringReport) {
			*k = wire.KeyringReport{
				Sealed: look.Sealed, ReadOnly: look.Sealed, MountReadOnly: look.Sealed, Component: "component_keyring_file", Active: true,
				DataFile: "/run/mysql-keyring/keyring", Digest: digest, Keys: 3,
				Coverage: &wire.CoverageReport{SystemTablespace: true, RedoLog: true, UndoLog: true, BinaryLog: true},
			}
		})
	}
	w.calm()
}

// live changes what a sidecar says of its keyring.
func (w *world) live(site string, change func(*wire.KeyringReport)) {
	g, _ := w.facts.Sites("", "")
	f := g.Sites[site]
	k := wire.KeyringReport{}
	if f.Keyring != nil {
		k = *f.Keyring
	}
	change(&k)
	f.Keyring, f.ReportedAt = &k, time.Now()
	w.facts.Set(site, f)
}

// calm lets time pass in which nothing changes, and after which the sidecars say so.
func (w *world) calm() { w.r.encryption.Age(0, time.Minute) }

// later lets time pass in which nobody hears of the sidecars: the reports grow older too.
func (w *world) later(d time.Duration) {
	w.r.encryption.Age(0, d)
	g, _ := w.facts.Sites("", "")
	for site, f := range g.Sites {
		f.ReportedAt = f.ReportedAt.Add(-d)
		w.facts.Set(site, f)
	}
}

// settled reconciles twice with a pause: keyrings are sealed once they stood still.
func (w *world) rest() {
	w.t.Helper()
	w.reconcile()
	w.calm()
	w.reconcile()
}

// data has all sites hold the group's data.
func (w *world) data(sites ...string) {
	w.t.Helper()
	status := applyv1alpha1.MysqlFailoverGroupStatus()
	for _, s := range w.group().Spec.Sites {
		status.WithSites(siteApply(v1alpha1.SiteStatus{Name: s.Name, Provisioned: slices.Contains(sites, s.Name)}))
	}
	config := applyv1alpha1.MysqlFailoverGroup(scopetest.Key.Name, scopetest.Key.Namespace).WithStatus(status)
	w.must(w.c.Status().Apply(w.ctx, config, client.FieldOwner(v1alpha1.ManagerControllerStatus), client.ForceOwnership))
}

func (w *world) keyring(site string) v1alpha1.SiteKeyringStatus {
	w.t.Helper()
	return scope.KeyringStatus(w.group(), site)
}

func (w *world) phases() string {
	w.t.Helper()
	var out []string
	for _, site := range []string{"a", "b", "c"} {
		out = append(out, string(w.keyring(site).Phase))
	}
	return strings.Join(out, " ")
}

// sealedWorld is a group of three sites that went all the way.
func sealedWorld(t *testing.T, options ...scopetest.Option) *world {
	t.Helper()
	w := encryptedWorld(t, options...)
	w.reconcile()
	w.boot("one", "a", "b", "c")
	for _, site := range []string{"a", "b", "c"} {
		w.push(site, 1, "one")
	}
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.data("a", "b", "c")
	w.rest()
	w.rest()
	for _, site := range []string{"c", "b"} {
		w.boot("", site)
		w.rest()
	}
	w.monitorStatus("b", 2)
	w.facts.Open("b")
	w.boot("", "b", "c")
	w.rest()
	w.boot("", "a")
	w.rest()
	w.rest()
	if got := w.phases(); got != "Sealed Sealed Sealed" {
		t.Fatalf("phases %s; %+v; %s", got, w.group().Status.EncryptionAtRest, w.condition(v1alpha1.ConditionProgressing).Message)
	}
	return w
}
