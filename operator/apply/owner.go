// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// IsGone is true of an owner that was a group of the same name: there is only one group of a name at a time.
func IsGone(group *v1alpha1.MysqlFailoverGroup, owner metav1.OwnerReference) bool {
	return owner.Kind == "MysqlFailoverGroup" && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") &&
		owner.Name == group.Name && owner.UID != group.UID
}
