// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// Why a pod does not start was seen before the deadline. A real client answers the question that the deadline ends with an error and an
// empty pod.
func TestAwaitSaysWhyAPodDoesNotStart(t *testing.T) {
	kube := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reader"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
		}}},
	})
	asked := 0
	kube.PrependReactor("get", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		asked++
		return asked > 1, &corev1.Pod{}, context.DeadlineExceeded
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := (&Pod{Kube: kube, Namespace: "shop"}).Await(ctx, "reader")
	if err == nil || !strings.Contains(err.Error(), "ImagePullBackOff: no such image") {
		t.Errorf("%v", err)
	}
}

// A pod that was deleted does not come.
func TestAwaitEndsForAPodThatIsGone(t *testing.T) {
	err := (&Pod{Kube: fake.NewClientset(), Namespace: "shop"}).Await(t.Context(), "reader")
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
