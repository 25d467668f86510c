// SPDX-License-Identifier: Apache-2.0

// The packages of a real API server for tests do not compile on Windows.
//go:build !windows

package cmd

import (
	"context"
	"io"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// realAPI is a real API server with the chart's admission policy. What is missing is a kubelet and the operator: the test
// plays both.
type realAPI struct {
	t               *testing.T
	admin, operator ctrl.Client
	proxy           *httputil.ReverseProxy
}

func newRealAPI(t *testing.T) *realAPI {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are")
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd")}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute}
	// Owners then need a right of their own, as on some distributions.
	env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a := &realAPI{t: t}
	connect := func(as string) ctrl.Client {
		c := rest.CopyConfig(config)
		c.Impersonate.UserName = as
		made, err := ctrl.New(c, ctrl.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	a.admin, a.operator = connect(""), connect("system:serviceaccount:mfg-system:mfg-operator")
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	a.proxy = &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	a.install()
	return a
}

func (a *realAPI) create(obj ctrl.Object) {
	a.t.Helper()
	if err := a.admin.Create(a.t.Context(), obj); err != nil {
		a.t.Fatal(err)
	}
}

// install applies what the chart installs with escrow switched on, and makes a user who may restore Secrets and no more.
func (a *realAPI) install() {
	a.t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "charts", "testdata", "mfg-escrow.yaml"))
	if err != nil {
		a.t.Fatal(err)
	}
	kinds := map[string]func() ctrl.Object{
		"ClusterRole":                      func() ctrl.Object { return &rbacv1.ClusterRole{} },
		"ClusterRoleBinding":               func() ctrl.Object { return &rbacv1.ClusterRoleBinding{} },
		"ValidatingAdmissionPolicy":        func() ctrl.Object { return &admissionv1.ValidatingAdmissionPolicy{} },
		"ValidatingAdmissionPolicyBinding": func() ctrl.Object { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			a.t.Fatal(err)
		}
		if create, ok := kinds[head.Kind]; ok {
			obj := create()
			if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
				a.t.Fatal(err)
			}
			a.create(obj)
		}
	}
	a.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	a.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "restorer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{cli.Resource}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}})
	a.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "restorer"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "restorer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "restorer"}}})
}

func (a *realAPI) group() *v1alpha1.MysqlFailoverGroup {
	a.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := a.admin.Get(a.t.Context(), ctrl.ObjectKey{Namespace: "shop", Name: "orders"}, g); err != nil {
		a.t.Fatal(err)
	}
	return g
}

// lost makes a group whose site frankfurt has a running pod, and no Secret any more.
func (a *realAPI) lost() {
	a.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}, Spec: v1alpha1.MysqlFailoverGroupSpec{
		TLS: &v1alpha1.TLSSpec{SecretName: "orders-tls"}, EncryptionAtRest: &v1alpha1.EncryptionAtRestSpec{Enabled: true},
		Sites: []v1alpha1.Site{{Name: "paris", Role: v1alpha1.PrimaryCandidate}, {Name: "frankfurt", Role: v1alpha1.PrimaryCandidate}},
	}}
	a.create(g)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-frankfurt-0", Labels: map[string]string{
			v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: "frankfurt"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: pods.ContainerMySQL, Image: "mysql:9.7"}}},
	}
	a.create(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: pods.ContainerMySQL, Image: "mysql:9.7", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	if err := a.admin.Status().Update(a.t.Context(), pod); err != nil {
		a.t.Fatal(err)
	}
	a.fail()
}

// fail is what the operator says of the loss.
func (a *realAPI) fail() {
	a.t.Helper()
	g := a.group()
	g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{{
		Name: "frankfurt", Phase: v1alpha1.KeyringFailed, KeyringVersion: 3, KeyringSecret: lostSecret,
		KeyringDigest: wire.KeyringDigest([]byte(keyMaterial)), Message: "the escrow Secret is missing",
	}}}
	if err := a.admin.Status().Update(a.t.Context(), g); err != nil {
		a.t.Fatal(err)
	}
}

