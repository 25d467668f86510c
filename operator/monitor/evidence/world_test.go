// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// wanted are the sites that the controller wants the role moved away from, and why.
type wanted map[string]string

func (w wanted) Leaving(_, _, site string) (string, bool) { return w[site], w[site] != "" }

// apiServer knows some pods and nodes.
type apiServer struct {
	client.Reader
	pods  []corev1.Pod
	nodes map[string]*corev1.Node
}

func (a apiServer) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	into, is := obj.(*corev1.Node)
	if node := a.nodes[key.Name]; is && node != nil {
		node.DeepCopyInto(into)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (a apiServer) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if pods, is := list.(*corev1.PodList); is {
		pods.Items = a.pods
	}
	return nil
}

// podOf is a pod of a site that runs on a node.
func podOf(site, uid, node, ip string) corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: uid, UID: types.UID(uid), Labels: map[string]string{v1alpha1.LabelSite: site}},
		Spec: corev1.PodSpec{NodeName: node, InitContainers: []corev1.Container{{Name: v1alpha1.ContainerSidecar, RestartPolicy: &always,
			Env: []corev1.EnvVar{{Name: v1alpha1.EnvLeaseTimeout, Value: "20s"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, InitContainerStatuses: []corev1.ContainerStatus{
			{Name: v1alpha1.ContainerSidecar, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "s"}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}
