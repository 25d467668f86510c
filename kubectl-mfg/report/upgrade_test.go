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
