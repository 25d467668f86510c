// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// keyName is the Secret with the key of the test's group, formerName where an older operator had it.
var (
	keyName    = types.NamespacedName{Namespace: operatorNamespace, Name: "mfg-authority-group-uid"}
	formerName = types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: "mysql-orders-authority"}
)

func (w *world) key() signing.Key {
	w.t.Helper()
	key, err := w.r.Keys.Read(w.ctx, w.group())
	w.must(err)
	return key
}

// anchors are the keys that the pods of the sites are made to trust.
func (w *world) anchors() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	var list appsv1.DeploymentList
	w.must(w.c.List(w.ctx, &list, client.InNamespace(scopetest.Key.Namespace)))
	for _, d := range list.Items {
		for _, c := range d.Spec.Template.Spec.InitContainers {
			for _, e := range c.Env {
				if e.Name == v1alpha1.EnvAuthorityKey {
					out[d.Labels[v1alpha1.LabelSite]] = e.Value
				}
			}
		}
	}
	return out
}

// runsWithKey is a world whose sites run, and whose loop signs with the key of the group.
func runsWithKey(t *testing.T) *world {
	t.Helper()
	w := runningWorld(t)
	key, err := signing.New()
	w.must(err)
	_, err = w.r.Keys.Create(w.ctx, w.group(), key)
	w.must(err)
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.Open("a")
	w.facts.SignedBy(w.key())
	w.reconcile()
	return w
}

func (w *world) loseKey() {
	w.t.Helper()
	w.must(w.c.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: keyName.Namespace, Name: keyName.Name}}))
}

// TestTheKeyIsInTheNamespaceOfTheOperatorI3: with it a site is opened. Nothing beside the group has it.
func TestTheKeyIsInTheNamespaceOfTheOperatorI3(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()
	secret := &corev1.Secret{}
	w.must(w.c.Get(w.ctx, keyName, secret))
	if secret.Labels[v1alpha1.LabelKeyOfNamespace] != "shop" || secret.Labels[v1alpha1.LabelKeyOfGroup] != "orders" || secret.Labels[v1alpha1.LabelGroup] != "" {
		t.Errorf("labels %v", secret.Labels)
	}
	var beside corev1.SecretList
	w.must(w.c.List(w.ctx, &beside, client.InNamespace(scopetest.Key.Namespace)))
	for _, s := range beside.Items {
		for name, value := range s.Data {
			if strings.Contains(string(value), "PRIVATE KEY") {
				t.Errorf("I3: Secret %s has a private key in %s", s.Name, name)
			}
		}
	}
	before := w.key()
	if w.reconcile(); !w.key().Private.Equal(before.Private) {
		t.Error("it was made again")
	}
	if w.said.Count(v1alpha1.ReasonAuthorityReplaced) != 0 {
		t.Errorf("events %v", w.said.List)
	}
}

// TestAReplacedKeyIsVouchedForI4: the sites go on to take statements, so none is fenced, and no pod is replaced for it.
func TestAReplacedKeyIsVouchedForI4(t *testing.T) {
	w := runsWithKey(t)
	first, pods, anchors := w.key(), w.deployments(), w.anchors()
	last := first
	for range wire.MaxChain - 1 {
		w.loseKey()
		w.reconcile()
		next := w.key()
		if next.Private.Equal(last.Private) || !next.Chain.Has(last.Public()) || !next.Chain.Has(first.Public()) {
			t.Fatalf("I4: the new key has a chain of %d keys", len(next.Chain))
		}
		if by, ok := next.Chain.Last(first.Public()); !ok || !by.Equal(next.Public()) {
			t.Fatal("I4: nothing leads to the new key")
		}
		w.facts.SignedBy(next)
		w.reconcile()
		last = next
	}
	if diff := cmp.Diff(pods, w.deployments()); diff != "" {
		t.Errorf("pods are replaced for a key (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(anchors, w.anchors()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if said := w.said.Of(v1alpha1.ReasonAuthorityReplaced); len(said) != wire.MaxChain-1 || !strings.Contains(said[0], "vouches for it") {
		t.Errorf("events %v", said)
	}
	// A new site trusts what signs now.
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: "d", Role: v1alpha1.PrimaryCandidate})
	})
	w.reconcile()
	if got := w.anchors()["d"]; got != wire.EncodeKey(last.Public()) {
		t.Errorf("the new site trusts %s", got)
	}
	// The first key falls off: the sites get another one, one after the other.
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:3] })
	w.loseKey()
	w.reconcile()
	if got := changedSites(anchors, w.anchors()); len(got) > 1 {
		t.Errorf("the pods of %v are replaced at once", got)
	}
}

func changedSites(before, after map[string]string) (out []string) {
	for site, anchor := range before {
		if after[site] != anchor {
			out = append(out, site)
		}
	}
	return out
}

