// SPDX-License-Identifier: Apache-2.0

// Package upgrade shows how far groups are with the pods of another version of the operator, and stops that: for one group by a pin, for all
// by the Lease of the turn. See docs/upgrades.md.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Cluster is what a look at the upgrade needs of the cluster.
type Cluster interface {
	Group(ctx context.Context, namespace, name string) (*v1alpha1.MysqlFailoverGroup, error)
	// Groups lists a namespace, or all namespaces for "".
	Groups(ctx context.Context, namespace string) ([]v1alpha1.MysqlFailoverGroup, error)
	Kube() kubernetes.Interface
}

// Status is `kubectl mfg upgrade status`.
type Status struct {
	// Namespace and Group name one group; without Group it shows all groups of all namespaces, or those of Namespace if the user may see only these.
	Namespace, Group  string
	OperatorNamespace string
	Color             string
	Output            cli.Output
}

// Validate checks only the command line.
func (op *Status) Validate() error {
	switch {
	case !slices.Contains(cli.Colors, op.Color):
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	case op.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	}
	return nil
}

// Run looks and shows it.
func (op *Status) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	groups, note, err := op.groups(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	lease, err := readLease(ctx, c.Kube(), op.OperatorNamespace)
	if err != nil {
		return cli.ExitError, err
	}
	rep := report.Upgrade(lease, groups, env.Now())
	rep.Note, rep.Flags = note, flagsOf(op.OperatorNamespace)
	code := cli.ExitHealthy
	if rep.NeedsAttention() {
		code = cli.ExitDegraded
	}
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.Upgrade(rep, screen.Options{Width: width, Color: cli.Colored(op.Color, env), Now: env.Now()}))
	return code, nil
}

// groups returns the requested groups, as far as the user may see them.
func (op *Status) groups(ctx context.Context, c Cluster) (groups []v1alpha1.MysqlFailoverGroup, note string, err error) {
	if op.Group != "" {
		g, err := c.Group(ctx, op.Namespace, op.Group)
		if err != nil {
			return nil, "", err
		}
		return []v1alpha1.MysqlFailoverGroup{*g}, "", nil
	}
	groups, err = c.Groups(ctx, "")
	if apierrors.IsForbidden(err) {
		note = "you may not list the groups of all namespaces; these are those of " + op.Namespace
		groups, err = c.Groups(ctx, op.Namespace)
	}
	return groups, note, err
}

// readLease reads the Lease of the turn.
func readLease(ctx context.Context, kube kubernetes.Interface, namespace string) (*coordinationv1.Lease, error) {
	lease, err := kube.CoordinationV1().Leases(namespace).Get(ctx, v1alpha1.UpgradeLeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("no Lease %s in namespace %s: the operator there is of a version that does not pace upgrades, or never led, or it is in another namespace\n"+
			"  see where operators are: kubectl get leases -A; then: --operator-namespace NAMESPACE", v1alpha1.UpgradeLeaseName, namespace)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w\n  what one group waits for is also in: kubectl mfg status GROUP", cli.RightsHint(err, "get", "leases.coordination.k8s.io/"+v1alpha1.UpgradeLeaseName, namespace))
	case err != nil:
		return nil, fmt.Errorf("read the Lease %s in namespace %s: %w", v1alpha1.UpgradeLeaseName, namespace, err)
	}
	return lease, nil
}
