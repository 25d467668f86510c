// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

func TestDNSEndpointGolden(t *testing.T) {
	tests := map[string]struct {
		ttl    int32
		record render.DNSRecord
	}{
		"dns-address": {10, render.DNSRecord{Type: "A", Target: "192.0.2.7"}},
		"dns-name":    {0, render.DNSRecord{Type: "CNAME", Target: "paris.example.org"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(func(in *render.Input) {
				in.Group.Spec.DNS = &v1alpha1.DNSSpec{Name: "orders.example.org", TTLSeconds: tc.ttl}
			})
			got, err := yaml.Marshal(render.DNSEndpoint(in, tc.record).Object)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run with -update and read the diff (-want +got):\n%s", diff)
			}
		})
	}
}

// The object that is removed must be the one that was made.
func TestNoDNSEndpointIsTheSameObject(t *testing.T) {
	in := input(func(in *render.Input) { in.Group.Spec.DNS = &v1alpha1.DNSSpec{Name: "orders.example.org"} })
	made, gone := render.DNSEndpoint(in, render.DNSRecord{}), render.NoDNSEndpoint(in)
	if made.GroupVersionKind() != gone.GroupVersionKind() || made.GetName() != gone.GetName() || made.GetNamespace() != gone.GetNamespace() {
		t.Errorf("made %s %s/%s, removes %s %s/%s", made.GroupVersionKind(), made.GetNamespace(), made.GetName(),
			gone.GroupVersionKind(), gone.GetNamespace(), gone.GetName())
	}
}

// Turning the taint on must not restart pods, so the toleration is always there; and it must match the taint.
func TestPodsTolerateTheTaintOfTheirGroup(t *testing.T) {
	off := input()
	on := input(func(in *render.Input) { in.Group.Spec.Taints = &v1alpha1.TaintsSpec{Enabled: true} })
	if diff := cmp.Diff(pod(off), pod(on)); diff != "" {
		t.Errorf("enabling taints changes the pod:\n%s", diff)
	}
	taint := corev1.Taint{Key: v1alpha1.InactiveSiteTaint("shop", "orders"), Value: "paris", Effect: v1alpha1.InactiveSiteEffect}
	if !slices.ContainsFunc(pod(on).Tolerations, func(x corev1.Toleration) bool {
		return x.Key == taint.Key && x.Operator == corev1.TolerationOpExists && (x.Effect == "" || x.Effect == taint.Effect)
	}) {
		t.Errorf("no toleration of %s among %+v", taint.Key, pod(on).Tolerations)
	}
}
