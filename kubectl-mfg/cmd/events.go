// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
)

func (a *app) eventsCommand() *cobra.Command {
	op := inspect.Events{}
	cmd := &cobra.Command{
		Use:   "events GROUP",
		Short: "Show the events of a group, its pods and volumes, oldest first",
		Long: `Show the events of a group together with those of its pods, Deployments and volumes, in the order in which they
happened. Kubernetes keeps events for an hour by default; kubectl mfg history goes back further.`,
		Example: `  # The last ten minutes, and everything new from now on
  kubectl mfg events orders --since 10m -w

  # Only what is wrong
  kubectl mfg events orders --warnings`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().BoolVarP(&op.Watch, "watch", "w", false, "Keep showing new events until interrupted.")
	cmd.Flags().DurationVar(&op.Since, "since", 0, "Show only events of this last period. Default: all that Kubernetes keeps.")
	cmd.Flags().BoolVar(&op.Warnings, "warnings", false, "Show only warnings.")
	out := addOutputFlag(cmd)
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
