// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"github.com/mysql-mfg/mfg/kubectl-mfg/backup"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cache"
	"github.com/mysql-mfg/mfg/kubectl-mfg/dashboard"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pitr"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/restore"
)

// Cluster is all that the verbs need of Kubernetes and, through it, of the operator, combined from what each needs.
type Cluster interface {
	request.Cluster
	inspect.Cluster
	inspect.Chains
	mysqlclient.Cluster
	cache.Cluster
	backup.Cluster
	pitr.Cluster
	restore.Cluster
	doctor.Cluster
	dashboard.Cluster
}
