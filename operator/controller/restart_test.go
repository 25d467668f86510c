// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestARestartIsAnUpdateInItsOrder: replicas first, each back before the next, the active site once its role has moved. A restart of one site
// touches no other.
func TestARestartIsAnUpdateInItsOrder(t *testing.T) {
	for name, c := range map[string]struct {
		annotation string
		steps      [][]string
	}{
		"all": {v1alpha1.AnnotationRestartedAt, [][]string{{"c"}, {"b", "c"}, {"b", "c"}, {"a", "b", "c"}}},
		"one": {v1alpha1.RestartedAtSite("b"), [][]string{{"b"}, {"b"}, {"b"}, {"b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.facts.Open("a")
			w.reconcile()
			w.settle("a", "b", "c")
			w.reconcile()
			old := w.deployments()
			w.change(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Annotations = map[string]string{c.annotation: "2026-11-26T10:00:00Z"}
			})
			for i, settle := range []func(){func() {}, func() { w.settle("b", "c") }, func() { w.settle("b", "c") }, func() { w.moveRole("a", "b") }} {
				if i > 0 {
					settle()
				}
				for range 3 {
					w.reconcile()
				}
				var changed []string
				for site, hash := range w.deployments() {
					if hash != old[site] {
						changed = append(changed, site)
					}
				}
				slices.Sort(changed)
				if diff := cmp.Diff(c.steps[i], changed); diff != "" {
					t.Fatalf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestAnOrderThatIsTakenOffReplacesNoPod: annotations get lost, by a slip and by tools that apply the group as it is in a file.
func TestAnOrderThatIsTakenOffReplacesNoPod(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	order := func(value string) {
		w.change(func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.RestartedAtSite("b"): value}
			if value == "" {
				g.Annotations = nil
			}
		})
		for range 3 {
			w.reconcile()
			w.settle("a", "b", "c")
		}
	}
	order("")
	plain := w.deployments()
	order("2026-11-26T10:00:00Z")
	old := w.deployments()
	if old["b"] == plain["b"] {
		t.Fatal("the pod was not replaced")
	}
	for _, value := range []string{"now", "", "2026-11-26T10:00:00Z"} {
		if order(value); w.deployments()["b"] != old["b"] {
			t.Errorf("%q replaces the pod", value)
		}
	}
	// Also while there is no pod that could tell.
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels("b")...))
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations = nil })
	if w.reconcile(); w.deployments()["b"] != old["b"] {
		t.Error("it is forgotten with the pod")
	}
	w.settle("b")
	if order("2026-11-26T11:00:00Z"); w.deployments()["b"] == old["b"] {
		t.Error("the next order does nothing")
	}
}
