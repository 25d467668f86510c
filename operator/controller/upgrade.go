// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// Turns says which group may be given the pods of this version of the operator.
type Turns interface {
	Has(group types.NamespacedName) bool
}

// upgradeOf is by what pods are held back until it is the group's turn. Without Turns none is. A pinned group has no turn, also if it is given one.
func upgradeOf(r *Reconciler, group *v1alpha1.MysqlFailoverGroup) scope.Upgrade {
	if r.Turns == nil {
		return scope.Upgrade{}
	}
	return scope.NewUpgrade(group, r.Revision, group.Annotations[v1alpha1.AnnotationUpgradePin] == "" && r.Turns.Has(scope.KeyOf(group)))
}
