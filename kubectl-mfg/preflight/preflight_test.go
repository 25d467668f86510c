// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

type cluster struct {
	kube     *fake.Clientset
	clockErr error
}

func (c cluster) Kube() kubernetes.Interface { return c.kube }

func (c cluster) Clock(context.Context) (time.Time, time.Duration, error) {
	return noon, 0, c.clockErr
}

// good is a cluster in which nothing is to be said.
func good(t *testing.T) cluster {
	t.Helper()
	node := func(name string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}
		return n
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: leases}}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: noon.Add(-3 * time.Second)}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{defaultClass: "true"}},
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer), AllowVolumeExpansion: new(true)}
	kube := fake.NewClientset(node("a"), node("b"), lease, class, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "calico-node", Namespace: "kube-system"}})
	allow(kube, true)
	discovery(t, kube).FakedServerVersion = &version.Info{Major: "1", Minor: "35", GitVersion: "v1.35.1"}
	return cluster{kube: kube}
}

func discovery(t *testing.T, kube *fake.Clientset) *discoveryfake.FakeDiscovery {
	t.Helper()
	d, is := kube.Discovery().(*discoveryfake.FakeDiscovery)
	if !is {
		t.Fatalf("discovery is %T", kube.Discovery())
	}
	return d
}

func allow(kube *fake.Clientset, allowed bool) {
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}}, nil
	})
}

func TestPreflight(t *testing.T) {
	tracker := func(c cluster, gvr schema.GroupVersionResource, o runtime.Object, namespace string) {
		if err := c.kube.Tracker().Update(gvr, o, namespace); err != nil {
			panic(err)
		}
	}
	for name, tc := range map[string]struct {
		change func(*cluster)
		level  string
		says   string
	}{
		"TooOld":   {func(c *cluster) { discovery(t, c.kube).FakedServerVersion.Minor = "32" }, "FAIL", "1.33 or newer"},
		"Strange":  {func(c *cluster) { discovery(t, c.kube).FakedServerVersion.Minor = "" }, "UNKNOWN", "not understood"},
		"NoRights": {func(c *cluster) { allow(c.kube, false) }, "FAIL", "customresourcedefinitions.apiextensions.k8s.io, clusterroles"},
		"Installed": {func(c *cluster) {
			discovery(t, c.kube).Resources = []*metav1.APIResourceList{{GroupVersion: v1alpha1.GroupVersion.String()}}
		}, "WARN", "installed already"},
		"NoClass": {func(c *cluster) {
			_ = c.kube.StorageV1().StorageClasses().Delete(t.Context(), "fast", metav1.DeleteOptions{})
		}, "FAIL", "no StorageClass"},
		"NoDefault": {func(c *cluster) {
			tracker(*c, storagev1.SchemeGroupVersion.WithResource("storageclasses"), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}, "")
		}, "WARN", "no StorageClass is the default; there are fast"},
		"Immediate": {func(c *cluster) {
			tracker(*c, storagev1.SchemeGroupVersion.WithResource("storageclasses"), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{defaultClass: "true"}}}, "")
		}, "WARN", "binds volumes at once"},
		"OneNode": {func(c *cluster) { _ = c.kube.CoreV1().Nodes().Delete(t.Context(), "b", metav1.DeleteOptions{}) }, "WARN", "only one node"},
		"Small": {func(c *cluster) {
			for _, name := range []string{"a", "b"} {
				n, _ := c.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
				n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("100Mi")
				_, _ = c.kube.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
			}
		}, "FAIL", "room for a site"},
		"Tainted": {func(c *cluster) {
			n, _ := c.kube.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
			n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
			_, _ = c.kube.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		}, "WARN", "only one node"},
		"Ahead":    {func(c *cluster) { renewed(t, c, 10*time.Second) }, "WARN", "node a is 9s ahead"},
		"FarAhead": {func(c *cluster) { renewed(t, c, time.Hour) }, "FAIL", "ahead of the API server"},
		"Behind":   {func(c *cluster) { renewed(t, c, -time.Hour) }, "WARN", "its clock is behind"},
		"NoClock":  {func(c *cluster) { c.clockErr = errors.New("no answer") }, "UNKNOWN", "no answer"},
		"NoPlugin": {func(c *cluster) {
			_ = c.kube.AppsV1().DaemonSets("kube-system").Delete(t.Context(), "calico-node", metav1.DeleteOptions{})
		}, "UNKNOWN", "known to enforce policies"},
		"MayNotSee": {func(c *cluster) {
			c.kube.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
			})
		}, "UNKNOWN", "kubectl auth can-i list nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good(t)
			tc.change(&c)
			code, shown := run(t, c)
			if !strings.Contains(shown, tc.says) || !strings.Contains(shown, "\n"+tc.level) && !strings.HasPrefix(shown, tc.level) || (code == cli.ExitDegraded) != (tc.level == "FAIL") {
				t.Errorf("exit code %d:\n%s", code, shown)
			}
		})
	}
	code, shown := run(t, good(t))
	if code != cli.ExitHealthy || !strings.Contains(shown, "8 ok, 0 warnings, 0 failures, 0 unknown") {
		t.Errorf("exit code %d:\n%s", code, shown)
	}
}

func renewed(t *testing.T, c *cluster, ahead time.Duration) {
	t.Helper()
	l, err := c.kube.CoordinationV1().Leases(leases).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l.Spec.RenewTime = &metav1.MicroTime{Time: noon.Add(ahead)}
	if _, err := c.kube.CoordinationV1().Leases(leases).Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, c cluster) (int, string) {
	t.Helper()
	var out bytes.Buffer
	env := cli.Environment{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}, Now: func() time.Time { return noon }, Terminal: func() (int, bool) { return 0, false }}
	op := Op{Namespace: "shop", OperatorNamespace: "mfg-system", Color: "never"}
	code, err := op.Run(t.Context(), env, c)
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String()
}

// TestMinMinor: the version that is asked for is the one that the charts take.
func TestMinMinor(t *testing.T) {
	for _, chart := range []string{"mfg", "mysql-failover-group"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "charts", chart, "Chart.yaml"))
		if err != nil || !strings.Contains(string(raw), fmt.Sprintf(`kubeVersion: ">=1.%d.0-0"`, MinMinor)) {
			t.Errorf("%v: the chart %s takes another version", err, chart)
		}
	}
}
