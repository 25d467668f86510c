// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/signing"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

// chartRights are those that the chart gives the operator by default.
func chartRights(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "charts", "testdata", "mfg-default.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for objects := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		role := rbacv1.ClusterRole{}
		if err := objects.Decode(&role); err != nil {
			t.Fatalf("find the operator's role in %s: %v", file.Name(), err)
		}
		if role.Kind == "ClusterRole" && role.Name == "mfg-operator-mfg-system" {
			return role.Rules
		}
	}
}

// cluster is a real API server with the controller running against it, with the rights of the chart and no more.
type cluster struct {
	t     *testing.T
	admin client.Client
	// config is the administrator's.
	config *rest.Config
	facts  *scopetest.Facts
	r      *Reconciler
}

// newCluster needs the binaries of an API server and of etcd, which `bin/lab` builds. Without them the test is skipped,
// with them a failure to start is a failure.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterOf(t, "")
}

// newClusterOf is the same with a controller that leads by a Lease.
func newClusterOf(t *testing.T, lease string) *cluster {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are")
	}
	log.SetLogger(testr.New(t))
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute,
	}
	// Owner references that block deletion are checked as in clusters that guard them.
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
	c := &cluster{t: t, config: config, facts: &scopetest.Facts{}}
	if c.admin, err = client.New(config, client.Options{Scheme: newScheme(t)}); err != nil {
		t.Fatal(err)
	}
	user, err := env.AddUser(envtest.User{Name: "mfg-operator"}, config)
	if err != nil {
		t.Fatal(err)
	}
	c.grant()
	c.run(user.Config(), lease)
	return c
}

func (c *cluster) grant() {
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
	c.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mfg-operator"}, Rules: chartRights(c.t)})
	c.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mfg-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mfg-operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "mfg-operator"}},
	})
}

func (c *cluster) run(access *rest.Config, lease string) {
	c.t.Helper()
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: newScheme(c.t), Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: CacheByObject()},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		// Each test has an API server and a controller of its own.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.r = New(Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Facts: c.facts, Loops: &fakeLoops{}, Work: work.New(), Access: worktest.Access{},
		Recorder: events.NewRecorder(mgr.GetEventRecorder("mfg-operator")),
		Keys:     &signing.Keys{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: operatorNamespace},
		Install:  render.Install{SidecarImage: "sidecar:test", OperatorURL: "http://operator"},
		Lease:    lease, Holder: "pod of " + lease,
	})
	if err := c.r.SetupWithManager(mgr); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
}

func (c *cluster) create(obj client.Object) {
	c.t.Helper()
	if err := c.admin.Create(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) get(obj client.Object, name string) error {
	return c.admin.Get(c.t.Context(), types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: name}, obj)
}

// eventually waits for what the controller does in its own time.
func (c *cluster) eventually(what string, done func() bool) {
	c.t.Helper()
	for range 300 {
		if done() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	g := &v1alpha1.MysqlFailoverGroup{}
	err := c.get(g, scopetest.Key.Name)
	c.t.Fatalf("%s: not within 30 s; conditions %+v (%v)", what, g.Status.Conditions, err)
}

func (c *cluster) group() *v1alpha1.MysqlFailoverGroup {
	c.t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := c.get(g, scopetest.Key.Name); err != nil {
		c.t.Fatal(err)
	}
	return g
}

func (c *cluster) edit(edit scopetest.Option) {
	c.t.Helper()
	g := c.group()
	before := g.DeepCopy()
	edit(g)
	if err := c.admin.Patch(c.t.Context(), g, client.MergeFrom(before)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) createGroup() {
	c.t.Helper()
	c.create(&v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: scopetest.Key.Name},
		Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{
			{Name: "a", Role: v1alpha1.PrimaryCandidate}, {Name: "b", Role: v1alpha1.PrimaryCandidate},
		}},
	})
	c.eventually("deployments", func() bool {
		return c.get(&appsv1.Deployment{}, "mysql-orders-a") == nil && c.get(&appsv1.Deployment{}, "mysql-orders-b") == nil
	})
}

// monitor applies the poll loop's part of status.
func (c *cluster) monitor(active string, epoch int64) {
	c.t.Helper()
	status := applyv1alpha1.MysqlFailoverGroupStatus().WithActiveSite(active).WithEpoch(epoch)
	for _, site := range []string{"a", "b"} {
		status.WithSites(applyv1alpha1.SiteStatus().WithName(site).WithState(v1alpha1.SiteReplica))
	}
	config := applyv1alpha1.MysqlFailoverGroup(scopetest.Key.Name, scopetest.Key.Namespace).WithStatus(status)
	err := c.admin.Status().Apply(c.t.Context(), config, client.FieldOwner(v1alpha1.ManagerMonitorStatus), client.ForceOwnership)
	if err != nil {
		c.t.Fatal(err)
	}
}

// settle does what kubelet and the poll loop do: pods of the Deployments' templates that are ready.
func (c *cluster) settle(sites ...string) {
	c.t.Helper()
	for _, site := range sites {
		var d appsv1.Deployment
		if err := c.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site)); err != nil {
			c.t.Fatal(err)
		}
		hash := d.Annotations[v1alpha1.AnnotationSpecHash]
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: scopetest.Key.Namespace, Name: d.Name + "-" + hash, Labels: d.Spec.Template.Labels, Annotations: d.Spec.Template.Annotations,
			},
			Spec: d.Spec.Template.Spec,
		}
		err := c.admin.DeleteAllOf(c.t.Context(), &corev1.Pod{}, client.InNamespace(scopetest.Key.Namespace),
			client.MatchingLabels{v1alpha1.LabelSite: site}, client.GracePeriodSeconds(0))
		if err != nil {
			c.t.Fatal(err)
		}
		c.create(pod)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if err := c.admin.Status().Update(c.t.Context(), pod); err != nil {
			c.t.Fatal(err)
		}
		c.facts.Set(site, scope.SiteFacts{
			Reachable: true, MysqlUp: true, Writable: site == c.group().Status.ActiveSite, Following: site != c.group().Status.ActiveSite, Version: "9.7.4", PodName: pod.Name, PodUID: string(pod.UID),
		})
	}
}

func (c *cluster) deleteGroup() {
	c.t.Helper()
	if err := c.admin.Delete(c.t.Context(), c.group()); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("end of the group", func() bool {
		return apierrors.IsNotFound(c.get(&v1alpha1.MysqlFailoverGroup{}, scopetest.Key.Name))
	})
}

// data are objects that outlive a group, or do not.
func data() map[string]client.Object {
	return map[string]client.Object{
		"mysql-orders-a-data": &corev1.PersistentVolumeClaim{}, "mysql-orders-accounts": &corev1.Secret{},
		"mysql-orders-root": &corev1.Secret{},
	}
}
