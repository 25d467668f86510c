// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// confinedManifests are what the chart installs with both policies; a test of the chart keeps the file up to date.
const confinedManifests = "../../charts/testdata/mfg-confined.yaml"

// onCallAccount may edit groups, and give transactions up; tenantAccount may only edit groups.
const onCallAccount = "on-call"

// startConfined starts an API server with the policies of the chart and three accounts, and waits until the policies are in force.
func startConfined(t *testing.T) *locked {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are")
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute,
		CRDs: []*apiextensionsv1.CustomResourceDefinition{
			anyContent("cert-manager.io", "v1", "certificates", "Certificate"), anyContent("externaldns.k8s.io", "v1alpha1", "dnsendpoints", "DNSEndpoint"),
		},
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
	l := &locked{t: t, config: config}
	l.admin = l.as("")
	l.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scopetest.Key.Namespace}})
	l.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mfg-system"}})
	l.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "editor"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"mysql-mfg.io"}, Resources: []string{"mysqlfailovergroups"}, Verbs: []string{"get", "create", "update", "patch", "delete"},
	}}})
	raw, err := os.ReadFile(confinedManifests)
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
		case head.Kind == "ValidatingAdmissionPolicy":
			obj = &admissionv1.ValidatingAdmissionPolicy{}
		case head.Kind == "ValidatingAdmissionPolicyBinding":
			obj = &admissionv1.ValidatingAdmissionPolicyBinding{}
		case head.Kind == "ClusterRole" && strings.HasSuffix(head.Metadata.Name, "-accept-data-loss"):
			obj = &rbacv1.ClusterRole{}
		default:
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
			t.Fatal(err)
		}
		l.create(obj)
		installed++
	}
	if installed != 5 {
		t.Fatalf("%d objects of the policies", installed)
	}
	for _, b := range [][2]string{
		{operatorAccount, "cluster-admin"}, {tenantAccount, "editor"}, {onCallAccount, "editor"}, {onCallAccount, "mfg-operator-mfg-system-accept-data-loss"},
	} {
		l.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b[1]},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: b[0]}},
		})
	}
	operator, tenant := l.as(operatorAccount), l.as(tenantAccount)
	l.eventually("the policies are in force", func() bool {
		return refused(operator.Create(t.Context(), aSecret("somebodys", nil), client.DryRunAll)) &&
			refused(tenant.Create(t.Context(), annotated("probe", v1alpha1.AnnotationForceFailover, "a"), client.DryRunAll))
	})
	return l
}

func aSecret(name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: name, Labels: labels}, StringData: map[string]string{"a": "b"}}
}

func annotated(name, key, value string) *v1alpha1.MysqlFailoverGroup {
	return scopetest.Group(func(g *v1alpha1.MysqlFailoverGroup) {
		g.UID, g.Name = "", name
		if key != "" {
			g.Annotations = map[string]string{key: value}
		}
	})
}

// TestConfinementOnAPIServer plays both policies against one API server, which takes seconds to start.
func TestConfinementOnAPIServer(t *testing.T) {
	l := startConfined(t)
	t.Run("transactions are given up by those who may", func(t *testing.T) { l.givesUp(t) })
	t.Run("the operator changes what is of a group", func(t *testing.T) { l.confines(t) })
	t.Run("the operator puts right what lost its label", func(t *testing.T) { l.repairs(t) })
	t.Run("the operator makes harmless pods", func(t *testing.T) { l.harmless(t) })
}

// givesUp: only with the right of its own; everything else that an editor does goes on as before.
func (l *locked) givesUp(t *testing.T) {
	ctx, tenant, onCall := t.Context(), l.as(tenantAccount), l.as(onCallAccount)
	group := annotated("orders", "", "")
	if err := tenant.Create(ctx, group); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key, value string
		loses      bool
	}{
		{v1alpha1.AnnotationForceFailover, "a", true},
		{v1alpha1.AnnotationForceFailover, "", true},
		{v1alpha1.AnnotationRecloneSite, "a:confirm", true},
		{v1alpha1.AnnotationRecloneSite, " a:confirm ", true},
		{v1alpha1.AnnotationRecloneSite, "a", false},
		{v1alpha1.AnnotationPauseUntil, "2027-01-01T00:00:00Z", false},
	} {
		changed := group.DeepCopy()
		changed.Annotations = map[string]string{c.key: c.value}
		if err := tenant.Update(ctx, changed.DeepCopy(), client.DryRunAll); refused(err) != c.loses || err != nil && !c.loses {
			t.Errorf("an editor sets %s=%q: %v", c.key, c.value, err)
		}
		if err := tenant.Create(ctx, annotated("new", c.key, c.value), client.DryRunAll); refused(err) != c.loses || err != nil && !c.loses {
			t.Errorf("an editor makes a group with %s=%q: %v", c.key, c.value, err)
		}
		if err := onCall.Update(ctx, changed.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("who is on call sets %s=%q: %v", c.key, c.value, err)
		}
	}
	// An order that stands keeps nobody from other work, and can be taken back; another value is another order.
	group.Annotations = map[string]string{v1alpha1.AnnotationForceFailover: "a"}
	if err := onCall.Update(ctx, group); err != nil {
		t.Fatal(err)
	}
	change := func(do func(map[string]string)) error {
		changed := group.DeepCopy()
		do(changed.Annotations)
		return tenant.Update(ctx, changed, client.DryRunAll)
	}
	if err := change(func(a map[string]string) { a["example.org/x"] = "y" }); err != nil {
		t.Errorf("beside an order: %v", err)
	}
	if err := change(func(a map[string]string) { delete(a, v1alpha1.AnnotationForceFailover) }); err != nil {
		t.Errorf("an order is taken back: %v", err)
	}
	if err := change(func(a map[string]string) { a[v1alpha1.AnnotationForceFailover] = "b" }); !refused(err) {
		t.Errorf("an order is changed to another site: %v", err)
	}
}

