// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// Turns says which group may get the pods of this operator version.
type Turns interface {
	Has(group types.NamespacedName) bool
}

// upgradeOf holds pods back until it is the group's turn; without Turns it holds none. A pinned group has no turn, even if it is given one.
func upgradeOf(r *Reconciler, group *v1alpha1.MysqlFailoverGroup) scope.Upgrade {
	if r.Turns == nil {
		return scope.Upgrade{}
	}
	return scope.NewUpgrade(group, r.Revision, group.Annotations[v1alpha1.AnnotationUpgradePin] == "" && r.Turns.Has(scope.KeyOf(group)))
}