// operate is what the operator does with a Secret that has the right content.
func (a *realAPI) operate() {
	a.t.Helper()
	s := &corev1.Secret{}
	if err := a.operator.Get(a.t.Context(), ctrl.ObjectKey{Namespace: "shop", Name: lostSecret}, s); err != nil {
		return
	}
	g := a.group()
	st := &g.Status.EncryptionAtRest.Sites[0]
	if st.Message != "" && keyrings.Digest(s) == st.KeyringDigest {
		st.Phase, st.Message = v1alpha1.KeyringSealed, ""
		if err := a.admin.Status().Update(a.t.Context(), g); err != nil && !apierrors.IsConflict(err) {
			a.t.Error(err)
		}
	}
	if keyrings.InEscrow(s) && metav1.GetControllerOf(s) == nil {
		before := s.DeepCopy()
		s.OwnerReferences = keyrings.Secret(g, *st, nil).OwnerReferences
		if err := a.operator.Patch(a.t.Context(), s, ctrl.MergeFrom(before)); err != nil {
			a.t.Error(err)
		}
	}
}

// handsOver is a container with a keyring; there is no kubelet to ask.
type handsOver struct{ Cluster }

func (handsOver) Exec(_ context.Context, e pods.Execution) error {
	_, err := io.WriteString(e.Out, keyMaterial)
	return err
}

func (a *realAPI) run(args ...string) ran {
	o := runOptions{tick: func(int) { a.operate() }, cluster: func(c Cluster) Cluster { return handsOver{c} }}
	return run(a.t, a.proxy, o, append(args, "-n", "shop")...)
}

// restored looks at the Secret as it is now.
func (a *realAPI) restored() *corev1.Secret {
	a.t.Helper()
	s := &corev1.Secret{}
	if err := a.admin.Get(a.t.Context(), ctrl.ObjectKey{Namespace: "shop", Name: lostSecret}, s); err != nil {
		a.t.Fatal(err)
	}
	g := a.group()
	st := g.Status.EncryptionAtRest.Sites[0]
	if lacks := keyrings.Lacks(keyrings.Secret(g, st, nil), s); len(lacks) > 0 || keyrings.Digest(s) != st.KeyringDigest || st.Phase != v1alpha1.KeyringSealed {
		a.t.Errorf("it lacks %v; phase %s", lacks, st.Phase)
	}
	if err := a.admin.Delete(a.t.Context(), s.DeepCopy(), ctrl.DryRunAll); !apierrors.IsForbidden(err) {
		a.t.Errorf("it is not protected: %v", err)
	}
	return s
}

// TestRecoverKeyringOnAPIServer: the same against a real API server: what it takes, in which form, what its policy
// refuses, and whose change it says it was.
func TestRecoverKeyringOnAPIServer(t *testing.T) {
	a := newRealAPI(t)
	a.lost()
	if got := a.run("keyring", "list", "orders"); got.code != cli.ExitDegraded || !strings.Contains(got.out, "Missing") {
		t.Errorf("%+v", got)
	}
	for _, how := range []string{"client", "server"} {
		if got := a.run("recover-keyring", "orders", "frankfurt", "--dry-run="+how); got.code != cli.ExitHealthy {
			t.Errorf("%s: %+v", how, got)
		}
	}
	if got := a.run("recover-keyring", "orders", "frankfurt", "--yes"); got.code != cli.ExitHealthy {
		t.Fatalf("%+v", got)
	}
	s := a.restored()
	if !slices.ContainsFunc(s.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == cli.FieldManager }) {
		t.Error("it cannot be told who made it")
	}
	var events corev1.EventList
	if err := a.admin.List(t.Context(), &events, ctrl.InNamespace("shop")); err != nil || len(events.Items) != 1 || events.Items[0].Reason != string(v1alpha1.ReasonKeyringRecovered) {
		t.Errorf("%d events: %v", len(events.Items), err)
	}
	if got := a.run("recover-keyring", "orders", "frankfurt", "--yes"); got.code != cli.ExitHealthy || !strings.Contains(got.out, "nothing is missing") {
		t.Errorf("%+v", got)
	}
	if got := a.run("keyring", "verify", "orders"); got.code != cli.ExitHealthy || !strings.Contains(got.out, "same") {
		t.Errorf("%+v", got)
	}

	// Somebody gives it up, and whoever restores it may neither own, nor patch status, nor record events.
	before := s.DeepCopy()
	s.Labels[v1alpha1.LabelAllowDeletion] = "true"
	if err := a.admin.Patch(t.Context(), s, ctrl.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := a.admin.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	a.fail()
	got := a.run("recover-keyring", "orders", "frankfurt", "--yes", "--as", "restorer")
	for _, want := range []string{"the operator adds the owner", "the operator sets it", "no event was recorded"} {
		if got.code != cli.ExitHealthy || !strings.Contains(got.errOut, want) {
			t.Fatalf("lacks %q: %+v", want, got)
		}
	}
	a.restored()
}
