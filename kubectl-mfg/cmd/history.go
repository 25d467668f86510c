// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// historyOp is `kubectl mfg history`.
type historyOp struct {
	Namespace string
	Group     string
	Epoch     int64
	Color     string
	Output    output
}

func (a *app) historyCommand() *cobra.Command {
	op := historyOp{}
	cmd := &cobra.Command{
		Use:   "history GROUP",
		Short: "Show the last changes of the active site: timeline, proof, and what was lost",
		Long: `Show the last changes of the active site, newest first: when each step was done, what proved that the old site was
fenced, for how long writes were kept out, and which transactions and rows were lost. The operator keeps ten.

Lost transactions are a lower bound until the old active site was seen again; then they are exact, and the rows are
counted from its binary log.

` + exitCodes,
		Example: `  # What happened last night?
  kubectl mfg history orders

  # Only the change that began epoch 8, with whole GTID sets
  kubectl mfg history orders --epoch 8 -o yaml

  # What did we lose, table by table?
  kubectl mfg history orders -o jsonpath='{range .items[*].lostRows[*]}{.schema}.{.table} {.inserted}{"\n"}{end}'`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().Int64Var(&op.Epoch, "epoch", 0, "Show only the change that began this epoch.")
	cmd.Flags().StringVar(&op.Color, "color", colorAuto, "Colour: "+strings.Join(colors, "|")+".")
	out := addOutputFlag(cmd, outputWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *historyOp) validate() error {
	if op.Epoch < 0 {
		return errors.New("--epoch is above 0")
	}
	return nil
}

func (op *historyOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return exitError, err
	}
	h := report.BuildHistory(g, op.Epoch)
	if op.Epoch > 0 && len(h.Items) == 0 {
		return exitError, fmt.Errorf("no change that began epoch %d is kept\n  see those that are: kubectl mfg history %s -n %s", op.Epoch, op.Group, op.Namespace)
	}
	if op.Output.printer != nil {
		return exitHealthy, op.Output.print(env.Out, &h)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.History(h, screen.Options{
		Width: width, Color: colored(op.Color, env), Now: env.Now(), Wide: op.Output.Format == outputWide,
	}))
	return exitHealthy, nil
}
