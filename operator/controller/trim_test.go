// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/trim"
)

// fromCache makes a client read as from the manager's cache: trimmed. Every test of the controller runs over it, so that
// whoever reads what is trimmed fails.
func fromCache() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, o, opts...); err != nil {
				return err
			}
			_, err := trim.Object(o)
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return meta.EachListItem(list, func(o runtime.Object) error {
				_, err := trim.Object(o)
				return err
			})
		},
	}
}

// renderedPod is a pod as the operator makes them, after a kubelet has started it.
func renderedPod(t *testing.T) *corev1.Pod {
	t.Helper()
	group := scopetest.Group(withTLS)
	group.Spec.Sidecar.LeaseTimeout.Duration, group.Spec.Sidecar.FenceTimeout.Duration = 20*time.Second, 2*time.Second
	d := render.Deployment(render.Input{Group: group, Install: render.Install{SidecarImage: "sidecar:test"}}, group.Spec.Sites[0])
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.Name, pod.UID, pod.ManagedFields = "orders-a-1", "pod-uid", []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	pod.Spec.NodeName = "node-1"
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: render.ContainerMySQL, Image: "mysql:9.7", ImageID: "sha256:0123", RestartCount: 2,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	return pod
}

func TestTrimKeepsWhatIsRead(t *testing.T) {
	pod := renderedPod(t)
	whole := pod.DeepCopy()
	if _, err := trim.Object(pod); err != nil {
		t.Fatal(err)
	}
	whole.ManagedFields = nil
	delete(whole.Annotations, render.DefaultContainer)
	if diff := cmp.Diff(whole.ObjectMeta, pod.ObjectMeta); diff != "" {
		t.Errorf("metadata (-whole +trimmed):\n%s", diff)
	}
	if pod.Spec.NodeName != "node-1" || scope.MySQLImage(pod) != scope.MySQLImage(whole) || scope.MySQLImage(pod) == "" {
		t.Errorf("node %q, image %q", pod.Spec.NodeName, scope.MySQLImage(pod))
	}
	whole.Status.ContainerStatuses[0].ImageID = ""
	if diff := cmp.Diff(whole.Status, pod.Status); diff != "" {
		t.Errorf("status (-whole +trimmed):\n%s", diff)
	}
	lease := map[string]string{}
	for _, c := range pod.Spec.InitContainers {
		for _, e := range c.Env {
			if c.RestartPolicy != nil {
				lease[e.Name] = e.Value
			}
		}
	}
	if lease[v1alpha1.EnvPeers] == "" {
		t.Errorf("I4: the peers of the sidecar are gone: %v", lease)
	}
	if lease[v1alpha1.EnvReportKey] == "" {
		t.Errorf("I12: whether its reports are authenticated is gone: %v", lease)
	}
	if lease[v1alpha1.EnvRequireTLS] == "" {
		t.Errorf("whether the pod refuses clients without TLS is gone: %v", lease)
	}
	delete(lease, v1alpha1.EnvPeers)
	delete(lease, v1alpha1.EnvReportKey)
	delete(lease, v1alpha1.EnvRequireTLS)
	if diff := cmp.Diff(map[string]string{v1alpha1.EnvLeaseTimeout: "20s", v1alpha1.EnvFenceTimeout: "2s"}, lease); diff != "" {
		t.Errorf("I4: the lease of the sidecar (-want +got):\n%s", diff)
	}
}

// TestTrimSavesMemory: what is kept of a pod, a Deployment and a ConfigMap is a small part of them.
func TestTrimSavesMemory(t *testing.T) {
	pod := renderedPod(t)
	group := scopetest.Group(withTLS)
	in := render.Input{Group: group, Install: render.Install{SidecarImage: "sidecar:test"}}
	group.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "mine": "stays"}
	node := &corev1.Node{Status: corev1.NodeStatus{Images: make([]corev1.ContainerImage, 50)}, Spec: corev1.NodeSpec{Unschedulable: true}}
	for name, tc := range map[string]struct {
		obj  client.Object
		keep float64
	}{
		"pod": {pod, 0.5}, "deployment": {render.Deployment(in, group.Spec.Sites[0]), 0.5},
		"config map": {render.ConfigMap(in, group.Spec.Sites[0]), 0.5}, "node": {node, 0.5},
	} {
		before := size(t, tc.obj)
		if _, err := trim.Object(tc.obj); err != nil {
			t.Fatal(err)
		}
		if after := size(t, tc.obj); after > before*tc.keep {
			t.Errorf("%s: %.0f bytes of %.0f are kept", name, after, before)
		}
	}
	// What a group gives its pods is there for each site twice.
	group.Spec.PodAnnotations = map[string]string{"example.org/notes": strings.Repeat("x", 10_000)}
	d := render.Deployment(in, group.Spec.Sites[0])
	for name, obj := range map[string]client.Object{"pod": &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta}, "deployment": d} {
		if _, err := trim.Object(obj); err != nil || size(t, obj) > 3000 {
			t.Errorf("%s: annotations of the group stay: %.0f bytes, %v", name, size(t, obj), err)
		}
	}
	if _, err := trim.Object(group); err != nil || group.Annotations[corev1.LastAppliedConfigAnnotation] != "" || group.Annotations["mine"] != "stays" {
		t.Errorf("annotations %v, %v", group.Annotations, err)
	}
	if !node.Spec.Unschedulable {
		t.Error("a cordoned node looks as if it were not")
	}
	gone := toolscache.DeletedFinalStateUnknown{Key: "shop/orders-a-1", Obj: &appsv1.Deployment{}}
	if out, err := trim.Object(gone); err != nil || out != any(gone) {
		t.Errorf("got %v, %v", out, err)
	}
}

func size(t *testing.T, obj any) float64 {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return float64(len(text))
}
