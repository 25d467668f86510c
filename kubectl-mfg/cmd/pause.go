// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pause"
)

func (a *app) pauseCommand() *cobra.Command {
	op := pause.Op{}
	cmd := &cobra.Command{
		Use:   "pause GROUP --for DURATION",
		Short: "Keep the operator from changing anything by itself, for a time",
		Long: `Keep the operator from changing roles, rolling pods and cloning sites by itself, for a time. The pause ends by itself:
nobody can forget it. While it lasts a lost active site is NOT replaced; fences still work, and an active site that
restarts is opened again. What a person has ordered with --accept-data-loss is carried out all the same; a planned failover
that has not begun is refused, and a rotation or an update stops before the next pod is replaced.

It is taken also while no operator runs, for one that comes back before it ends, and while something else is asked for.

` + cli.ExitCodes,
		Example: `  # While you work on the network
  kubectl mfg pause orders --for 30m

  # Done sooner
  kubectl mfg resume orders`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().DurationVar(&op.For, "for", 0, "How long, such as 30m; at most 168h.")
	out := bindRequest(&op.Request, cmd, 30*time.Second)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
