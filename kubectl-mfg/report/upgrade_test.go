// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A group of another release waits for no turn of this one: what this release last said of its pods is old.
func TestAGroupOfAnotherReleaseWaitsForNoTurn(t *testing.T) {
	group := func(name, lease string) v1alpha1.MysqlFailoverGroup {
		g := v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		g.Status.Claim = &v1alpha1.GroupClaim{Lease: lease}
		g.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: "r2", Sites: []v1alpha1.UpgradeSite{{Name: "a", Behind: true}}}
		return g
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "mfg-system", Name: v1alpha1.UpgradeLeaseName, Annotations: map[string]string{v1alpha1.AnnotationUpgradeRevision: "r2"},
	}}
	r := Upgrade(lease, []v1alpha1.MysqlFailoverGroup{group("own", "mfg-system/mfg-operator"), group("other", "mfg-blue/mfg-operator")}, time.Now())
	if other := r.Groups[0]; other.State != UpgradeElsewhere || len(other.Behind) > 0 || !strings.Contains(other.Why, "mfg-blue/mfg-operator") {
		t.Errorf("%+v", other)
	}
	if own := r.Groups[1]; own.State == UpgradeElsewhere || r.Behind != 1 {
		t.Errorf("%+v, %d are behind", own, r.Behind)
	}
}

// A group that a person keeps says so, and nothing of a window: the window is not what it waits for. With the turn it waits for nothing either.
func TestAKeptGroupNamesNoWindow(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) // a Wednesday
	g := v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	g.Status.Upgrade = &v1alpha1.UpgradeStatus{Revision: "r2", Sites: []v1alpha1.UpgradeSite{{Name: "a", Behind: true}}}
	g.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue},
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse},
		{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue},
	}
	for _, holder := range []string{"", "shop/orders"} {
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: v1alpha1.UpgradeLeaseName, Annotations: map[string]string{
				v1alpha1.AnnotationUpgradeRevision: "r2", v1alpha1.AnnotationUpgradeWindow: "Sat 22:00-24:00",
			}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
		got := Upgrade(lease, []v1alpha1.MysqlFailoverGroup{g}, now).Groups[0]
		if got.State != UpgradeHeld || got.Opens != nil || !strings.Contains(got.Why, "kubectl mfg resume orders -n shop") || strings.Contains(got.Why, "opens") {
			t.Errorf("turn of %q: %+v", holder, got)
		}
	}
}
