// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// TestClaimsAgainstAPIServer: with the rights of the chart a group of another release is left alone, taken over when its Lease
// is not renewed, and claimed once (I1).
func TestClaimsAgainstAPIServer(t *testing.T) {
	c := newClusterOf(t, leaseB)
	for _, name := range []string{scopetest.Key.Namespace, "mfg-a", "mfg-b"} {
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c.create(leaseObject("mfg-a"))
	read := func() *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{}
		if err := c.get(g, scopetest.Key.Name); err != nil {
			t.Fatal(err)
		}
		return g
	}
	c.createGroup()
	c.eventually("the group is claimed", func() bool { return leaseOfClaim(read()) == leaseB && len(read().Finalizers) > 0 })
	first := read().Status.Claim
	if first.Holder != "pod of "+leaseB || time.Since(first.Since.Time) > 5*time.Minute {
		t.Errorf("claim %+v", first)
	}

	// The group of another release.
	other := scopetest.Group()
	other.Name, other.UID, other.Generation = "billing", "", 0
	other.Annotations = map[string]string{v1alpha1.AnnotationOperatedBy: leaseA} // until its claim stands
	c.create(other)
	other.Status.Claim = &v1alpha1.GroupClaim{Lease: leaseA, Holder: "pod", Since: metav1.Now()}
	if err := c.admin.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	other.Annotations = nil
	if err := c.admin.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	looked := func() bool {
		c.r.leases.mu.Lock()
		defer c.r.leases.mu.Unlock()
		return !c.r.leases.seen[leaseA].Since.IsZero()
	}
	c.eventually("the Lease of the other release is read", looked)
	billing := func() *v1alpha1.MysqlFailoverGroup {
		g := &v1alpha1.MysqlFailoverGroup{}
		if err := c.get(g, "billing"); err != nil {
			t.Fatal(err)
		}
		return g
	}
	if g := billing(); leaseOfClaim(g) != leaseA || len(g.Finalizers) > 0 || len(g.Status.Conditions) > 0 {
		t.Errorf("it was touched: %+v", g)
	}
	passes(c.r, time.Hour)
	c.r.Wake(scope.KeyOf(other))
	c.eventually("it is taken over", func() bool { return leaseOfClaim(billing()) == leaseB && len(billing().Finalizers) > 0 })
	if again := read().Status.Claim; !again.Since.Equal(&first.Since) {
		t.Errorf("a claim is written again: %+v, before %+v", again, first)
	}
}