// TestAKeyThatAPersonPutThereIsVouchedFor while the operator has the one that signs.
func TestAKeyThatAPersonPutThereIsVouchedFor(t *testing.T) {
	w := runsWithKey(t)
	first, anchors := w.key(), w.anchors()
	other, err := signing.New()
	w.must(err)
	w.loseKey()
	_, err = w.r.Keys.Create(w.ctx, w.group(), other)
	w.must(err)
	w.reconcile()
	if key := w.key(); !key.Private.Equal(other.Private) || !key.Chain.Has(first.Public()) {
		t.Errorf("its chain has %d keys", len(key.Chain))
	}
	if got := changedSites(anchors, w.anchors()); len(got) > 0 {
		t.Errorf("the pods of %v are replaced for it", got)
	}
}

// TestALostKeyReachesTheSitesWithNewPodsI3: nobody can vouch for the new one, so only a template can bring it; one site at a time,
// replicas first, and told.
func TestALostKeyReachesTheSitesWithNewPodsI3(t *testing.T) {
	w := runsWithKey(t)
	lost, anchors := w.key(), w.anchors()
	w.loseKey()
	w.facts.SignedBy(signing.Key{})
	w.reconcile()
	next := w.key()
	if next.Chain.Has(lost.Public()) {
		t.Fatal("somebody vouches for it")
	}
	if said := w.said.Of(v1alpha1.ReasonAuthorityReplaced); len(said) != 1 || !strings.Contains(said[0], "one after the other") {
		t.Errorf("events %v", said)
	}
	w.facts.SignedBy(next)
	for i, want := range []string{"c", "b"} {
		got := changedSites(anchors, w.anchors())
		if len(got) != i+1 || w.anchors()[want] != wire.EncodeKey(next.Public()) {
			t.Fatalf("I3: after %d: the pods of %v have the new key, want %s too", i, got, want)
		}
		if w.reconcile(); len(changedSites(anchors, w.anchors())) != i+1 {
			t.Fatal("the next is replaced before this one is back")
		}
		w.settle(want)
		w.reconcile()
	}
	if got := changedSites(anchors, w.anchors()); len(got) != 2 {
		t.Errorf("the active site is replaced before it gave its role away: %v", got)
	}
	// Whoever may change the annotation may change the template too; what it says is no key of the group, so the site gets one.
	d := &appsv1.Deployment{}
	w.get(d, "mysql-orders-b")
	d.Annotations[v1alpha1.AnnotationAuthority] = wire.EncodeKey(lost.Public())
	w.must(w.c.Update(w.ctx, d))
	w.reconcile()
	w.get(d, "mysql-orders-b")
	if d.Annotations[v1alpha1.AnnotationAuthority] != wire.EncodeKey(next.Public()) {
		t.Errorf("b trusts %s", d.Annotations[v1alpha1.AnnotationAuthority])
	}
}

func TestAKeyThatCannotBeReadStopsNothingElse(t *testing.T) {
	w := runsWithKey(t)
	secret := &corev1.Secret{}
	w.must(w.c.Get(w.ctx, keyName, secret))
	secret.Data = map[string][]byte{v1alpha1.AuthorityPrivateKey: []byte("half a k")}
	w.must(w.c.Update(w.ctx, secret))
	pods := w.deployments()
	w.reconcile()
	c := w.condition(v1alpha1.ConditionProgressing)
	if c.Reason != v1alpha1.ReasonSecretIncomplete || !strings.Contains(c.Message, keyName.String()) || strings.Contains(c.Message, "half a k") {
		t.Errorf("condition %+v", c)
	}
	if diff := cmp.Diff(pods, w.deployments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.reconcile(); w.loops.ensured == 0 || w.loops.forgotten > 0 {
		t.Error("the sites are not watched")
	}
}

// I4: while the key cannot be read, nothing is done with another one: no site gets an anchor that leads nowhere, and no key is made again.
func TestAKeyThatCannotBeReachedChangesNothingI4(t *testing.T) {
	w := runsWithKey(t)
	key, pods, anchors := w.key(), w.deployments(), w.anchors()
	away, keys := errors.New("away"), w.r.Keys
	made, ok := w.c.(client.WithWatch)
	if !ok {
		t.Fatalf("the client is a %T", w.c)
	}
	broken := interceptor.NewClient(made, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return away
		},
	})
	w.r.Keys = &signing.Keys{Client: broken, Live: broken, Namespace: operatorNamespace}
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); !errors.Is(err, away) {
		t.Errorf("reconcile: %v", err)
	}
	if diff := cmp.Diff(pods, w.deployments()); diff != "" {
		t.Errorf("I4: (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(anchors, w.anchors()); diff != "" {
		t.Errorf("I4: (-want +got):\n%s", diff)
	}
	w.r.Keys = keys
	if w.reconcile(); !w.key().Private.Equal(key.Private) {
		t.Error("I4: it was made again")
	}
}

