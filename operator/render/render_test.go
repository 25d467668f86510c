// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type option func(*render.Input)

// input is a group of three sites as the API server would give it, changed by options.
func input(options ...option) render.Input {
	in := render.Input{
		Group: &v1alpha1.MysqlFailoverGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "11111111-2222-3333-4444-555555555555"},
			Spec: v1alpha1.MysqlFailoverGroupSpec{
				Image: "mysql:9.7", ImagePullPolicy: corev1.PullIfNotPresent,
				Sites: []v1alpha1.Site{
					{Name: "paris", Role: v1alpha1.PrimaryCandidate, Priority: 10},
					{Name: "frankfurt", Role: v1alpha1.PrimaryCandidate},
					{Name: "madrid", Role: v1alpha1.DROnly},
				},
				Sidecar: v1alpha1.SidecarSpec{
					LeaseTimeout:      metav1.Duration{Duration: 20 * time.Second},
					PeerCheckInterval: metav1.Duration{Duration: 2 * time.Second},
					FenceTimeout:      metav1.Duration{Duration: 2 * time.Second},
				},
				DeletionPolicy: v1alpha1.DeletionRetain,
			},
		},
		Install: render.Install{
			SidecarImage: "example.org/mfg/sidecar:v1", SidecarPullPolicy: corev1.PullIfNotPresent,
			OperatorURL: "http://mfg-auxiliary.mfg-system.svc:8082",
		},
		Anchors: map[string]string{"paris": "the key that paris trusts"},
	}
	for _, o := range options {
		o(&in)
	}
	return in
}

func tls(in *render.Input) {
	in.Group.Spec.TLS = &v1alpha1.TLSSpec{SecretName: "orders-tls", IssuerRef: &v1alpha1.IssuerRef{Name: "ca", Kind: "ClusterIssuer"}}
}

func deleteData(in *render.Input) { in.Group.Spec.DeletionPolicy = v1alpha1.DeletionDelete }

func conf(pairs ...string) option {
	return func(in *render.Input) {
		in.Group.Spec.MysqlConf = map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			in.Group.Spec.MysqlConf[pairs[i]] = pairs[i+1]
		}
	}
}

// everything sets every field of the specification that the objects depend on.
func everything(in *render.Input) {
	tls(in)
	deleteData(in)
	conf("max_connections", "500", "super-read-only", "OFF", "replica_parallel_workers", "16")(in)
	spec := &in.Group.Spec
	spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	class := "fast"
	site := &spec.Sites[0]
	site.NodeSelector = map[string]string{corev1.LabelTopologyRegion: "eu-west"}
	site.Tolerations = []corev1.Toleration{{Key: "database", Operator: corev1.TolerationOpExists}}
	site.Affinity = &corev1.Affinity{}
	site.Storage = v1alpha1.StorageSpec{Size: resource.MustParse("100Gi"), StorageClassName: &class}
	site.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	spec.Sidecar.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
}

func objects(in render.Input) []any {
	site := in.Group.Spec.Sites[0]
	out := []any{
		render.ConfigMap(in, site), render.DataVolume(in, site), render.Deployment(in, site), render.SiteService(in, site),
		render.PrimaryService(in), render.ReplicasService(in), render.DisruptionBudget(in), render.Protection(in),
		render.AccountsSecret(in, render.Passwords{Operator: "o", Replication: "r", Sidecar: "s", Clone: "c"}),
		render.RootSecret(in, "p"),
	}
	if c := render.Certificate(in); c != nil {
		out = append(out, c.Object)
	}
	return out
}

func TestGolden(t *testing.T) {
	for name, in := range map[string]render.Input{
		"small": input(), "everything": input(everything),
		"sealed": input(encrypted(sealed)), "unsealed": input(encrypted(unsealed)), "fresh": input(encrypted(fresh)), "archived": input(archived),
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, o := range objects(in) {
				body, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "---\n%s", body)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("run with -update and read the diff (-want +got):\n%s", diff)
			}
		})
	}
}

func pod(in render.Input) corev1.PodSpec {
	return render.Deployment(in, in.Group.Spec.Sites[0]).Spec.Template.Spec
}

