// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Explain is `kubectl mfg explain`.
type Explain struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	Color             string
	Output            cli.Output
}

// Validate has nothing to refuse.
func (op *Explain) Validate() error { return nil }

// Run looks and shows it.
func (op *Explain) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	rep, err := op.Gather(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	code := cli.ExitHealthy
	if rep.Blocked() {
		code = cli.ExitDegraded
	}
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, &rep)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.Explanation(rep, screen.Options{Width: width, Color: cli.Colored(op.Color, env), Now: env.Now()}))
	return code, nil
}

// Gather asks the operator why it decides as it does; without its answer the custom resource must do.
func (op *Explain) Gather(ctx context.Context, c Cluster) (report.Explained, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return report.Explained{}, err
	}
	list, err := c.Explain(ctx, op.OperatorNamespace, op.Namespace, op.Group)
	if ctx.Err() != nil {
		return report.Explained{}, ctx.Err()
	}
	view, explanation := live.View(list, err, op.OperatorNamespace)
	return report.BuildExplained(g, view, explanation), nil
}
