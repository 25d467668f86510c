// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

const testTaint = "orders.shop.mysql-mfg.io/inactive-site"

// taints are the taints of a node, as key=value:effect.
func (w *world) taints(node string) []string {
	w.t.Helper()
	n := &corev1.Node{}
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: node}, n))
	var out []string
	for _, t := range n.Spec.Taints {
		out = append(out, t.ToString())
	}
	return out
}

func (w *world) checkTaints(want map[string][]string) {
	w.t.Helper()
	got := map[string][]string{}
	for _, node := range []string{"node-a", "node-b", "node-c", "node-d"} {
		if taints := w.taints(node); len(taints) > 0 {
			got[node] = taints
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("taints (-want +got):\n%s", diff)
	}
}

func mine(site string) []string { return []string{testTaint + "=" + site + ":PreferNoSchedule"} }

func (w *world) move(site, node string) {
	w.t.Helper()
	var pods corev1.PodList
	w.must(w.c.List(w.ctx, &pods, client.MatchingLabels{v1alpha1.LabelSite: site}))
	for i := range pods.Items {
		pods.Items[i].Spec.NodeName = node
		w.must(w.c.Update(w.ctx, &pods.Items[i]))
	}
}

func TestTaintsFollowTheActiveSite(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	w.steer()
	w.checkTaints(map[string][]string{"node-b": mine("b"), "node-c": mine("c")})
	c := w.condition(v1alpha1.ConditionTaintsReady)
	if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "node-b (b), node-c (c); a is active") {
		t.Errorf("condition %+v", c)
	}
	w.writes = 0
	if w.steer(); w.writes != 0 {
		t.Errorf("%d writes although nothing changed", w.writes)
	}

	w.open("b", 2)
	w.reconcile()
	w.checkTaints(map[string][]string{"node-a": mine("a"), "node-c": mine("c")})

	w.move("a", "node-d")
	w.reconcile()
	w.checkTaints(map[string][]string{"node-d": mine("a"), "node-c": mine("c")})

	// Without a pod the site is where it was last.
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels("a")...))
	w.reconcile()
	w.checkTaints(map[string][]string{"node-d": mine("a"), "node-c": mine("c")})

	// A node with the active site is fit, whoever else is there; of two sites it names one, always the same.
	w.move("c", "node-b")
	w.reconcile()
	w.checkTaints(map[string][]string{"node-d": mine("a")})
	w.move("c", "node-d")
	w.reconcile()
	w.checkTaints(map[string][]string{"node-d": mine("a")})

	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Taints.Enabled = false })
	w.reconcile()
	w.checkTaints(map[string][]string{})
	if c := w.condition(v1alpha1.ConditionTaintsReady); c.Type != "" {
		t.Errorf("condition %+v", c)
	}
}

func TestTaintsOfARemovedSite(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	w.steer()
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = g.Spec.Sites[:2] })
	w.steer()
	w.checkTaints(map[string][]string{"node-b": mine("b")})
}

// The taints of others, among them the proof that a node is down, are neither lost nor changed.
func TestTaintsOfOthersStay(t *testing.T) {
	w := steeredWorld(t)
	n := &corev1.Node{}
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: "node-b"}, n))
	n.Spec.Taints = []corev1.Taint{
		{Key: v1alpha1.OutOfServiceTaint, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute},
		{Key: testTaint, Value: "b", Effect: corev1.TaintEffectNoSchedule},
		{Key: v1alpha1.InactiveSiteTaint("shop", "billing"), Value: "x", Effect: v1alpha1.InactiveSiteEffect},
	}
	w.must(w.c.Update(w.ctx, n))
	others := []string{v1alpha1.OutOfServiceTaint + "=nodeshutdown:NoExecute", "billing.shop.mysql-mfg.io/inactive-site=x:PreferNoSchedule"}
	w.open("a", 1)
	w.steer()
	w.checkTaints(map[string][]string{"node-b": append(slices.Clone(others), mine("b")...), "node-c": mine("c")})
	w.open("b", 2)
	w.reconcile()
	w.checkTaints(map[string][]string{"node-a": mine("a"), "node-b": others, "node-c": mine("c")})
}

// A node that somebody else changes at the same time is read again, and nothing of that change is lost.
func TestTaintOfANodeThatChanges(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	raced := false
	w.intercept(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetName() == "node-b" && !raced {
				raced = true
				n := &corev1.Node{}
				w.must(c.Get(ctx, client.ObjectKey{Name: "node-b"}, n))
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.OutOfServiceTaint, Effect: corev1.TaintEffectNoExecute})
				w.must(c.Update(ctx, n))
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	w.steer()
	w.checkTaints(map[string][]string{"node-b": append([]string{v1alpha1.OutOfServiceTaint + ":NoExecute"}, mine("b")...), "node-c": mine("c")})
}

func TestTaintsGoWithTheGroup(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	w.steer()
	w.must(w.c.Delete(w.ctx, w.group()))
	w.reconcile()
	w.checkTaints(map[string][]string{})
}

func forbidNodes(w *world) {
	refuseNodes(w, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-b", nil))
}

// refuseNodes has every change of a node refused.
func refuseNodes(w *world, refusal error) {
	w.intercept(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, ok := o.(*corev1.Node); ok {
				return refusal
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

func TestNodesThatMayNotBeChanged(t *testing.T) {
	w := steeredWorld(t)
	w.open("a", 1)
	forbidNodes(w)
	w.steer()
	c := w.condition(v1alpha1.ConditionTaintsReady)
	if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonForbidden || !strings.Contains(c.Message, "nodeTaints.enabled=true") {
		t.Errorf("condition %+v", c)
	}
	if c := w.condition(v1alpha1.ConditionDNSReady); c.Status != metav1.ConditionTrue {
		t.Errorf("the other follower: %+v", c)
	}
}

// A right that was taken away, or a webhook that denies, must not keep a group from going.
func TestGroupGoesWithoutTheRightToTaint(t *testing.T) {
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: `admission webhook "nodes" denied the request`,
	}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "node-b", nil)
	for name, refusal := range map[string]error{"forbidden": forbidden, "denied by a webhook": denied} {
		t.Run(name, func(t *testing.T) {
			w := steeredWorld(t)
			w.open("a", 1)
			w.steer()
			refuseNodes(w, refusal)
			w.must(w.c.Delete(w.ctx, w.group()))
			w.reconcile()
			if err := w.c.Get(w.ctx, scopetest.Key, &v1alpha1.MysqlFailoverGroup{}); !apierrors.IsNotFound(err) {
				t.Errorf("the group is still there: %v", err)
			}
			if said := w.said.Of(v1alpha1.ReasonTaintsFailed); len(said) != 1 || !strings.Contains(said[0], "kubectl taint nodes --all "+testTaint+"-") {
				t.Errorf("events %v", said)
			}
		})
	}
}

// Two groups share nodes; each has its own key, so neither undoes what the other does.
func TestTaintKeysDiffer(t *testing.T) {
	keys := map[string]bool{}
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {"a-b", "c"}, {"a", "b-c"}} {
		keys[v1alpha1.InactiveSiteTaint(pair[0], pair[1])] = true
	}
	if len(keys) != 4 {
		t.Errorf("keys %v", keys)
	}
}
