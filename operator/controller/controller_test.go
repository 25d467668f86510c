// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func TestNewGroupIsCreatedAtOnce(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()

	if got := w.deployments(); len(got) != 3 {
		t.Errorf("deployments %v", got)
	}
	for _, site := range []string{"a", "b", "c"} {
		w.get(&corev1.Service{}, v1alpha1.SiteName("orders", site))
		w.get(&corev1.ConfigMap{}, v1alpha1.ConfigName("orders", site))
		w.get(&corev1.PersistentVolumeClaim{}, v1alpha1.DataVolumeName("orders", site))
	}
	w.get(&policyv1.PodDisruptionBudget{}, "mysql-orders")
	w.get(&corev1.Service{}, "mysql-orders-primary")
	w.get(&corev1.Service{}, "mysql-orders-replicas")

	accounts := &corev1.Secret{}
	w.get(accounts, "mysql-orders-accounts")
	w.must(render.Accounts(accounts))
	for _, name := range []string{"operator", "replication", "sidecar", "clone"} {
		password := accounts.Data[name]
		if len(password) < 20 || len(password) > 32 {
			t.Errorf("a password has %d characters", len(password))
		}
	}
	if got, want := w.anchors(), wire.EncodeKey(w.key().Public()); got["a"] != want || got["b"] != want || got["c"] != want {
		t.Errorf("the sites trust %v, and %s signs", got, want)
	}
	if !slices.Contains(w.group().Finalizers, v1alpha1.Finalizer) || w.loops.ensured == 0 {
		t.Errorf("finalizers %v, loops ensured %d times", w.group().Finalizers, w.loops.ensured)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonCreating {
		t.Errorf("condition %+v", c)
	}
	if w.group().Status.ObservedGeneration != 1 {
		t.Errorf("observed generation %d", w.group().Status.ObservedGeneration)
	}
}

func TestNothingIsWrittenTwice(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	for range 3 {
		w.reconcile()
	}
	before := &corev1.Secret{}
	w.get(before, "mysql-orders-accounts")
	w.writes = 0
	again := w.reconcile()
	if w.writes != 0 {
		t.Errorf("%d writes although nothing has changed", w.writes)
	}
	if again != scope.WhenSettled {
		t.Errorf("looks again after %s", again)
	}
	after := &corev1.Secret{}
	w.get(after, "mysql-orders-accounts")
	if diff := cmp.Diff(before.Data, after.Data); diff != "" {
		t.Error("passwords changed")
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonAsExpected {
		t.Errorf("condition %+v", c)
	}
}

func TestDriftIsCorrected(t *testing.T) {
	w := runningWorld(t)
	w.reconcile()
	s := &corev1.Service{}
	w.get(s, "mysql-orders-replicas")
	s.Spec.Selector = map[string]string{"app": "other"}
	w.must(w.c.Update(w.ctx, s))
	w.reconcile()
	w.get(s, "mysql-orders-replicas")
	if s.Spec.Selector[v1alpha1.LabelHealthy] != v1alpha1.HealthyYes {
		t.Errorf("selector %v", s.Spec.Selector)
	}
}

// The selector of the primary Service belongs to the poll loop: an application writes where it points.
func TestPrimarySelectorIsLeftAlone(t *testing.T) {
	w := runningWorld(t)
	w.reconcile()
	s := &corev1.Service{}
	w.get(s, "mysql-orders-primary")
	want := map[string]string{v1alpha1.LabelSite: "a"}
	s.Spec.Selector = want
	w.must(w.c.Update(w.ctx, s, client.FieldOwner(v1alpha1.ManagerMonitor)))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	w.get(s, "mysql-orders-primary")
	if diff := cmp.Diff(want, s.Spec.Selector); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTLS(t *testing.T) {
	w := newWorld(t, scopetest.Group(withTLS))
	if again := w.reconcile(); again > scope.WhenWaiting {
		t.Errorf("looks again after %s", again)
	}
	if len(w.deployments()) != 0 {
		t.Error("pods without a certificate")
	}
	c := w.condition(v1alpha1.ConditionTLSReady)
	if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonSecretMissing || !strings.Contains(c.Message, "orders-tls") {
		t.Errorf("condition %+v", c)
	}
	w.reconcile()
	if n := w.said.Count(v1alpha1.ReasonTLSSecretMissing); n != 1 {
		t.Errorf("%d events of one missing Secret", n)
	}
	w.must(w.c.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-tls"}, Data: map[string][]byte{"tls.crt": []byte("x")},
	}))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionTLSReady); c.Reason != v1alpha1.ReasonSecretUnusable {
		t.Errorf("condition %+v", c)
	}
	if len(w.deployments()) != 0 {
		t.Error("pods with an unusable certificate")
	}
}

func TestIgnoredKeysAreSaidOnce(t *testing.T) {
	w := newWorld(t, scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.MysqlConf = map[string]string{"super-read-only": "OFF"}
	}))
	w.reconcile()
	w.reconcile()
	if got := w.said.Of(v1alpha1.ReasonConfigKeysIgnored); len(got) != 1 || !strings.Contains(got[0], "super-read-only") {
		t.Errorf("events %v", got)
	}
	if c := w.condition(v1alpha1.ConditionSpecRefused); c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonSettingsRefused || !strings.Contains(c.Message, "super-read-only") {
		t.Errorf("condition %+v", c)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = nil })
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionSpecRefused); c.Type != "" {
		t.Errorf("nothing is refused any more, and it says %+v", c)
	}
}