func containers(spec corev1.PodSpec) map[string]corev1.Container {
	out := map[string]corev1.Container{}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		out[c.Name] = c
	}
	return out
}

func TestOwners(t *testing.T) {
	tests := map[string]struct {
		reason string
		in     render.Input
		kept   bool
	}{
		"retain": {"what cannot be made again outlives the group", input(), false},
		"delete": {"everything goes with the group", input(deleteData), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			site := tt.in.Group.Spec.Sites[0]
			for _, m := range []metav1.ObjectMeta{
				render.DataVolume(tt.in, site).ObjectMeta, render.RootSecret(tt.in, "p").ObjectMeta,
				render.AccountsSecret(tt.in, render.Passwords{}).ObjectMeta,
			} {
				if (len(m.OwnerReferences) == 1) != tt.kept {
					t.Errorf("%s: %s has owners %v", tt.reason, m.Name, m.OwnerReferences)
				}
			}
			for _, m := range []metav1.ObjectMeta{
				render.Deployment(tt.in, site).ObjectMeta, render.SiteService(tt.in, site).ObjectMeta,
				render.ConfigMap(tt.in, site).ObjectMeta, render.DisruptionBudget(tt.in).ObjectMeta,
				render.PrimaryService(tt.in).ObjectMeta, render.ReplicasService(tt.in).ObjectMeta,
			} {
				if len(m.OwnerReferences) != 1 || !*m.OwnerReferences[0].Controller || m.OwnerReferences[0].UID != tt.in.Group.UID {
					t.Errorf("%s has owners %v", m.Name, m.OwnerReferences)
				}
			}
		})
	}
}

func TestServices(t *testing.T) {
	in := input()
	if s := render.PrimaryService(in); s.Spec.Selector != nil || !s.Spec.PublishNotReadyAddresses {
		t.Errorf("the primary Service's selector belongs to the poll loop: %+v", s.Spec)
	}
	want := map[string]string{
		"mysql-mfg.io/failover-group": "orders", "mysql-mfg.io/role": "replica", "mysql-mfg.io/healthy": "yes",
		"mysql-mfg.io/readable": "yes", "app.kubernetes.io/name": "mysql",
	}
	if diff := cmp.Diff(want, render.ReplicasService(in).Spec.Selector); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	site := render.SiteService(in, in.Group.Spec.Sites[0])
	if !site.Spec.PublishNotReadyAddresses || len(site.Spec.Ports) != 3 {
		t.Errorf("site Service %+v", site.Spec)
	}
	labels := render.Deployment(in, in.Group.Spec.Sites[0]).Spec.Template.Labels
	for k, v := range site.Spec.Selector {
		if labels[k] != v {
			t.Errorf("the selector of the site's Service does not match its pod: %s=%s", k, v)
		}
	}
	for _, k := range []string{v1alpha1.LabelRole, v1alpha1.LabelHealthy, v1alpha1.LabelReadable, v1alpha1.LabelProtected} {
		if _, set := labels[k]; set {
			t.Errorf("label %s in the template would fight with the poll loop", k)
		}
	}
}

