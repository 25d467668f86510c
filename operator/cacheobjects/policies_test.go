// SPDX-License-Identifier: Apache-2.0

package cacheobjects_test

import (
	"os"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
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