// confines: to labelled objects, and to Secrets that were prepared for a group.
func (l *locked) confines(t *testing.T) {
	ctx, operator := t.Context(), l.as(operatorAccount)
	own := render.SiteLabels(scopetest.Key.Name, "a")
	for _, s := range []*corev1.Secret{aSecret("somebodys", nil), aSecret("mysql-orders-root", nil), aSecret("labelled", own)} {
		l.create(s)
	}
	for _, c := range []struct {
		name string
		ok   bool
	}{{"somebodys", false}, {"mysql-orders-root", true}, {"labelled", true}} {
		var s corev1.Secret
		if err := operator.Get(ctx, client.ObjectKey{Namespace: scopetest.Key.Namespace, Name: c.name}, &s); err != nil {
			t.Fatal(err)
		}
		s.Labels = own
		s.StringData = map[string]string{"a": "c"}
		if err := operator.Update(ctx, &s, client.DryRunAll); refused(err) == c.ok || err != nil && c.ok {
			t.Errorf("it changes %s: %v", c.name, err)
		}
		if err := operator.Delete(ctx, &s, client.DryRunAll); refused(err) == c.ok || err != nil && c.ok {
			t.Errorf("it deletes %s: %v", c.name, err)
		}
		if err := l.admin.Delete(ctx, &s, client.DryRunAll); err != nil {
			t.Errorf("somebody else deletes %s: %v", c.name, err)
		}
	}
	var s corev1.Secret
	if err := operator.Get(ctx, client.ObjectKey{Namespace: scopetest.Key.Namespace, Name: "labelled"}, &s); err != nil {
		t.Fatal(err)
	}
	for _, labels := range []map[string]string{render.SiteLabels("another", "a"), nil} {
		changed := s.DeepCopy()
		changed.Labels = labels
		if err := operator.Update(ctx, changed, client.DryRunAll); !refused(err) {
			t.Errorf("it gives a Secret of the group away, labels %v: %v", labels, err)
		}
	}
	if err := operator.Create(ctx, aSecret("mysql-new", nil), client.DryRunAll); !refused(err) {
		t.Errorf("it makes a Secret without a label: %v", err)
	}
	if err := operator.Create(ctx, aSecret("new", own), client.DryRunAll); err != nil {
		t.Errorf("it makes one with a label: %v", err)
	}
	key := aSecret("mfg-authority-x", nil)
	key.Namespace = "mfg-system"
	if err := operator.Create(ctx, key, client.DryRunAll); err != nil {
		t.Errorf("it makes a key in its own namespace: %v", err)
	}
}

