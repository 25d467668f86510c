// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// History is `kubectl mfg history`.
type History struct {
	Namespace string
	Group     string
	Epoch     int64
	Color     string
	Output    cli.Output
}

// Validate checks only the command line.
func (op *History) Validate() error {
	if op.Epoch < 0 {
		return errors.New("--epoch is above 0")
	}
	return nil
}

// Run looks and shows it.
func (op *History) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	h := report.BuildHistory(g, op.Epoch)
	if op.Epoch > 0 && len(h.Items) == 0 {
		return cli.ExitError, fmt.Errorf("no change that began epoch %d is kept\n  see those that are: kubectl mfg history %s -n %s", op.Epoch, op.Group, op.Namespace)
	}
	if op.Output.Printer != nil {
		return cli.ExitHealthy, op.Output.Print(env.Out, &h)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.History(h, screen.Options{
		Width: width, Color: cli.Colored(op.Color, env), Now: env.Now(), Wide: op.Output.Format == cli.OutputWide,
	}))
	return cli.ExitHealthy, nil
}
