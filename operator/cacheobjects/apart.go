// SPDX-License-Identifier: Apache-2.0

package cacheobjects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// apart is true if no Service of MySQL would lead to a cache pod. Releases without a cache store wrote selectors that do not name MySQL, and
// that of the primary Service is written by the poll loop in its own time: until it has, there is no first cache pod. Pods that there are
// stay, and go on to be looked after.
func (o *Objects) apart(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, out *Result) (bool, error) {
	for _, name := range []string{v1alpha1.PrimaryService(group.Name), v1alpha1.ReplicasService(group.Name)} {
		s := &corev1.Service{}
		err := o.Client.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: name}, s)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("read service %s: %w", name, err)
		}
		// One without a selector leads nowhere.
		if len(s.Spec.Selector) > 0 && s.Spec.Selector[v1alpha1.LabelName] != v1alpha1.NameMySQL {
			out.Reason, out.Again = v1alpha1.ReasonUpdating, whenMoving
			out.Message = fmt.Sprintf("cache pods are made once Service %s selects pods of MySQL alone, which the operator sees to", name)
			return false, nil
		}
	}
	return true, nil
}