// The API server refuses the eviction of a pod that two budgets select, with an error that ends the drain of a node.
func TestNoPodHasTwoBudgets(t *testing.T) {
	in := input()
	for name, tt := range map[string]struct {
		label string
		want  string
		gone  int
	}{
		"active site":     {v1alpha1.HealthyYes, "mysql-orders-protected", 0},
		"replica":         {v1alpha1.HealthyNo, "mysql-orders", 1},
		"not looked at":   {"", "mysql-orders", 1},
		"of another kind": {"perhaps", "mysql-orders", 1},
	} {
		pod := labels.Set(render.Deployment(in, in.Group.Spec.Sites[0]).Spec.Template.Labels)
		pod = labels.Merge(pod, nil)
		if tt.label != "" {
			pod[v1alpha1.LabelProtected] = tt.label
		}
		var names []string
		for _, b := range []*policyv1.PodDisruptionBudget{render.DisruptionBudget(in), render.Protection(in)} {
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err != nil {
				t.Fatal(err)
			}
			if !selector.Matches(pod) {
				continue
			}
			names = append(names, b.Name)
			if b.Spec.MinAvailable != nil || b.Spec.MaxUnavailable.IntValue() != tt.gone || *b.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
				t.Errorf("%s: %+v", name, b.Spec)
			}
		}
		if diff := cmp.Diff([]string{tt.want}, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSpecHash(t *testing.T) {
	hash := func(options ...option) string {
		in := input(options...)
		d := render.Deployment(in, in.Group.Spec.Sites[0])
		h := d.Annotations[v1alpha1.AnnotationSpecHash]
		if h == "" || h != d.Spec.Template.Annotations[v1alpha1.AnnotationSpecHash] {
			t.Fatalf("hash %q on the Deployment, %q on the pod", h, d.Spec.Template.Annotations[v1alpha1.AnnotationSpecHash])
		}
		return h
	}
	base := hash()
	same := map[string]option{
		"order of sites": func(in *render.Input) { slices.Reverse(in.Group.Spec.Sites[1:]) },
		"an ignored key": conf("super_read_only", "OFF"),
		"priority":       func(in *render.Input) { in.Group.Spec.Sites[0].Priority = 3 },
		"storage size":   func(in *render.Input) { in.Group.Spec.Sites[0].Storage.Size = resource.MustParse("20Gi") },
		"deletion":       deleteData,
		"another restart": func(in *render.Input) {
			in.Group.Annotations = map[string]string{v1alpha1.RestartedAtSite("madrid"): "2026-11-26T10:00:00Z", v1alpha1.AnnotationRestartedAt: "soon"}
		},
		"another's key": func(in *render.Input) { in.Anchors["madrid"] = "another key" },
	}
	for name, o := range same {
		if hash(o) != base {
			t.Errorf("%s would restart the pods", name)
		}
	}
	other := map[string]option{
		"a setting": conf("max_connections", "500"),
		"the image": func(in *render.Input) { in.Group.Spec.Image = "mysql:9.8" },
		"a new site": func(in *render.Input) {
			in.Group.Spec.Sites = append(in.Group.Spec.Sites, v1alpha1.Site{Name: "rome"})
		},
		"a restart": func(in *render.Input) {
			in.Group.Annotations = map[string]string{v1alpha1.AnnotationRestartedAt: "2026-11-26T10:00:00Z"}
		},
		"its own restart": func(in *render.Input) {
			in.Group.Annotations = map[string]string{v1alpha1.RestartedAtSite(in.Group.Spec.Sites[0].Name): "2026-11-26T10:00:00Z"}
		},
		"tls":                    tls,
		"the key that it trusts": func(in *render.Input) { in.Anchors = map[string]string{"paris": "another key"} },
	}
	for name, o := range other {
		if hash(o) == base {
			t.Errorf("%s would not reach the pods", name)
		}
	}
}

func TestCertificateNames(t *testing.T) {
	if render.Certificate(input()) != nil {
		t.Error("a certificate without spec.tls")
	}
	spec, _ := render.Certificate(input(tls)).Object["spec"].(map[string]any)
	names, _ := spec["dnsNames"].([]any)
	for _, want := range []string{"mysql-orders-paris.shop.svc", "mysql-orders-madrid", "mysql-orders-primary.shop", "mysql-orders-replicas.shop.svc.cluster.local"} {
		if !slices.Contains(names, any(want)) {
			t.Errorf("name %s is missing in %v", want, names)
		}
	}
	for _, n := range names {
		if s, _ := n.(string); strings.Contains(s, "*") {
			t.Errorf("wildcard %s", s)
		}
	}
	// A site that left the specification and is still there may be the active one: its replicas check its name.
	for what, status := range map[string]v1alpha1.MysqlFailoverGroupStatus{
		"it is active":  {ActiveSite: "rome"},
		"it is there":   {Sites: []v1alpha1.SiteStatus{{Name: "rome"}, {Name: "paris"}}},
		"both are said": {ActiveSite: "rome", Sites: []v1alpha1.SiteStatus{{Name: "rome"}}},
	} {
		in := input(tls)
		in.Group.Status = status
		names := render.CertificateNames(in.Group)
		if !slices.Contains(names, "mysql-orders-rome.shop.svc") || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
			t.Errorf("%s: %v", what, names)
		}
	}
}
