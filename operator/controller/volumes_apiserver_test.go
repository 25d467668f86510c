// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// The API server takes the growth of a bound claim, and the operator's rights are enough to ask for it.
func TestVolumeGrowthAgainstAPIServer(t *testing.T) {
	c := newCluster(t)
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scopetest.Key.Namespace}})
	c.create(storageClass("fast", new(true)))
	c.create(storageClass("slow", new(false)))
	c.create(&v1alpha1.MysqlFailoverGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: scopetest.Key.Namespace, Name: scopetest.Key.Name},
		Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{
			{Name: "a", Role: v1alpha1.PrimaryCandidate, Storage: v1alpha1.StorageSpec{StorageClassName: new("fast")}},
			{Name: "b", Role: v1alpha1.PrimaryCandidate, Storage: v1alpha1.StorageSpec{StorageClassName: new("slow")}},
		}},
	})
	volume := func(site string) *corev1.PersistentVolumeClaim {
		v := &corev1.PersistentVolumeClaim{}
		if c.get(v, v1alpha1.DataVolumeName(scopetest.Key.Name, site)) != nil {
			return nil
		}
		return v
	}
	c.eventually("volumes", func() bool { return volume("a") != nil && volume("b") != nil })
	for _, site := range []string{"a", "b"} {
		v := volume(site)
		before := v.DeepCopy()
		v.Status.Phase, v.Status.Capacity = corev1.ClaimBound, v.Spec.Resources.Requests.DeepCopy()
		if err := c.admin.Status().Patch(t.Context(), v, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	c.edit(func(g *v1alpha1.MysqlFailoverGroup) {
		for i := range g.Spec.Sites {
			g.Spec.Sites[i].Storage.Size = resource.MustParse("20Gi")
		}
	})
	c.eventually("growth of a", func() bool { return storage(volume("a")) == "20Gi" })
	if got := storage(volume("b")); got != "10Gi" {
		t.Errorf("b has %s, which its storage cannot have", got)
	}
}
