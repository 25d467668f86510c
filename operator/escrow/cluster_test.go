// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// manifests are what the chart installs with escrow switched on; a test of the chart keeps the file up to date.
const manifests = "../../charts/testdata/mfg-escrow.yaml"

// cluster is a real API server, with the chart's rights and policy, the garbage collector and the namespace controller.
type cluster struct {
	t      *testing.T
	config *rest.Config
	// admin may do everything; operator is the chart's service account, collector the garbage collector's.
	admin, operator, collector client.Client
	store                      *Store
	token                      string
	round                      int64
}

// newCluster needs the binaries that `bin/lab` builds. Without them the test is skipped, with them a failure to start is
// a failure.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver, etcd and kube-controller-manager are")
	}
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute,
	}
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
	c := &cluster{t: t, config: config, admin: newClient(t, config, "")}
	c.operator = newClient(t, config, "system:serviceaccount:mfg-system:mfg-operator")
	c.collector = newClient(t, config, "system:serviceaccount:kube-system:generic-garbage-collector")
	c.store = New(Options{Client: c.operator, Live: c.operator, Pods: func(_, _, _ string) (string, bool) { return testPod, true }})
	c.install()
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, config)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	c.control(filepath.Join(assets, "kube-controller-manager"), kubeconfig)
	return c
}

func newClient(t *testing.T, config *rest.Config, as string) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	if as != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: as, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	}
	c, err := client.New(config, client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// install applies the chart's rights and its admission policy, and waits until the policy is in force.
func (c *cluster) install() {
	c.t.Helper()
	raw, err := os.ReadFile(manifests)
	if err != nil {
		c.t.Fatal(err)
	}
	kinds := map[string]func() client.Object{
		"ClusterRole":                      func() client.Object { return &rbacv1.ClusterRole{} },
		"ClusterRoleBinding":               func() client.Object { return &rbacv1.ClusterRoleBinding{} },
		"ValidatingAdmissionPolicy":        func() client.Object { return &admissionv1.ValidatingAdmissionPolicy{} },
		"ValidatingAdmissionPolicyBinding": func() client.Object { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			c.t.Fatal(err)
		}
		if create, ok := kinds[head.Kind]; ok {
			obj := create()
			if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
				c.t.Fatal(err)
			}
			c.create(obj)
		}
	}
	probe := version("probe", 1, one("00"))
	probe.Namespace, probe.OwnerReferences = "default", nil
	c.create(probe)
	c.eventually("the policy is in force", func() bool {
		return apierrors.IsForbidden(c.admin.Delete(c.t.Context(), probe, client.DryRunAll))
	})
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := c.admin.Get(c.t.Context(), client.ObjectKey{Name: "mfg-operator-mfg-system-escrow"}, &policy); err != nil {
		c.t.Fatal(err)
	}
	if s := policy.Status.TypeChecking; s != nil && len(s.ExpressionWarnings) > 0 {
		c.t.Errorf("the policy has wrong types: %+v", s.ExpressionWarnings)
	}
}

// control runs the controllers that delete objects by themselves.
func (c *cluster) control(binary string, kubeconfig []byte) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(binary, "--kubeconfig="+file, "--use-service-account-credentials=true", "--leader-elect=false",
		"--controllers=namespace-controller,garbage-collector-controller", "--secure-port=0")
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("kube-controller-manager:\n%s", output.String()[max(0, output.Len()-8000):])
		}
	})
}

func (c *cluster) create(obj client.Object) {
	c.t.Helper()
	if err := c.admin.Create(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) namespace(name string) {
	c.t.Helper()
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// newGroup makes a group whose site paris is unsealed and has a token.
func (c *cluster) newGroup(namespace string) {
	c.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: testGroup, Finalizers: []string{v1alpha1.Finalizer}},
		Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{
			{Name: "paris", Role: v1alpha1.PrimaryCandidate}, {Name: "madrid", Role: v1alpha1.PrimaryCandidate},
		}},
	}
	c.create(g)
	g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
		{Name: "paris", Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringBootstrap},
	}}
	if err := c.admin.Status().Update(c.t.Context(), g); err != nil {
		c.t.Fatal(err)
	}
	c.renew(namespace)
}

func (c *cluster) group(namespace string) *v1alpha1.MysqlFailoverGroup {
	c.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: testGroup}, g); err != nil {
		c.t.Fatal(err)
	}
	return g
}

// release takes the operator's finalizer off a group. The garbage collector changes them too.
func (c *cluster) release(namespace string) {
	c.t.Helper()
	c.eventually("the finalizer is off", func() bool {
		g := c.group(namespace)
		before := g.DeepCopy()
		g.Finalizers = slices.DeleteFunc(g.Finalizers, func(f string) bool { return f == v1alpha1.Finalizer })
		err := c.admin.Patch(c.t.Context(), g, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) {
			c.t.Fatal(err)
		}
		return err == nil
	})
}

func (c *cluster) renew(namespace string) {
	c.t.Helper()
	c.round++
	if err := c.store.RenewToken(c.t.Context(), c.group(namespace), "paris", c.round); err != nil {
		c.t.Fatal(err)
	}
	c.token = string(c.secret(namespace, v1alpha1.KeyringTokenSecret(testGroup, "paris")).Data["token"])
}

func (c *cluster) push(namespace string, content []byte) (wire.KeyringEscrowed, error) {
	push := pushOf(content)
	push.Namespace = namespace
	return c.store.Put(c.t.Context(), push, c.token)
}

func (c *cluster) secret(namespace, name string) *corev1.Secret {
	c.t.Helper()
	s := &corev1.Secret{}
	if err := c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c *cluster) gone(namespace, secret string) bool {
	return apierrors.IsNotFound(c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: secret}, &corev1.Secret{}))
}

// eventually waits for what controllers do in their own time.
func (c *cluster) eventually(what string, done func() bool) {
	c.t.Helper()
	for range 600 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.t.Fatalf("%s: not within a minute", what)
}
