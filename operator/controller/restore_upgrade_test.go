// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// loadingWorld loads a backup onto a, for so long that a pod which is not ready counts as one that does not come up.
func loadingWorld(t *testing.T, turns Turns) *world {
	t.Helper()
	w := restoringWorld(t, scopetest.Group(fromBackup))
	w.r.Turns, w.r.Revision = turns, "r1"
	w.facts.Set("a", scope.SiteFacts{})
	w.reconcile()
	w.reconcile()
	w.starts("a", corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Hour))}}, corev1.ContainerState{})
	w.isUnavailable("a")
	w.reconcileOften()
	if st := w.restoring(); st.Phase != v1alpha1.RestoreLoading {
		t.Fatalf("%+v", st)
	}
	return w
}

// isUnavailable has the Deployment of a site be without a ready pod for long. MySQL does not run there, as a node says that is Ready.
func (w *world) isUnavailable(site string) {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(d, v1alpha1.SiteName(scopetest.Key.Name, site))
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(metav1.Now().Add(-2 * scope.BrokenAfter)),
	}}
	w.must(w.c.Status().Update(w.ctx, d))
	w.nodeIs(site, corev1.ConditionTrue)
	for _, pod := range w.podsOf(site) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		w.must(w.c.Status().Update(w.ctx, &pod))
	}
}

func (w *world) podsOf(site string) []corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	w.must(w.c.List(w.ctx, &pods, client.InNamespace(scopetest.Key.Namespace), client.MatchingLabels{v1alpha1.LabelSite: site}))
	return pods.Items
}

// nodeIs has the node of a site be Ready, or not, for long.
func (w *world) nodeIs(site string, ready corev1.ConditionStatus) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + site}}
	w.must(client.IgnoreNotFound(w.c.Delete(w.ctx, node)))
	node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + site}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(metav1.Now().Add(-2 * scope.BrokenAfter))},
	}}}
	w.must(w.c.Create(w.ctx, node))
}

// Hours of a load are not thrown away for another version of the operator, whether it paces upgrades or not.
func TestALoadOutlivesANewOperator(t *testing.T) {
	for name, turns := range map[string]Turns{"paced": &oneTurn{}, "not paced": nil} {
		t.Run(name, func(t *testing.T) {
			w := loadingWorld(t, turns)
			before := w.deployments()
			w.newOperator()
			w.reconcileOften()
			if sites := replaced(before, w.deployments()); len(sites) > 0 {
				t.Fatalf("%v replaced while a backup is loaded", sites)
			}
			if c := w.condition(v1alpha1.ConditionUpgradePending); (c.Reason == v1alpha1.ReasonUpgradeWaiting) != (turns != nil) {
				t.Errorf("condition %+v", c)
			}
			w.starts("a", endedWith(14, `{"reason":"WrongIdentity","message":"give the age identity","seconds":1}`), corev1.ContainerState{})
			w.reconcileOften()
			if sites := replaced(before, w.deployments()); len(sites) != 1 {
				t.Errorf("%v replaced after the load has failed: the new version may be what it needs", sites)
			}
		})
	}
}

// A person's change of the pod waits for the load, and comes at once when that fails. A change of what is loaded does not wait.
func TestAChangeWhileABackupIsLoaded(t *testing.T) {
	w := loadingWorld(t, nil)
	before := w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.MysqlConf = map[string]string{"max_connections": "77"} })
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) > 0 {
		t.Fatalf("%v replaced while a backup is loaded", sites)
	}
	w.starts("a", endedWith(7, `{"reason":"ServerFailed","message":"mysqld does not start","seconds":1}`), corev1.ContainerState{})
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) != 1 {
		t.Errorf("%v replaced after the load has failed", sites)
	}
	w = loadingWorld(t, nil)
	before = w.deployments()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.InitFromBackup.Backup = "monday" })
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) != 1 {
		t.Errorf("%v replaced: a backup is loaded that nobody wants", sites)
	}
}

// Another version may write down in another way what is loaded: that is no order of a person.
func TestALoadOutlivesAnotherNoteOfIt(t *testing.T) {
	w := loadingWorld(t, &oneTurn{})
	d := &appsv1.Deployment{}
	w.get(d, v1alpha1.SiteName(scopetest.Key.Name, "a"))
	d.Annotations[v1alpha1.AnnotationRestores] = "of another version"
	w.must(w.c.Update(w.ctx, d))
	before := w.deployments()
	w.newOperator()
	w.reconcileOften()
	if sites := replaced(before, w.deployments()); len(sites) > 0 {
		t.Errorf("%v replaced while a backup is loaded", sites)
	}
}
