// SPDX-License-Identifier: Apache-2.0

//go:build helm

package charts_test

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// kinds are the types of everything that the charts may create.
var kinds = map[string]func() any{
	"Deployment":                       func() any { return &appsv1.Deployment{} },
	"Service":                          func() any { return &corev1.Service{} },
	"ServiceAccount":                   func() any { return &corev1.ServiceAccount{} },
	"Role":                             func() any { return &rbacv1.Role{} },
	"RoleBinding":                      func() any { return &rbacv1.RoleBinding{} },
	"ClusterRole":                      func() any { return &rbacv1.ClusterRole{} },
	"ClusterRoleBinding":               func() any { return &rbacv1.ClusterRoleBinding{} },
	"PodDisruptionBudget":              func() any { return &policyv1.PodDisruptionBudget{} },
	"NetworkPolicy":                    func() any { return &networkingv1.NetworkPolicy{} },
	"CustomResourceDefinition":         func() any { return &apiextensionsv1.CustomResourceDefinition{} },
	"ValidatingAdmissionPolicy":        func() any { return &admissionv1.ValidatingAdmissionPolicy{} },
	"ValidatingAdmissionPolicyBinding": func() any { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
	"PrometheusRule":                   func() any { return &prometheusRule{} },
	"ServiceMonitor":                   func() any { return &serviceMonitor{} },
	"PodMonitor":                       func() any { return &podMonitor{} },
	"ConfigMap":                        func() any { return &corev1.ConfigMap{} },
	"MysqlFailoverGroup":               func() any { return &v1alpha1.MysqlFailoverGroup{} },
}

// objects decodes manifests into their types; a field that does not exist, or is given twice, fails.
func objects(t *testing.T, manifests string) []any {
	t.Helper()
	var all []any
	for _, document := range strings.Split("\n"+manifests, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatalf("parse: %v\n%s", err, document)
		}
		if head.Kind == "" {
			continue
		}
		create, known := kinds[head.Kind]
		if !known {
			t.Fatalf("unexpected kind %q", head.Kind)
		}
		object := create()
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Fatalf("decode %s: %v\n%s", head.Kind, err, document)
		}
		all = append(all, object)
	}
	return all
}

// only gives the one object of a type.
func only[T any](t *testing.T, all []any) *T {
	t.Helper()
	var found []*T
	for _, object := range all {
		if o, ok := object.(*T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("found %d objects of type %T, want one", len(found), new(T))
	}
	return found[0]
}

func TestObjectsDecodeStrictly(t *testing.T) {
	for name, tc := range matrix {
		t.Run(name, func(t *testing.T) {
			if len(objects(t, render(t, tc.chart, tc.values))) == 0 {
				t.Error("nothing is rendered")
			}
		})
	}
}

// The pod must pass the restricted Pod Security Standard.
func TestOperatorPodIsRestricted(t *testing.T) {
	spec := only[appsv1.Deployment](t, objects(t, render(t, operatorChart, `crds: {enabled: false}`))).Spec.Template.Spec
	pod := spec.SecurityContext
	if pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.SeccompProfile == nil || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod security context %+v is not restricted", pod)
	}
	if spec.HostNetwork || spec.HostPID || spec.HostIPC || len(spec.Volumes) != 0 {
		t.Error("the pod asks for the host or for volumes")
	}
	for _, c := range spec.Containers {
		s := c.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil ||
			!slices.Contains(s.Capabilities.Drop, "ALL") || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("security context of %s is not restricted: %+v", c.Name, s)
		}
	}
}

// The operator must never be able to read what it was not given: no wildcard, no listing of Secrets, no exec.
func TestRightsAreLeast(t *testing.T) {
	for _, values := range []string{`crds: {enabled: false}`, matrix["mfg-namespaced"].values, matrix["mfg-escrow"].values} {
		for _, object := range objects(t, render(t, operatorChart, values)) {
			var rules []rbacv1.PolicyRule
			switch o := object.(type) {
			case *rbacv1.ClusterRole:
				rules = o.Rules
			case *rbacv1.Role:
				rules = o.Rules
			}
			for _, rule := range rules {
				all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
				if slices.Contains(all, "*") || slices.Contains(rule.Resources, "pods/exec") {
					t.Errorf("%v is too much", rule)
				}
				// It writes groups by patches alone, and looks at nothing between a Deployment and its pods.
				if slices.Contains(rule.Resources, "replicasets") || !aggregated(object) && slices.Contains(rule.Verbs, "update") &&
					(slices.Contains(rule.Resources, "mysqlfailovergroups") || slices.Contains(rule.Resources, "mysqlfailovergroups/status")) {
					t.Errorf("%v is more than it uses", rule)
				}
				// Where keyrings are taken into escrow, their versions are listed and watched. In its own namespace it lists the keys that it
				// keeps, to find those of groups that are gone.
				lists := slices.Contains(rule.Verbs, "list") && !inOwnNamespace(object) || slices.Contains(rule.Verbs, "watch")
				if slices.Contains(rule.Resources, "secrets") && lists && values != matrix["mfg-escrow"].values {
					t.Errorf("%v reads every Secret", rule)
				}
			}
		}
	}
}

// inOwnNamespace is true for the role that is good for the namespace of the release alone.
func inOwnNamespace(object any) bool {
	role, ok := object.(*rbacv1.Role)
	return ok && role.Name == "mfg-operator-own"
}

// aggregated is true for a role of people.
func aggregated(object any) bool {
	role, ok := object.(*rbacv1.ClusterRole)
	return ok && slices.ContainsFunc(slices.Collect(maps.Keys(role.Labels)), func(label string) bool {
		return strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
	})
}

