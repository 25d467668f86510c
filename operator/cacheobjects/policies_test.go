// SPDX-License-Identifier: Apache-2.0

package cacheobjects_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/render"
)

// A cache pod has the labels of its group. The policies let it in nowhere but at the caches of its own group: not at the operator's status and
// escrow, and not at MySQL but as any client.
func TestPoliciesLetNoCachePodIn(t *testing.T) {
	seen := 0
	for _, file := range []string{"mfg-everything", "group-policy"} {
		raw, err := os.ReadFile("../../charts/testdata/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			var p networkingv1.NetworkPolicy
			if err := yaml.Unmarshal([]byte(document), &p); err != nil || p.Kind != "NetworkPolicy" || strings.HasSuffix(p.Name, "-cache") {
				continue
			}
			seen++
			letsNobodyIn(t, file, p)
		}
	}
	if seen < 2 {
		t.Errorf("only %d policies were seen", seen)
	}
}

func letsNobodyIn(t *testing.T, file string, p networkingv1.NetworkPolicy) {
	t.Helper()
	for _, rule := range p.Spec.Ingress {
		for _, from := range rule.From {
			if from.PodSelector == nil || len(from.PodSelector.MatchLabels)+len(from.PodSelector.MatchExpressions) == 0 {
				continue // what a person lets in, by namespace
			}
			s, err := metav1.LabelSelectorAsSelector(from.PodSelector)
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range []string{"orders", "users", p.Spec.PodSelector.MatchLabels[v1alpha1.LabelGroup]} {
				pod := render.CacheSiteLabels(group, "paris")
				if s.Matches(labels.Set(pod)) {
					t.Errorf("%s: policy %s lets a cache pod in: %v", file, p.Name, from.PodSelector)
				}
			}
		}
	}
}

// An image that the installation does not allow comes into no StatefulSet, not even of a site whose pod is gone: who may only edit groups
// could wait for a drain. Each site keeps the image that it has.
func TestARefusedImageWaitsForNoPodToBeGone(t *testing.T) {
	const allowed, newer = "registry.example.org/valkey:1", "registry.example.org/valkey:2"
	for name, pods := range map[string][]string{"no pod": nil, "the pod of one site": {"c"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.o.Limits = limits.Limits{Images: []string{"registry.example.org/"}}
			w.group.Spec.Cache.Image = allowed
			w.must()
			w.run(pods...)
			w.group.Spec.Cache.Image = newer // c still has the one before, where it has a pod
			w.must()
			w.group.Spec.Cache.Image = "" // the engine's own, of a registry that is not allowed
			w.group.Spec.Sites = append(w.group.Spec.Sites, v1alpha1.Site{Name: "d"})
			if out := w.must(); len(out.Refused) != 1 || out.Refused[0].Reason != v1alpha1.ReasonImageNotAllowed {
				t.Errorf("it is not refused: %+v", out)
			}
			for _, site := range w.sets() {
				want := newer
				if slices.Contains(pods, site) {
					want = allowed
				}
				if got := w.image(site); got != want {
					t.Errorf("the cache of %s is to run %s, want %s", site, got, want)
				}
			}
			if slices.Contains(w.sets(), "d") {
				t.Error("a new one is made")
			}
			// A set of which the image is not known is left as it is.
			w.template("a", "another")
			w.must()
			if slices.Contains(w.done, "apply StatefulSet orders-cache-a") || !slices.Contains(w.done, "apply StatefulSet orders-cache-b") {
				t.Errorf("done %v", w.done)
			}
		})
	}
}

func (w *world) set(site string) *appsv1.StatefulSet {
	w.t.Helper()
	set := &appsv1.StatefulSet{}
	w.check(w.c.Get(w.t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: v1alpha1.CacheSiteName(key.Name, site)}, set))
	return set
}

// image is what a site's cache is to run.
func (w *world) image(site string) string { return w.set(site).Spec.Template.Spec.Containers[0].Image }

// template gives the container of a site's StatefulSet another name.
func (w *world) template(site, name string) {
	set := w.set(site)
	set.Spec.Template.Spec.Containers[0].Name = name
	w.check(w.c.Update(w.t.Context(), set))
}
