// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// claim is the volume of a site as a cluster has it.
func claim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	ten := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-b-data"},
		Spec:       corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: ten}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: ten.DeepCopy()},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func TestResizing(t *testing.T) {
	asked := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
	}
	status := func(s corev1.ClaimResourceStatus) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: s}
		}
	}
	pending := func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
		}}
	}
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		reason v1alpha1.Reason
		says   string
	}{
		"done":        {claim(), "", ""},
		"under way":   {claim(asked), v1alpha1.ReasonVolumeGrowing, "20Gi"},
		"file system": {claim(asked, pending), v1alpha1.ReasonVolumeGrowing, "delete the pod"},
		"storage says no": {
			claim(asked, status(corev1.PersistentVolumeClaimControllerResizeInfeasible)), v1alpha1.ReasonVolumeCannotGrow, "cannot",
		},
		"node says no": {
			claim(asked, status(corev1.PersistentVolumeClaimNodeResizeInfeasible)), v1alpha1.ReasonVolumeCannotGrow, "cannot",
		},
	} {
		if got := Resizing(tc.claim); got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is said of a claim that is being deleted names the way out, and nothing is said where no pod keeps the volume.
func TestTerminating(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-b-x"}}
	ending := pod.DeepCopy()
	ending.DeletionTimestamp = new(metav1.Now())
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		active bool
		says   []string
	}{
		"a replica":       {pod, false, []string{"mysql-orders-b-data", "kubectl delete pod mysql-orders-b-x -n shop"}},
		"the active site": {pod, true, []string{"mysql-orders-b-data", "kubectl mfg failover", "kubectl delete pod mysql-orders-b-x -n shop"}},
		"no pod":          {nil, false, nil},
		"it ends already": {ending, false, nil},
	} {
		got := Terminating(claim(), tc.pod, tc.active)
		if (got.Reason == v1alpha1.ReasonVolumeTerminating) != (tc.says != nil) || got.Event.Reason != got.Reason {
			t.Errorf("%s: %+v", name, got)
		}
		for _, says := range tc.says {
			if !strings.Contains(got.Message, says) {
				t.Errorf("%s: %q lacks %q", name, got.Message, says)
			}
		}
		if !tc.active && strings.Contains(got.Message, "failover") {
			t.Errorf("%s: %q", name, got.Message)
		}
	}
}
