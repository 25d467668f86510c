// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// The store against a real API server, with no more rights than the chart gives the operator, under the chart's admission
// policy, and with the controllers that delete: every version is written once and for good, its number belongs to one
// push, and nobody but the operator takes it away by accident.
func TestEscrowAgainstAPIServer(t *testing.T) {
	c := newCluster(t)
	c.namespace("shop")
	c.newGroup("shop")
	t.Run("push", func(*testing.T) { c.pushes() })
	t.Run("tokens", func(*testing.T) { c.renews() })
	t.Run("concurrent pushes", func(*testing.T) { c.pushesAtOnce() })
	t.Run("nobody changes it", func(*testing.T) { c.isKept() })
	t.Run("the garbage collector lets go of it", func(*testing.T) { c.isLetGo() })
	t.Run("a person restores it", func(*testing.T) { c.isRestored() })
	t.Run("a person gives it up", func(*testing.T) { c.isGivenUp() })
	t.Run("prune", func(*testing.T) { c.prunes() })
	t.Run("another release", func(*testing.T) { c.isHandedOver() })
	t.Run("deletion in the foreground", func(*testing.T) { c.outlives("foreground", metav1.DeletePropagationForeground) })
	t.Run("deletion in the background", func(*testing.T) { c.outlives("background", metav1.DeletePropagationBackground) })
	t.Run("orphaning deletion", func(*testing.T) { c.outlives("orphan", metav1.DeletePropagationOrphan) })
	t.Run("deletion of the namespace", func(*testing.T) { c.endsWithNamespace() })
}

func (c *cluster) pushes() {
	for i, content := range [][]byte{realKeyring(c.t), realKeyring(c.t), one("01")} {
		got, err := c.push("shop", content)
		if want := int64(i/2 + 1); err != nil || got.Version != want {
			c.t.Fatalf("push %d: version %d, want %d (%v)", i, got.Version, want, err)
		}
	}
	s := c.secret("shop", "mysql-orders-paris-keyring-v1")
	if string(s.Data["keyring"]) != string(realKeyring(c.t)) || s.Immutable == nil || !*s.Immutable || metav1.GetControllerOf(s) == nil {
		c.t.Errorf("stored %+v", s.ObjectMeta)
	}
	versions, err := c.store.Versions(c.t.Context(), "shop", testGroup, "paris")
	if err != nil || len(versions) != 2 || versions[0].Number != 2 || versions[0].Digest != wire.KeyringDigest(one("01")) {
		c.t.Errorf("versions %+v: %v", versions, err)
	}
	if _, err := c.store.Put(c.t.Context(), pushOf(one("02")), NewToken()); err == nil {
		c.t.Error("stored with a wrong token")
	}
}

func (c *cluster) renews() {
	old := c.token
	c.renew("shop")
	if _, err := c.store.Put(c.t.Context(), pushOf(one("02")), old); err == nil {
		c.t.Error("stored with a stale token")
	}
	if _, err := c.push("shop", one("01")); err != nil {
		c.t.Errorf("with the new token: %v", err)
	}
	for range 2 {
		if err := c.store.DropToken(c.t.Context(), c.group("shop"), "paris"); err != nil {
			c.t.Errorf("drop token: %v", err)
		}
	}
	if _, err := c.push("shop", one("01")); err == nil {
		c.t.Error("stored with a token that was taken away")
	}
	c.renew("shop")
}

// pushesAtOnce shows that a number belongs to whoever creates its Secret first.
func (c *cluster) pushesAtOnce() {
	const pushers = 6
	var all sync.WaitGroup
	answers := make([]wire.KeyringEscrowed, pushers)
	for i := range pushers {
		all.Go(func() {
			var err error
			for range 5 {
				if answers[i], err = c.push("shop", one(fmt.Sprintf("a%d", i))); err == nil {
					return
				}
			}
			c.t.Error(err)
		})
	}
	all.Wait()
	seen := map[int64]bool{}
	for i, a := range answers {
		if seen[a.Version] || string(c.secret("shop", a.Secret).Data["keyring"]) != string(one(fmt.Sprintf("a%d", i))) {
			c.t.Errorf("push %d: version %d is somebody else's", i, a.Version)
		}
		seen[a.Version] = true
	}
}

// isRestored follows the procedure of the specification: until the Secret is immutable, a person can put it right.
func (c *cluster) isRestored() {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-rome-keyring-v4"},
		Data:       map[string][]byte{"keyring": one("0a")},
	}
	c.create(s)
	full := version("rome", 4, one("0a"))
	for what, edit := range map[string]func(){
		"label": func() { s.Labels = full.Labels }, "annotate": func() { s.Annotations = full.Annotations },
	} {
		edit()
		if err := c.admin.Update(c.t.Context(), s); err != nil {
			c.t.Errorf("%s: %v", what, err)
		}
	}
	s.Data["keyring"] = one("0b")
	if err := c.admin.Update(c.t.Context(), s); err != nil {
		c.t.Errorf("put right: %v", err)
	}
	s.Immutable, s.OwnerReferences = new(true), c.secret("shop", "mysql-orders-paris-keyring-v2").OwnerReferences
	if err := c.admin.Update(c.t.Context(), s); err != nil {
		c.t.Errorf("make immutable: %v", err)
	}
	if err := c.admin.Delete(c.t.Context(), s); !apierrors.IsForbidden(err) {
		c.t.Errorf("the restored one is not protected: %v", err)
	}
}