// before makes a world as an operator before this one left it: the key beside the group, and pods that trust what is in ConfigMaps.
func before(w *world, key signing.Key) {
	w.t.Helper()
	w.must(w.c.Create(w.ctx, formerSecret(w, key)))
	for _, site := range []string{"a", "b", "c"} {
		d := render.Deployment(render.Input{Group: w.group()}, v1alpha1.Site{Name: site})
		d.Annotations = map[string]string{v1alpha1.AnnotationSpecHash: "old"}
		d.Spec.Template.Annotations = d.Annotations
		w.must(w.c.Create(w.ctx, d))
		w.settle(site)
	}
	w.facts.Open("a")
}

func formerSecret(w *world, key signing.Key) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	scratch := &signing.Keys{Client: w.c, Live: w.c, Namespace: "scratch"}
	_, err := scratch.Create(w.ctx, w.group(), key)
	w.must(err)
	w.must(w.c.Get(w.ctx, types.NamespacedName{Namespace: "scratch", Name: keyName.Name}, secret))
	w.must(scratch.Delete(w.ctx, w.group().UID))
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: formerName.Namespace, Name: formerName.Name}, Data: secret.Data}
}

// TestTheFormerKeyIsTakenOver: no site notices, since it is the same key; and it goes from beside the group once it is read back.
func TestTheFormerKeyIsTakenOver(t *testing.T) {
	former, err := signing.New()
	if err != nil {
		t.Fatal(err)
	}
	w := runningWorld(t)
	before(w, former)
	w.reconcile()
	if !w.key().Private.Equal(former.Private) {
		t.Error("another key signs")
	}
	if err := w.c.Get(w.ctx, formerName, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still beside the group: %v", err)
	}
	want := map[string]string{"a": "", "b": "", "c": wire.EncodeKey(former.Public())}
	if diff := cmp.Diff(want, w.anchors()); diff != "" {
		t.Errorf("what the sites are made to trust when the update begins (-want +got):\n%s", diff)
	}
	if w.said.Count(v1alpha1.ReasonAuthorityReplaced) != 0 {
		t.Errorf("events %v", w.said.List)
	}
	// An operator that ended between the two finds both.
	w.must(w.c.Create(w.ctx, formerSecret(w, former)))
	w.reconcile()
	if err := w.c.Get(w.ctx, formerName, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still beside the group: %v", err)
	}
}

// TestAKeyThatATenantPutBesideTheGroupIsNotTakenI3: whoever may make Secrets in the namespace of a group would know the key.
func TestAKeyThatATenantPutBesideTheGroupIsNotTakenI3(t *testing.T) {
	planted, err := signing.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a new group", func(t *testing.T) {
		w := newWorld(t, scopetest.Group())
		w.must(w.c.Create(w.ctx, formerSecret(w, planted)))
		w.reconcile()
		if w.key().Private.Equal(planted.Private) {
			t.Error("I3: the tenant's key signs")
		}
	})
	t.Run("a group whose key was lost", func(t *testing.T) {
		w := runsWithKey(t)
		w.must(w.c.Create(w.ctx, formerSecret(w, planted)))
		w.loseKey()
		w.facts.SignedBy(signing.Key{})
		w.reconcile()
		if w.key().Private.Equal(planted.Private) {
			t.Error("I3: the tenant's key signs")
		}
	})
	t.Run("a group that has its key", func(t *testing.T) {
		former, err := signing.New()
		if err != nil {
			t.Fatal(err)
		}
		w := runningWorld(t)
		before(w, former)
		w.reconcile()
		w.must(w.c.Create(w.ctx, formerSecret(w, planted)))
		w.reconcile()
		if err := w.c.Get(w.ctx, formerName, &corev1.Secret{}); err != nil || !w.key().Private.Equal(former.Private) {
			t.Errorf("I3: what is not the same key is left alone: %v", err)
		}
	})
}

// TestAChainThatLeadsElsewhereCountsAsNone: it would have the sites take no statement.
func TestAChainThatLeadsElsewhereCountsAsNone(t *testing.T) {
	w := runsWithKey(t)
	key, other := w.key(), w.key()
	for name, chain := range map[string]any{"none": nil, "text": "no chain", "another's": other.Vouch(make([]byte, 32)), "empty": wire.Chain{}} {
		secret := &corev1.Secret{}
		w.must(w.c.Get(w.ctx, keyName, secret))
		body, err := json.Marshal(chain)
		w.must(err)
		secret.Data[v1alpha1.AuthorityChain] = body
		w.must(w.c.Update(w.ctx, secret))
		if got := w.key(); len(got.Chain) != 1 || !got.Chain.Has(key.Public()) {
			t.Errorf("%s: a chain of %d keys", name, len(got.Chain))
		}
	}
}