// The operator may change nodes only where somebody asked for it.
func TestNodesAreReadOnlyUnlessTainted(t *testing.T) {
	for values, want := range map[string][]string{
		`crds: {enabled: false}`:                                                       {"get", "list", "watch"},
		"crds: {enabled: false}\nnodeTaints: {enabled: true}":                          {"get", "list", "patch", "watch"},
		"crds: {enabled: false}\nnodeTaints: {enabled: true}\nwatchNamespaces: [shop]": {"get", "list", "patch", "watch"},
	} {
		var verbs []string
		for _, object := range objects(t, render(t, operatorChart, values)) {
			role, ok := object.(*rbacv1.ClusterRole)
			if !ok {
				continue
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "nodes") {
					verbs = append(verbs, rule.Verbs...)
				}
			}
		}
		slices.Sort(verbs)
		if diff := cmp.Diff(want, verbs); diff != "" {
			t.Errorf("%s: verbs on nodes (-want +got):\n%s", values, diff)
		}
	}
}

// With watchNamespaces the cluster-wide role holds nothing but nodes, and what is read by name.
func TestNamespacedRights(t *testing.T) {
	var cluster, namespaced []string
	for _, object := range objects(t, render(t, operatorChart, matrix["mfg-namespaced"].values)) {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			if o.Labels["rbac.authorization.k8s.io/aggregate-to-view"]+o.Labels["rbac.authorization.k8s.io/aggregate-to-edit"]+
				o.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] != "" {
				continue
			}
			for _, rule := range o.Rules {
				cluster = append(cluster, rule.Resources...)
			}
		case *rbacv1.Role:
			namespaced = append(namespaced, o.Namespace+"/"+o.Name)
		}
	}
	if diff := cmp.Diff([]string{"nodes", "storageclasses", "leases"}, cluster); diff != "" {
		t.Errorf("resources in the whole cluster (-want +got):\n%s", diff)
	}
	slices.Sort(namespaced)
	if diff := cmp.Diff([]string{"billing/mfg-operator-mfg-system-groups", "mfg-system/mfg-operator-own", "shop/mfg-operator-mfg-system-groups"}, namespaced); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

// Two releases make no object of the same name, whatever namespaces they watch: Helm would refuse the second. Only one has the definitions.
func TestTwoReleasesShareNoObject(t *testing.T) {
	for name, tc := range matrix {
		if tc.chart != operatorChart {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ours := keys(t, render(t, tc.chart, tc.values))
			for _, key := range keys(t, render(t, tc.chart, tc.values, "--namespace", "mfg-blue")) {
				if slices.Contains(ours, key) {
					t.Errorf("both make %s", key)
				}
			}
		})
	}
}

// keys are kind, namespace and name of what manifests make; one that they make twice fails.
func keys(t *testing.T, manifests string) (all []string) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+manifests, "\n---\n") {
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("parse: %v\n%s", err, document)
		}
		key := o.Kind + " " + o.Namespace + "/" + o.Name
		switch {
		case o.Kind == "":
			continue
		case slices.Contains(all, key):
			t.Errorf("%s is made twice", key)
		}
		all = append(all, key)
	}
	return all
}

// A release may live in a namespace that it watches: what it may do there for itself and for groups are two Roles.
func TestReleaseWatchesItsOwnNamespace(t *testing.T) {
	for _, namespace := range []string{"mfg-system", "own"} {
		keys(t, render(t, operatorChart, "crds: {enabled: false}\nwatchNamespaces: ["+namespace+"]", "--namespace", namespace))
	}
}

func TestDefinitionInTheChart(t *testing.T) {
	for _, kind := range []string{"mysqlfailovergroups", "mysqlbackups"} {
		plain := &apiextensionsv1.CustomResourceDefinition{}
		raw, err := os.ReadFile("../config/crd/mysql-mfg.io_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(raw, plain); err != nil {
			t.Fatal(err)
		}
		for values, policy := range map[string]string{``: "keep", `crds: {keep: false}`: ""} {
			t.Run(kind+" "+values, func(t *testing.T) {
				named := slices.DeleteFunc(objects(t, render(t, operatorChart, values)), func(o any) bool {
					d, is := o.(*apiextensionsv1.CustomResourceDefinition)
					return is && d.Name != plain.Name
				})
				got := only[apiextensionsv1.CustomResourceDefinition](t, named)
				if !reflect.DeepEqual(plain.Spec, got.Spec) {
					t.Error("the chart's definition is not the one in config/crd: run hack/generate.sh")
				}
				if policy != got.Annotations["helm.sh/resource-policy"] {
					t.Errorf("resource policy %q, want %q", got.Annotations["helm.sh/resource-policy"], policy)
				}
			})
		}
	}
}

// Every field of the spec, whatever its name, passes from the values to the group unchanged.
func TestEveryFieldIsAValue(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(everyField), &values); err != nil {
		t.Fatal(err)
	}
	var group struct {
		Metadata struct {
			Name                string
			Labels, Annotations map[string]string
		}
		Spec map[string]any
	}
	if err := yaml.Unmarshal([]byte(render(t, groupChart, everyField)), &group); err != nil {
		t.Fatal(err)
	}
	if group.Metadata.Name != "billing" || group.Metadata.Labels["team"] != "money" || group.Metadata.Annotations["example.org/owner"] != "us" {
		t.Errorf("metadata %+v does not follow the values", group.Metadata)
	}
	for _, own := range []string{"name", "labels", "annotations"} {
		delete(values, own)
	}
	if diff := cmp.Diff(values, group.Spec); diff != "" {
		t.Errorf("spec (-values +rendered):\n%s", diff)
	}
	spec := reflect.TypeFor[v1alpha1.MysqlFailoverGroupSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		if _, set := values[name]; !set {
			t.Errorf("everyField does not set %q, one of %v", name, slices.Sorted(maps.Keys(values)))
		}
	}
}