func (c *cluster) isGivenUp() {
	s := c.secret("shop", "mysql-orders-rome-keyring-v4")
	s.Labels[v1alpha1.LabelAllowDeletion] = "true"
	if err := c.admin.Update(c.t.Context(), s); err != nil {
		c.t.Fatal(err)
	}
	if err := c.admin.Delete(c.t.Context(), s); err != nil {
		c.t.Errorf("given up: %v", err)
	}
}

// prunes shows that the operator itself may delete, by the rights and the policy of the chart (I17: only what is unused).
func (c *cluster) prunes() {
	if err := c.store.Prune(c.t.Context(), c.group("shop"), "paris", "mysql-orders-paris-keyring-v1"); err != nil {
		c.t.Errorf("prune: %v", err)
	}
	versions, err := c.store.Versions(c.t.Context(), "shop", testGroup, "paris")
	if err != nil || slices.ContainsFunc(versions, func(v Version) bool { return v.Number == 1 }) {
		c.t.Errorf("versions %+v: %v", versions, err)
	}
	if err := c.store.Prune(c.t.Context(), c.group("shop"), "paris", versions[0].Secret); err == nil {
		c.t.Error("the newest was pruned")
	}
}

// isHandedOver shows that another release lets go of a keyring and deletes it only if escrowProtection.operators has its account.
// Both have all rights, so that only the policy can refuse them.
func (c *cluster) isHandedOver() {
	for release, mayDo := range map[string]bool{"mfg-red": false, "mfg-blue": true} {
		account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: release, Name: "mfg-operator"}
		c.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: release}, Subjects: []rbacv1.Subject{account},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		})
		other := newClient(c.t, c.config, "system:serviceaccount:"+release+":mfg-operator")
		s := c.secret("shop", "mysql-orders-paris-keyring-v2")
		before := s.DeepCopy()
		s.OwnerReferences = nil
		lets := other.Patch(c.t.Context(), s, client.MergeFrom(before), client.DryRunAll)
		deletes := other.Delete(c.t.Context(), before, client.DryRunAll)
		if (lets == nil) != mayDo || (deletes == nil) != mayDo || !mayDo && !(apierrors.IsForbidden(lets) && apierrors.IsForbidden(deletes)) {
			c.t.Errorf("%s, which may: %t: lets go: %v, deletes: %v", release, mayDo, lets, deletes)
		}
	}
}

// outlives deletes a group in every way: its keyrings stay until the operator has let go of them, and after that.
func (c *cluster) outlives(namespace string, propagation metav1.DeletionPropagation) {
	c.namespace(namespace)
	c.newGroup(namespace)
	stored, err := c.push(namespace, one("0a"))
	if err != nil {
		c.t.Fatal(err)
	}
	token := v1alpha1.KeyringTokenSecret(testGroup, "paris")
	if err := c.admin.Delete(c.t.Context(), c.group(namespace), client.PropagationPolicy(propagation)); err != nil {
		c.t.Fatal(err)
	}
	switch propagation {
	case metav1.DeletePropagationForeground:
		// The garbage collector does not wait for the finalizer of the operator: it has the token by now, and would
		// have the keyring.
		c.eventually("the garbage collector is at work", func() bool { return c.gone(namespace, token) })
		c.letGo(namespace, stored.Secret)
	case metav1.DeletePropagationOrphan:
		// The garbage collector lets go of what it knows of; the operator of all.
		c.letGo(namespace, stored.Secret)
	case metav1.DeletePropagationBackground:
		// Nobody lets go of it: the garbage collector takes the token, and is refused the keyring.
	}
	c.release(namespace)
	c.eventually("the group is gone", func() bool {
		return apierrors.IsNotFound(c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: testGroup}, &v1alpha1.MysqlFailoverGroup{}))
	})
	if propagation != metav1.DeletePropagationOrphan {
		c.eventually("the token goes with the group", func() bool { return c.gone(namespace, token) })
	}
	if s := c.secret(namespace, stored.Secret); s.DeletionTimestamp != nil || string(s.Data["keyring"]) != string(one("0a")) {
		c.t.Error("the keyring went with the group")
	}
	// A group of the same name goes on counting.
	c.newGroup(namespace)
	if got, err := c.push(namespace, one("0b")); err != nil || got.Version != 2 {
		c.t.Errorf("the next version of a group that was made again: %d (%v)", got.Version, err)
	}
}

// letGo does what the operator does before it takes its finalizer off: nobody owns the keyring any more.
func (c *cluster) letGo(namespace, name string) {
	c.t.Helper()
	c.eventually("the operator lets go of the keyring", func() bool {
		s := c.secret(namespace, name)
		before := s.DeepCopy()
		s.OwnerReferences = nil
		err := c.operator.Patch(c.t.Context(), s, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) {
			c.t.Fatal(err)
		}
		return err == nil
	})
}

// endsWithNamespace shows that the policy holds no namespace back.
func (c *cluster) endsWithNamespace() {
	c.namespace("doomed")
	c.newGroup("doomed")
	if _, err := c.push("doomed", one("0a")); err != nil {
		c.t.Fatal(err)
	}
	// The operator's finalizer: here nobody else removes it.
	c.release("doomed")
	if err := c.admin.Delete(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the namespace is gone", func() bool {
		return apierrors.IsNotFound(c.admin.Get(c.t.Context(), client.ObjectKey{Name: "doomed"}, &corev1.Namespace{}))
	})
}
