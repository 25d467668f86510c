// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// podManifests are what the chart installs with protected pods; a test of the chart keeps the file up to date.
const podManifests = "../../charts/testdata/mfg-pods.yaml"

// Accounts of whom Kubernetes and the chart make objects.
const (
	operatorAccount   = "system:serviceaccount:mfg-system:mfg-operator"
	replicaSetAccount = "system:serviceaccount:kube-system:replicaset-controller"
	deploymentAccount = "system:serviceaccount:kube-system:deployment-controller"
	managerAccount    = "system:kube-controller-manager"
	kubeletAccount    = "system:node:somewhere"
	tenantAccount     = "tenant"
)

// locked is a real API server with the chart's policies for pods, and the controllers that make pods.
type locked struct {
	t      *testing.T
	admin  client.Client
	config *rest.Config
}

func startLocked(t *testing.T, own bool) *locked {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver, etcd and kube-controller-manager are")
	}
	log.SetLogger(testr.New(t))
	env := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute}
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
	for _, user := range []string{operatorAccount, managerAccount, replicaSetAccount, deploymentAccount, kubeletAccount, tenantAccount} {
		// All may do everything: what is refused, the policies refuse.
		l.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		})
	}
	l.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scopetest.Key.Namespace}})
	l.install()
	user, err := env.AddUser(envtest.User{Name: managerAccount}, config)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	l.control(filepath.Join(assets, "kube-controller-manager"), kubeconfig, own)
	l.typed()
	return l
}

func (l *locked) as(user string) client.Client {
	l.t.Helper()
	config := rest.CopyConfig(l.config)
	config.QPS, config.Burst = 200, 400
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	}
	scheme := newScheme(l.t)
	if err := admissionv1.AddToScheme(scheme); err != nil {
		l.t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *locked) create(obj client.Object) {
	l.t.Helper()
	if err := l.admin.Create(l.t.Context(), obj); err != nil {
		l.t.Fatal(err)
	}
}

// typed waits until a controller has looked at the types in the policies.
func (l *locked) typed() {
	l.t.Helper()
	for _, name := range []string{"mfg-operator-mfg-system-pods", "mfg-operator-mfg-system-templates"} {
		l.eventually("the types of "+name+" are checked", func() bool {
			var policy admissionv1.ValidatingAdmissionPolicy
			if err := l.admin.Get(l.t.Context(), client.ObjectKey{Name: name}, &policy); err != nil {
				l.t.Fatal(err)
			}
			if s := policy.Status.TypeChecking; s != nil && len(s.ExpressionWarnings) > 0 {
				l.t.Errorf("%s has wrong types: %+v", name, s.ExpressionWarnings)
			}
			return policy.Status.ObservedGeneration > 0
		})
	}
}

// install applies the policies and waits until both are in force.
func (l *locked) install() {
	l.t.Helper()
	raw, err := os.ReadFile(podManifests)
	if err != nil {
		l.t.Fatal(err)
	}
	installed := 0
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			l.t.Fatal(err)
		}
		var obj client.Object
		switch {
		case !strings.HasSuffix(head.Metadata.Name, "-pods") && !strings.HasSuffix(head.Metadata.Name, "-templates"):
			continue
		case head.Kind == "ValidatingAdmissionPolicy":
			obj = &admissionv1.ValidatingAdmissionPolicy{}
		case head.Kind == "ValidatingAdmissionPolicyBinding":
			obj = &admissionv1.ValidatingAdmissionPolicyBinding{}
		default:
			l.t.Fatalf("what is %s %s?", head.Kind, head.Metadata.Name)
		}
		if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
			l.t.Fatal(err)
		}
		l.create(obj)
		installed++
	}
	if installed != 4 {
		l.t.Fatalf("%d objects of the policies", installed)
	}
	labels := render.SiteLabels(scopetest.Key.Name, "a")
	l.eventually("the policies are in force", func() bool {
		return refused(l.admin.Create(l.t.Context(), aPod(labels), client.DryRunAll)) &&
			refused(l.admin.Create(l.t.Context(), aDeployment(labels, labels), client.DryRunAll))
	})
}

// control runs the controllers that make pods, and those that sweep.
func (l *locked) control(binary string, kubeconfig []byte, own bool) {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		l.t.Fatal(err)
	}
	credentials := "--use-service-account-credentials=false"
	if own {
		credentials = "--use-service-account-credentials=true"
	}
	cmd := exec.Command(binary, "--kubeconfig="+file, credentials, "--leader-elect=false", "--secure-port=0",
		"--controllers=deployment-controller,replicaset-controller,garbage-collector-controller,namespace-controller,"+
			"validatingadmissionpolicy-status-controller")
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if l.t.Failed() {
			l.t.Logf("kube-controller-manager:\n%s", output.String()[max(0, output.Len()-8000):])
		}
	})
}

func (l *locked) eventually(what string, done func() bool) {
	l.t.Helper()
	for range 600 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.t.Fatalf("%s: not within a minute", what)
}