// A group of an earlier version has settings that are refused now. It goes on to run, and its pods are replaced in turn, without
// them.
func TestASettingThatIsRefusedNowStopsNothing(t *testing.T) {
	w := runningWorld(t)
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.Open("a")
	w.reconcile()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.MysqlConf = map[string]string{"general_log_file": "/var/lib/mysql/mfg/x"}
	})
	before := w.deployments()
	w.reconcile()
	if diff := cmp.Diff(before, w.deployments()); diff != "" {
		t.Errorf("a refused setting alone replaces pods: %s", diff)
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonAsExpected {
		t.Errorf("condition %+v", c)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf["max_connections"] = "7" })
	w.reconcile()
	if got := w.deployments(); got["c"] == before["c"] || got["a"] != before["a"] {
		t.Errorf("what is passed on beside a refused one does not reach a replica first: %v, before %v", got, before)
	}
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	tests := map[string]client.Object{
		"another group's": &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "mysql-orders-b", Labels: render.SiteLabels("orders-b", "x"),
		}},
		"a user's": &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-b"}},
		"another controller's": &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "mysql-orders-b",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "x", UID: "u", Controller: new(true)}},
		}},
	}
	for name, foreign := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(), foreign)
			w.reconcile()
			got := &corev1.Service{}
			w.get(got, "mysql-orders-b")
			if len(got.Spec.Ports) != 0 {
				t.Errorf("it was taken over: %+v", got.Spec)
			}
			if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonForeignObject || c.Status != metav1.ConditionFalse {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

func TestLeftOverOfAnEarlierGroup(t *testing.T) {
	old := scopetest.Group()
	old.UID = "earlier"
	service := render.SiteService(render.Input{Group: old}, old.Spec.Sites[0])
	w := newWorld(t, scopetest.Group(), service)
	_, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key})
	if !errors.Is(err, apply.ErrLeftOver) {
		t.Errorf("got %v, want a retry", err)
	}
}

func TestPreparedVolumeIsUsed(t *testing.T) {
	class := "slow"
	prepared := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-a-data"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
	}
	w := newWorld(t, scopetest.Group(), prepared)
	w.reconcile()
	got := &corev1.PersistentVolumeClaim{}
	w.get(got, prepared.Name)
	if got.Labels[v1alpha1.LabelSite] != "a" || *got.Spec.StorageClassName != class {
		t.Errorf("volume %+v", got)
	}
}

func TestStatusHasTwoOwners(t *testing.T) {
	w := newWorld(t, scopetest.Group())
	w.reconcile()
	w.monitorStatus("a", 1)
	w.facts.Open("a")
	w.settle("a", "b", "c")
	w.reconcile()
	w.reconcile()
	g := w.group()
	if g.Status.ActiveSite != "a" || g.Status.Epoch != 1 {
		t.Errorf("the poll loop's fields are gone: %+v", g.Status)
	}
	for _, s := range g.Status.Sites {
		if s.State != v1alpha1.SiteReplica {
			t.Errorf("site %s lost the poll loop's fields: %+v", s.Name, s)
		}
		if s.Provisioned != (s.Name == "a") || s.Node != "node-"+s.Name || s.Image != "mysql:9.7" || s.Version != "9.7.4" {
			t.Errorf("site %+v", s)
		}
	}
	w.monitorStatus("a", 2)
	if got := w.group().Status; !got.Sites[0].Provisioned || got.ObservedGeneration != 1 || len(got.Conditions) == 0 {
		t.Errorf("the poll loop took away the controller's fields: %+v", got)
	}
}

// I12, I15 (simulation, seed 661): an operator that stood still since it read the group must not take back what its successor
// found out, such as the name of the volume that holds the data.
func TestAnOldReconcileWritesNothingOver(t *testing.T) {
	w := runningWorld(t)
	old := &scope.Scope{Group: w.group(), Key: scopetest.Key, Volumes: map[string]string{"a": "old"}, Provisioned: map[string]bool{}}
	w.facts.Open("a")
	w.monitorStatus("a", 2)
	if err := w.r.writeStatus(w.ctx, old, nil); !apierrors.IsConflict(err) {
		t.Errorf("I15: an old look is written: %v", err)
	}
	for _, site := range w.group().Status.Sites {
		if !site.Provisioned || site.VolumeID != "" {
			t.Errorf("I12: site %s is %+v", site.Name, site)
		}
	}
}

// A provisioned site that passes for empty would be cloned: nothing but a decision may take the mark away.
func TestFailureKeepsTheMarks(t *testing.T) {
	w := runningWorld(t)
	w.fail["*v1alpha1.MysqlFailoverGroup"] = errors.New("no")
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil {
		t.Fatal("no error")
	}
	for _, s := range w.group().Status.Sites {
		if !s.Provisioned {
			t.Errorf("site %s lost its mark", s.Name)
		}
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonReconcileError {
		t.Errorf("condition %+v", c)
	}
}

// An operator that has just started watches the sites that exist, whatever keeps it from applying their objects: without its
// answers the active site is not opened again after a restart, and nothing is failed over (design §4).
func TestTheLoopStartsAlthoughNothingCanBeApplied(t *testing.T) {
	w := runningWorld(t)
	w.reconcile()
	w.r, w.loops.ensured = New(w.r.Options), 0
	w.reject = func(name string) error { return errors.New("the webhook does not answer for " + name) }
	if _, err := w.r.Reconcile(w.ctx, reconcile.Request{NamespacedName: scopetest.Key}); err == nil {
		t.Fatal("no error")
	}
	if w.loops.ensured == 0 {
		t.Error("nobody watches the sites")
	}
}
