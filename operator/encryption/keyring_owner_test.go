// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// store is what the API server of a shell holds.
func (sh *shell) store(t *testing.T) client.WithWatch {
	t.Helper()
	c, ok := sh.Client.(client.WithWatch)
	if !ok {
		t.Fatalf("the shell has a %T", sh.Client)
	}
	return c
}

// escrowSecret is a keyring of a site in escrow, with these owners.
func escrowSecret(site string, owners ...metav1.OwnerReference) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: scopetest.Key.Namespace, Name: v1alpha1.KeyringSecret(scopetest.Key.Name, site, 1), UID: types.UID("keyring of " + site),
		Labels: render.SiteLabels(scopetest.Key.Name, site), OwnerReferences: owners,
	}}
	s.Labels[v1alpha1.LabelName] = v1alpha1.NameKeyring
	return s
}

// groupOwner is a group of the tests' name as an owner.
func groupOwner(uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "MysqlFailoverGroup", Name: scopetest.Key.Name, UID: uid, Controller: new(true),
	}
}

func put(t *testing.T, c client.Client, all ...client.Object) {
	t.Helper()
	for _, o := range all {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// I17: a keyring belongs to the group that is there, so that no collector comes for it as for what a dead group left. What belongs to
// others, and what is let go of, is left alone.
func TestKeyringsBelongToTheGroupThatIsThereI17(t *testing.T) {
	const ours, dead = types.UID("group-uid"), types.UID("of a group that is gone")
	controller := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: scopetest.Key.Name, UID: "u", Controller: new(true)}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "somebody's", UID: "v"}
	for name, tt := range map[string]struct {
		owners     []metav1.OwnerReference
		groupEnds  bool
		secretEnds bool
		want       []types.UID
	}{
		"nobody's":                              {want: []types.UID{ours}},
		"ours":                                  {owners: []metav1.OwnerReference{groupOwner(ours)}, want: []types.UID{ours}},
		"a dead group's":                        {owners: []metav1.OwnerReference{groupOwner(dead)}, want: []types.UID{ours}},
		"a dead group's, and another":           {owners: []metav1.OwnerReference{groupOwner(dead), other}, want: []types.UID{"v", ours}},
		"of another controller":                 {owners: []metav1.OwnerReference{controller}, want: []types.UID{"u"}},
		"the group is being deleted":            {groupEnds: true},
		"it is being deleted":                   {secretEnds: true},
		"a dead group's, while ours is deleted": {owners: []metav1.OwnerReference{groupOwner(dead)}, groupEnds: true, want: []types.UID{dead}},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
			c := sh.store(t)
			of := escrowSecret("c", tt.owners...)
			of.Finalizers = []string{"mysql-mfg.io/test"}
			put(t, c, of, escrowSecret("b"))
			if tt.secretEnds {
				if err := c.Delete(t.Context(), of); err != nil {
					t.Fatal(err)
				}
			}
			s := sh.look(t)
			if tt.groupEnds {
				s.Group.DeletionTimestamp = new(metav1.Now())
			}
			if err := sh.ownKeyrings(t.Context(), s, keyring.Site{Name: "c"}); err != nil {
				t.Fatal(err)
			}
			owners := func(of *corev1.Secret) (out []types.UID) {
				now := &corev1.Secret{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(of), now); err != nil {
					t.Fatal(err)
				}
				for _, o := range now.OwnerReferences {
					out = append(out, o.UID)
				}
				return out
			}
			if got := owners(of); !slices.Equal(got, tt.want) {
				t.Errorf("I17: owners %q, want %q", got, tt.want)
			}
			if got := owners(escrowSecret("b")); len(got) != 0 {
				t.Errorf("asked for c, and b has the owners %q", got)
			}
		})
	}
}

// What cannot be read or written is tried again, and not taken for done.
func TestWhatCannotBeOwnedIsTriedAgain(t *testing.T) {
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
	c := sh.store(t)
	put(t, c, escrowSecret("c"))
	sh.Client = interceptor.NewClient(c, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errAway
		},
	})
	if err := sh.ownKeyrings(t.Context(), sh.look(t), keyring.Site{Name: "c"}); !errors.Is(err, errAway) {
		t.Errorf("it cannot be written: %v", err)
	}
	s := sh.look(t)
	sh.Live = interceptor.NewClient(c, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errAway },
	})
	if err := sh.ownKeyrings(t.Context(), s, keyring.Site{Name: "c"}); !errors.Is(err, errAway) {
		t.Errorf("it cannot be read: %v", err)
	}
}

