// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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
