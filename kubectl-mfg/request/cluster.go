// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Cluster is what a request needs of the cluster.
type Cluster interface {
	GroupReader
	// Live asks the operator for the status of a group, or of all groups for empty names; Explain asks why it decided as it did.
	Live(ctx context.Context, operatorNamespace, namespace, group string) (wire.StatusList, error)
	Explain(ctx context.Context, operatorNamespace, namespace, group string) (wire.ExplainedList, error)
	// Annotate changes annotations of a group if no one changed it since it was read.
	Annotate(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, change map[string]string, dryRun bool) (*v1alpha1.MysqlFailoverGroup, error)
	// Clock returns the time of the API server, and how long it took to answer.
	Clock(ctx context.Context) (server time.Time, took time.Duration, err error)
}

// GroupReader reads a group.
type GroupReader interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
}
