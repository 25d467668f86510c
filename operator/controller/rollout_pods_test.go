// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// What a group adds to its pods comes by new pods: one site at a time, the replicas first, and the active site after it gave its role away.
func TestLabelsAndAnnotationsOfPodsComeInOrder(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MysqlFailoverGroup){
		"labels":         func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.PodLabels = map[string]string{"team": "payments"} },
		"annotations":    func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.PodAnnotations = map[string]string{"team": "payments"} },
		"priority class": func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.PriorityClassName = "databases" },
	} {
		t.Run(name, func(t *testing.T) {
			w := runningWorld(t)
			w.facts.Open("a")
			w.reconcile()
			w.settle("a", "b", "c")
			w.reconcile()
			w.change(change)
			given := func() (sites []string) {
				for _, site := range []string{"a", "b", "c"} {
					d := &appsv1.Deployment{}
					w.get(d, v1alpha1.SiteName("orders", site))
					template := d.Spec.Template
					if template.Labels["team"] == "payments" || template.Annotations["team"] == "payments" || template.Spec.PriorityClassName == "databases" {
						sites = append(sites, site)
					}
				}
				return sites
			}
			for _, step := range []struct {
				settle string
				want   []string
			}{
				{"", []string{"c"}}, {"c", []string{"b", "c"}}, {"b", []string{"b", "c"}}, {"the role", []string{"a", "b", "c"}},
			} {
				switch step.settle {
				case "":
				case "the role":
					w.moveRole("a", "b")
				default:
					w.settle(step.settle)
				}
				for range 3 { // however often it looks, it waits for the site in flight
					w.reconcile()
				}
				got := given()
				slices.Sort(got)
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Fatalf("after %q settled (-want +got):\n%s", step.settle, diff)
				}
			}
		})
	}
}
