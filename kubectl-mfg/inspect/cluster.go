// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Cluster is what the verbs that only look need of the cluster.
type Cluster interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	// Groups lists a namespace, or all namespaces for "".
	Groups(ctx context.Context, namespace string) ([]v1alpha1.MysqlFailoverGroup, error)
	// Live asks the operator for the status of a group, or of all groups for empty names; Explain asks why it decided as it did.
	Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error)
	Explain(ctx context.Context, operatorNamespace, namespace, group string) (wire.ExplainedList, error)
	// Kube is everything else that Kubernetes holds.
	Kube() kubernetes.Interface
}