// repairs: what a group controls, although somebody took its label, and nothing that only has the name of such a thing.
func (l *locked) repairs(t *testing.T) {
	ctx, operator := t.Context(), l.as(operatorAccount)
	group := scopetest.Group()
	in := render.Input{Group: group}
	config, service := render.ConfigMap(in, group.Spec.Sites[0]), render.PrimaryService(in)
	for _, obj := range []client.Object{config, service} {
		stripped := obj.DeepCopyObject().(client.Object)
		stripped.SetLabels(nil)
		if err := l.admin.Create(ctx, stripped); err != nil {
			t.Fatal(err)
		}
		put := func(labels map[string]string) error {
			wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				t.Fatal(err)
			}
			delete(wanted, "status")
			u := &unstructured.Unstructured{Object: wanted}
			u.SetLabels(labels)
			return operator.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(v1alpha1.ManagerController), client.ForceOwnership, client.DryRunAll)
		}
		if err := put(obj.GetLabels()); err != nil {
			t.Errorf("I3: it cannot put %s right: %v", obj.GetName(), err)
		}
		if err := put(nil); err != nil { // the poll loop points the primary Service, and writes no label
			t.Errorf("it cannot change %s before the label is back: %v", obj.GetName(), err)
		}
		if err := put(render.GroupLabels("another")); !refused(err) {
			t.Errorf("it gives %s to another group: %v", obj.GetName(), err)
		}
		for what, owners := range map[string][]metav1.OwnerReference{
			"nobody's": nil, "another controller's": {{APIVersion: "apps/v1", Kind: "Deployment", Name: group.Name, UID: "x", Controller: new(true)}},
			"controlled by nobody": {{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MysqlFailoverGroup", Name: group.Name, UID: "x"}},
		} {
			stripped.SetOwnerReferences(owners)
			if err := l.admin.Update(ctx, stripped); err != nil {
				t.Fatal(err)
			}
			labelled := stripped.DeepCopyObject().(client.Object)
			labelled.SetLabels(obj.GetLabels())
			if err := operator.Update(ctx, labelled, client.DryRunAll); !refused(err) {
				t.Errorf("it takes %s, which is %s: %v", obj.GetName(), what, err)
			}
		}
		if err := l.admin.Delete(ctx, stripped); err != nil {
			t.Fatal(err)
		}
	}
}

// harmless: what the operator renders passes, and each thing by which a pod would gain something is refused.
func (l *locked) harmless(t *testing.T) {
	ctx, operator := t.Context(), l.as(operatorAccount)
	group := scopetest.Group()
	in := render.Input{Group: group, Install: render.Install{SidecarImage: "sidecar:test", OperatorURL: "http://operator"}}
	good := render.Deployment(in, group.Spec.Sites[0])
	good.OwnerReferences = nil
	if err := operator.Create(ctx, good.DeepCopy(), client.DryRunAll); err != nil {
		t.Fatalf("a site as it is rendered: %v", err)
	}
	for name, spoil := range map[string]func(*corev1.PodSpec){
		"the node's network":   func(s *corev1.PodSpec) { s.HostNetwork, s.SecurityContext.Sysctls = true, nil },
		"the node's processes": func(s *corev1.PodSpec) { s.HostPID, s.ShareProcessNamespace = true, nil },
		"the node's memory":    func(s *corev1.PodSpec) { s.HostIPC = true },
		"a token":              func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = nil },
		"the node's files": func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		},
		"a projected token": func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "x"}}},
			}}})
		},
		"privileges": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.AllowPrivilegeEscalation, s.Containers[0].SecurityContext.Privileged = nil, new(true)
		},
		"privileges at the start": func(s *corev1.PodSpec) {
			s.InitContainers = append(s.InitContainers, corev1.Container{Name: "x", Image: "x", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}})
		},
		"a capability": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		},
		"a capability at the start": func(s *corev1.PodSpec) {
			s.InitContainers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"}
		},
		"what the kernel shows": func(s *corev1.PodSpec) {
			s.HostUsers, s.Containers[0].SecurityContext.ProcMount = new(false), new(corev1.UnmaskedProcMount)
		},
	} {
		bad := good.DeepCopy()
		spoil(&bad.Spec.Template.Spec)
		if err := operator.Create(ctx, bad, client.DryRunAll); !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: good.Namespace, Name: "job", Labels: good.Labels}}
	job.Spec.Template.Spec = *good.Spec.Template.Spec.DeepCopy()
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if err := operator.Create(ctx, job.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("a Job: %v", err)
	}
	job.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	if err := operator.Create(ctx, job, client.DryRunAll); !refused(err) {
		t.Errorf("a Job with a capability: %v", err)
	}
	group.Spec.TLS, group.Spec.DNS = &v1alpha1.TLSSpec{SecretName: "orders-tls", IssuerRef: &v1alpha1.IssuerRef{Name: "ca"}}, &v1alpha1.DNSSpec{Name: "orders.example.com"}
	for _, asks := range []*unstructured.Unstructured{render.Certificate(in), render.DNSEndpoint(in, render.DNSRecord{Type: "A", Target: "192.0.2.1"})} {
		if err := operator.Create(ctx, asks.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("%s as it is rendered: %v", asks.GetKind(), err)
		}
		asks.SetLabels(nil)
		if err := operator.Create(ctx, asks.DeepCopy(), client.DryRunAll); !refused(err) {
			t.Errorf("%s of no group: %v", asks.GetKind(), err)
		}
		asks.SetOwnerReferences(nil)
		l.create(asks)
		if err := operator.Patch(ctx, asks.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{}}`)), client.DryRunAll); !refused(err) {
			t.Errorf("it changes somebody's %s: %v", asks.GetKind(), err)
		}
	}
	pod := aPod(nil)
	if err := operator.Create(ctx, pod, client.DryRunAll); !refused(err) {
		t.Errorf("a pod of no group: %v", err)
	}
}
