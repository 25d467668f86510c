// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// explain adds to an error of the API server what to do next.
func explain(err error, namespace, name string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err):
		// The API server's answer to an unknown path, not to an unknown object.
		return fmt.Errorf(`this cluster does not know the kind MysqlFailoverGroup (%s): is mfg installed?
  helm install mfg charts/mfg --namespace mfg-system --create-namespace`, v1alpha1.GroupVersion)
	case apierrors.IsNotFound(err):
		return fmt.Errorf(`no group %q in namespace %q: %w
  list all groups: kubectl mfg status -A`, name, namespace, err)
	case apierrors.IsForbidden(err):
		where := "-n " + namespace
		if namespace == "" {
			where = "-A"
		}
		return fmt.Errorf(`%w
  see what you may do: kubectl auth can-i get %s.%s %s`, err, cli.Resource, v1alpha1.GroupVersion.Group, where)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w\n  log in to the cluster again, or choose another context: kubectl config get-contexts", err)
	case errors.Is(err, context.Canceled):
		return err
	case utilnet.IsConnectionRefused(err):
		return fmt.Errorf("cannot reach the API server: %w\n  see which cluster is meant: kubectl config current-context", err)
	case utilnet.IsTimeout(err):
		return fmt.Errorf("the API server does not answer: %w\n  see which cluster is meant: kubectl config current-context\n  to wait for less long: --request-timeout=5s", err)
	default:
		return fmt.Errorf("the request to the API server failed: %w", err)
	}
}
