// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
)

func (a *app) historyCommand() *cobra.Command {
	op := inspect.History{}
	cmd := &cobra.Command{
		Use:   "history GROUP",
		Short: "Show the last changes of the active site: timeline, proof, and what was lost",
		Long: `Show the last changes of the active site, newest first: when each step happened, what proved that the old site was
fenced, how long the write pause was, and which transactions and rows were lost. The operator keeps ten.

The number of lost transactions is a lower bound until the operator sees the old active site again. Then it is exact, and
the operator counts the lost rows from that site's binary log.`,
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
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	out := addOutputFlag(cmd, cli.OutputWide)
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
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