// What a person restored keeps the labels that they gave it. A keyring is read only if it is not labelled and there is something to
// compare it with; what cannot be read or written is tried again.
func TestHowARestoredSecretIsCompleted(t *testing.T) {
	content := []byte("one")
	name := v1alpha1.KeyringSecret(scopetest.Key.Name, "c", 1)
	named := func(names ...string) (out []metav1.PartialObjectMetadata) {
		for _, name := range names {
			out = append(out, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return out
	}
	for what, tt := range map[string]struct {
		name, digest string
		listed       []metav1.PartialObjectMetadata
		get, patch   error
		completed    bool
		reads        int
	}{
		"restored":              {name: name, digest: wire.KeyringDigest(content), completed: true, reads: 1},
		"beside a labelled one": {name: name, digest: wire.KeyringDigest(content), listed: named("another"), completed: true, reads: 1},
		"labelled":              {name: name, digest: wire.KeyringDigest(content), listed: named("another", name)},
		"another keyring":       {name: name, digest: wire.KeyringDigest([]byte("two")), reads: 1},
		"no keyring yet":        {digest: wire.KeyringDigest(content)},
		"no digest yet":         {name: name},
		"it cannot be read":     {name: name, digest: wire.KeyringDigest(content), get: errAway, reads: 1},
		"it cannot be written":  {name: name, digest: wire.KeyringDigest(content), patch: errAway, reads: 1},
	} {
		t.Run(what, func(t *testing.T) {
			sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
			c, s, reads := sh.store(t), sh.look(t), 0
			put(t, c, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: scopetest.Key.Namespace, Name: name, Labels: map[string]string{"of": "a person"}, Annotations: map[string]string{"from": "a backup"},
				},
				Data: map[string][]byte{v1alpha1.KeyringKey: content},
			})
			sh.Live = interceptor.NewClient(c, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if reads++; tt.get != nil {
						return tt.get
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			sh.Client = interceptor.NewClient(c, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if tt.patch != nil {
						return tt.patch
					}
					return c.Patch(ctx, o, p, opts...)
				},
			})
			site := keyring.Site{Name: "c", Status: v1alpha1.SiteKeyringStatus{KeyringSecret: tt.name, KeyringVersion: 1, KeyringDigest: tt.digest}}
			want := errors.Join(tt.get, tt.patch)
			if err := sh.completeRestored(t.Context(), s, site, tt.listed); (err == nil) != (want == nil) || want != nil && !errors.Is(err, errAway) {
				t.Errorf("got %v", err)
			}
			now := &corev1.Secret{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: scopetest.Key.Namespace, Name: name}, now); err != nil {
				t.Fatal(err)
			}
			if completed := now.Labels[v1alpha1.LabelKeyringVersion] == "1" && now.Immutable != nil; completed != tt.completed || reads != tt.reads {
				t.Errorf("completed %t, read %d times: %+v", completed, reads, now.ObjectMeta)
			}
			if now.Labels["of"] != "a person" || now.Annotations["from"] != "a backup" {
				t.Errorf("what a person wrote is gone: %+v", now.ObjectMeta)
			}
		})
	}
}

