// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// Cluster is what restoring a keyring needs of the cluster.
type Cluster interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	// Exec runs a command in a container.
	Exec(ctx context.Context, e pods.Execution) error
	Kube() kubernetes.Interface
}
