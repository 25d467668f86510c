// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// tenantManifests are what the chart installs with limits for groups; a test of the chart keeps the file up to date.
const tenantManifests = "../../charts/testdata/mfg-tenants.yaml"

// tenantLimits are those of that file.
var tenantLimits = limits.Limits{Images: []string{"mysql", "registry.example.com/db/"}, DNSSuffixes: []string{"{namespace}.db.example.com"}}

// The chart's policy refuses what the operator would refuse, and nothing else.
func TestTenantPolicyOnAPIServer(t *testing.T) {
	c := startTenants(t)
	for _, image := range []string{
		"mysql", "mysql:9.7", "mysql:9.7@sha256:00", "mysql@sha256:00", "mysql-evil:9.7", "mysql/evil", "mysql:5000/evil", "evil/mysql:9.7",
		"registry.example.com/db/mysql:9", "registry.example.com/dbs/mysql:9", "registry.example.com/db",
	} {
		group := scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) { g.UID, g.Spec.Image = "", image })
		err := c.Create(t.Context(), group, client.DryRunAll)
		if want := tenantLimits.AllowsImage(image); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "allowedImages") {
			t.Errorf("image %s: %v, and the operator allows it: %t", image, err, want)
		}
	}
	for _, name := range []string{
		"shop.db.example.com", "a.shop.db.example.com", "eshop.db.example.com", "a.billing.db.example.com", "www.example.com", "db.example.com",
	} {
		group := scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) { g.UID, g.Spec.DNS = "", &v1alpha1.DNSSpec{Name: name} })
		err := c.Create(t.Context(), group, client.DryRunAll)
		if want := tenantLimits.AllowsName(name, scopetest.Key.Namespace); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "allowedDNSSuffixes") {
			t.Errorf("name %s: %v, and the operator allows it: %t", name, err, want)
		}
	}
}

// startTenants starts an API server with a group that was there before the policy, and with the policy.
func startTenants(t *testing.T) client.Client {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are")
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute,
	}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := newScheme(t)
	if err := admissionv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	old := scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) { g.UID, g.Name, g.Spec.Image = "", "old", "evil/mysql:9.7" })
	for _, obj := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scopetest.Key.Namespace}}, old} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	installTenants(t, c)
	probe := scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) { g.UID, g.Spec.Image = "", "evil/mysql:9.7" })
	for deadline := time.Now().Add(time.Minute); !apierrors.IsForbidden(c.Create(t.Context(), probe.DeepCopy(), client.DryRunAll)); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the policy is not in force")
		}
	}
	// What a group has it keeps: whatever else is changed about it.
	old.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: "2027-01-01T00:00:00Z"}
	if err := c.Update(t.Context(), old); err != nil {
		t.Errorf("a group from before cannot be changed any more: %v", err)
	}
	old.Spec.Image = "evil/mysql:9.8"
	if err := c.Update(t.Context(), old); !apierrors.IsForbidden(err) {
		t.Errorf("it gets another image that is not allowed: %v", err)
	}
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := c.Get(t.Context(), client.ObjectKey{Name: "mfg-operator-mfg-system-tenants"}, &policy); err != nil {
		t.Fatal(err)
	}
	if s := policy.Status.TypeChecking; s != nil && len(s.ExpressionWarnings) > 0 {
		t.Errorf("the policy has wrong types: %+v", s.ExpressionWarnings)
	}
	return c
}

func installTenants(t *testing.T, c client.Client) {
	t.Helper()
	raw, err := os.ReadFile(tenantManifests)
	if err != nil {
		t.Fatal(err)
	}
	installed := 0
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatal(err)
		}
		var obj client.Object
		switch {
		case !strings.HasSuffix(head.Metadata.Name, "-tenants"):
			continue
		case head.Kind == "ValidatingAdmissionPolicy":
			obj = &admissionv1.ValidatingAdmissionPolicy{}
		case head.Kind == "ValidatingAdmissionPolicyBinding":
			obj = &admissionv1.ValidatingAdmissionPolicyBinding{}
		default:
			t.Fatalf("what is %s %s?", head.Kind, head.Metadata.Name)
		}
		if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		installed++
	}
	if installed != 2 {
		t.Fatalf("%d objects of the policy", installed)
	}
}