// The token of a site that left the specification goes, and its keyrings go with its data. What was read of them is not used again.
func TestWhatGoesWithASite(t *testing.T) {
	deleting := func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.DeletionPolicy = v1alpha1.DeletionDelete }
	plain := func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.EncryptionAtRest.Enabled = false }
	for name, tt := range map[string]struct {
		options    []scopetest.Option
		noListener bool
		// token, list and remove are what comes of dropping the token, of listing keyrings, and of deleting one.
		token, list, remove error
		stays               bool
		untouched           bool
	}{
		"its data stays":         {stays: true},
		"its data goes":          {options: []scopetest.Option{deleting}},
		"the token cannot go":    {options: []scopetest.Option{deleting}, token: errAway, stays: true},
		"they cannot be read":    {options: []scopetest.Option{deleting}, list: errAway, stays: true},
		"they cannot be deleted": {options: []scopetest.Option{deleting}, remove: errAway, stays: true},
		"no listener":            {options: []scopetest.Option{deleting}, noListener: true, stays: true, untouched: true},
		"not encrypted":          {options: []scopetest.Option{deleting, plain}, stays: true, untouched: true},
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShell(t, scopetest.Group(append([]scopetest.Option{scopetest.Running, scopetest.WithEncryption}, tt.options...)...))
			c, s := sh.store(t), sh.look(t)
			put(t, c, escrowSecret("b"), escrowSecret("c"))
			sh.escrows.keep(site("c"), 0, look{hash: "before"})
			sh.escrow.fails["drop c"] = tt.token
			sh.Live = interceptor.NewClient(c, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					return cmp.Or(tt.list, c.List(ctx, list, opts...))
				},
			})
			sh.Client = interceptor.NewClient(c, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if tt.remove != nil {
						return tt.remove
					}
					return c.Delete(ctx, o, opts...)
				},
			})
			if tt.noListener {
				sh.Escrow = nil
			}
			if err := sh.RemoveKeyrings(t.Context(), s, "c", len(tt.options) > 0); !errors.Is(err, cmp.Or(tt.token, tt.list, tt.remove)) {
				t.Errorf("got %v", err)
			}
			if dropped := slices.Equal(sh.escrow.calls, []string{"drop c"}); dropped == tt.untouched {
				t.Errorf("asked of the store: %v", sh.escrow.calls)
			}
			if _, known := sh.escrows.last(site("c")); known != tt.untouched {
				t.Errorf("the look of before is kept: %t", known)
			}
			left := &corev1.SecretList{}
			if err := c.List(t.Context(), left); err != nil {
				t.Fatal(err)
			}
			is := func(site string) bool {
				return slices.ContainsFunc(left.Items, func(s corev1.Secret) bool { return s.Name == escrowSecret(site).Name })
			}
			if !is("b") || is("c") != tt.stays {
				t.Errorf("left: of b %t, of c %t", is("b"), is("c"))
			}
		})
	}
}

// The finalizer lets go of every keyring of the group, and of nothing else. If it cannot see them it does not take them for none.
func TestWhatTheFinalizerLetsGoOf(t *testing.T) {
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
	c, group := sh.store(t), sh.look(t).Group
	another := escrowSecret("a")
	another.Labels[v1alpha1.LabelGroup] = "another"
	accounts := escrowSecret("accounts")
	accounts.Labels[v1alpha1.LabelName] = v1alpha1.NameMySQL
	put(t, c, escrowSecret("b"), escrowSecret("c"), another, accounts)
	// Unlike the fake one, an API server names the kind of metadata here, not that of what they belong to.
	sh.Live = interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if all, is := list.(*metav1.PartialObjectMetadataList); is {
				for i := range all.Items {
					all.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
				}
			}
			return err
		},
	})
	data, err := sh.KeyringData(t.Context(), group)
	var got []string
	for _, o := range data {
		got = append(got, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
	}
	if want := []string{"Secret mysql-orders-b-keyring-v1", "Secret mysql-orders-c-keyring-v1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	sh.Live = interceptor.NewClient(c, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errAway },
	})
	if data, err := sh.KeyringData(t.Context(), group); len(data) != 0 || !errors.Is(err, errAway) {
		t.Errorf("nobody can see them, and %v is let go of: %v", data, err)
	}
}

// Without its listener the operator may not list Secrets: a group that may have keyrings stays, and says why, once.
func TestKeyringsOutOfReachKeepTheGroup(t *testing.T) {
	sh := newShell(t, scopetest.Group(scopetest.Running, scopetest.WithEncryption))
	sh.Escrow = nil
	group := sh.look(t).Group
	if data, err := sh.KeyringData(t.Context(), group); len(data) != 0 || err != nil || len(sh.said.List) != 0 {
		t.Errorf("it never had any: %v, %v, said %v", data, err, sh.said.List)
	}
	group.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{}
	for range 2 {
		if _, err := sh.KeyringData(t.Context(), group); !errors.Is(err, ErrKeyringsOutOfReach) {
			t.Errorf("got %v", err)
		}
	}
	if said := sh.said.Of(v1alpha1.ReasonDeletionWaits); len(said) != 1 || len(sh.said.List) != 1 || !strings.Contains(said[0], "auxiliary.escrowTLS.enabled") {
		t.Errorf("said %v", sh.said.List)
	}
}
