// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// IsGone is true of an owner that was a group of the same name: there is only one group of a name at a time.
func IsGone(group *v1alpha1.MysqlFailoverGroup, owner metav1.OwnerReference) bool {
	return owner.Kind == "MysqlFailoverGroup" && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") &&
		owner.Name == group.Name && owner.UID != group.UID
}

// Orphan removes the group, and groups of the name that are gone, from an object's owners, so that the garbage collector keeps the object.
func Orphan(ctx context.Context, c client.Client, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("impossible type %T", obj)
	}
	var owners []metav1.OwnerReference
	for _, o := range obj.GetOwnerReferences() {
		if o.UID != group.UID && !IsGone(group, o) {
			owners = append(owners, o)
		}
	}
	if len(owners) == len(obj.GetOwnerReferences()) {
		return nil
	}
	obj.SetOwnerReferences(owners)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(c.Patch(ctx, obj, patch, client.FieldOwner(v1alpha1.ManagerController)))
}
