// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// patchStatus changes the status of a group by a JSON patch.
func patchStatus(ctx context.Context, c Cluster, g *v1alpha1.MysqlFailoverGroup, patch []map[string]any, dryRun bool) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	path := fmt.Sprintf("/apis/%s/namespaces/%s/%s/%s/status", v1alpha1.GroupVersion, g.Namespace, cli.Resource, g.Name)
	req := c.Kube().CoreV1().RESTClient().Patch(types.JSONPatchType).AbsPath(path).Param("fieldManager", cli.FieldManager).
		SetHeader("Accept", "application/json").Body(body)
	if dryRun {
		req = req.Param("dryRun", metav1.DryRunAll)
	}
	return req.Do(ctx).Error()
}
