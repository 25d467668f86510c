// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

func storageClass(name string, grows *bool) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.org/disk", AllowVolumeExpansion: grows}
}

// claim is the volume of site b as a cluster has it.
func claim(class *string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	ten := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: v1alpha1.DataVolumeName(scopetest.Key.Name, "b")},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: class, Resources: corev1.VolumeResourceRequirements{Requests: ten}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: ten.DeepCopy()},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func sized(size string) scopetest.Option {
	return func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites[1].Storage.Size = resource.MustParse(size) }
}

func (w *world) sizeOf(site string) string {
	w.t.Helper()
	c := &corev1.PersistentVolumeClaim{}
	w.get(c, v1alpha1.DataVolumeName(scopetest.Key.Name, site))
	return storage(c)
}

func storage(claim *corev1.PersistentVolumeClaim) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return size.String()
}

func TestVolumesGrowWhereTheyCan(t *testing.T) {
	unbound := func(c *corev1.PersistentVolumeClaim) {
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	}
	slip := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1000Gi")}
	}
	for name, tc := range map[string]struct {
		because string
		claim   *corev1.PersistentVolumeClaim
		wished  string
		size    string
		reason  v1alpha1.Reason
		says    string
	}{
		"same size":       {"nothing to do", claim(new("fast")), "10Gi", "10Gi", "", ""},
		"larger":          {"the class allows it", claim(new("fast")), "20Gi", "20Gi", v1alpha1.ReasonVolumeGrowing, "20Gi"},
		"class that does": {"the class says no", claim(new("slow")), "20Gi", "10Gi", v1alpha1.ReasonVolumeCannotGrow, "allowVolumeExpansion"},
		"silent class":    {"the class does not say yes", claim(new("local")), "20Gi", "10Gi", v1alpha1.ReasonVolumeCannotGrow, "allowVolumeExpansion"},
		"class is gone":   {"nobody knows whether it can", claim(new("gone")), "20Gi", "10Gi", v1alpha1.ReasonVolumeCannotGrow, "gone"},
		"no class":        {"somebody made the volume by hand", claim(new("")), "20Gi", "10Gi", v1alpha1.ReasonVolumeCannotGrow, "no storage class"},
		"no volume yet":   {"the API server takes it only later", claim(new("fast"), unbound), "20Gi", "10Gi", v1alpha1.ReasonVolumeGrowing, "bound"},
		"smaller":         {"volumes do not shrink", claim(new("fast")), "5Gi", "10Gi", v1alpha1.ReasonVolumeLarger, "do not shrink"},
		"a slip":          {"it was asked for too much, and has not grown yet", claim(new("fast"), slip), "20Gi", "20Gi", v1alpha1.ReasonVolumeGrowing, "grows to 20Gi"},
		"a slip, at once": {"Kubernetes takes no less than a little more", claim(new("fast"), slip), "10Gi", "1000Gi", v1alpha1.ReasonVolumeLarger, "do not shrink"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scopetest.Group(sized(tc.wished)), tc.claim,
				storageClass("fast", new(true)), storageClass("slow", new(false)), storageClass("local", nil))
			w.reconcile()
			w.reconcile()
			if got := w.sizeOf("b"); got != tc.size {
				t.Errorf("%s: size %s", tc.because, got)
			}
			if tc.reason == "" {
				if len(w.said.Of(v1alpha1.ReasonVolumeGrowing))+len(w.said.Of(v1alpha1.ReasonVolumeCannotGrow))+len(w.said.Of(v1alpha1.ReasonVolumeLarger)) > 0 {
					t.Errorf("events %v", w.said.List)
				}
				return
			}
			if said := w.said.Of(tc.reason); len(said) != 1 || !strings.Contains(said[0], tc.says) || !strings.Contains(said[0], "b") {
				t.Errorf("events %v", w.said.List)
			}
			// A volume that does not fit keeps nobody from running.
			if len(w.deployments()) != 3 {
				t.Errorf("deployments %v", w.deployments())
			}
		})
	}
}

// What is said of the volumes stands in the condition only when nothing more important does.
func TestVolumesAreToldLast(t *testing.T) {
	w := runningWorld(t)
	w.must(w.c.Create(w.ctx, claim(new("slow"))))
	w.must(w.c.Create(w.ctx, storageClass("slow", nil)))
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.change(sized("20Gi"))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonVolumeCannotGrow {
		t.Errorf("condition %+v", c)
	}
	w.change(func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Image = "mysql:9.8" })
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonUpdating {
		t.Errorf("condition %+v", c)
	}
}

// A size that was mistyped, on storage that cannot grow, is taken back by correcting it.
func TestAMistypedSizeIsTakenBack(t *testing.T) {
	w := runningWorld(t)
	w.must(w.c.Create(w.ctx, claim(new("slow"))))
	w.must(w.c.Create(w.ctx, storageClass("slow", nil)))
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.change(sized("1000Gi"))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonVolumeCannotGrow {
		t.Fatalf("condition %+v", c)
	}
	w.change(sized("10Gi"))
	w.reconcile()
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonAsExpected || w.sizeOf("b") != "10Gi" {
		t.Errorf("condition %+v, size %s", c, w.sizeOf("b"))
	}
}

func TestGrowthThatTheAPIServerRefuses(t *testing.T) {
	w := newWorld(t, scopetest.Group(sized("20Gi")), claim(new("fast")), storageClass("fast", new(true)))
	w.reject = func(name string) error {
		if name != v1alpha1.DataVolumeName(scopetest.Key.Name, "b") {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, name, nil)
	}
	w.reconcile()
	if said := w.said.Of(v1alpha1.ReasonVolumeCannotGrow); len(said) != 1 || !strings.Contains(said[0], "API server") {
		t.Errorf("events %v", w.said.List)
	}
	if len(w.deployments()) != 3 {
		t.Error("the group does not run")
	}
}
