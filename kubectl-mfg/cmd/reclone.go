// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/reclone"
)

func (a *app) recloneCommand() *cobra.Command {
	op := reclone.Op{}
	cmd := &cobra.Command{
		Use:               "reclone GROUP SITE",
		Short:             "Delete a site's data and copy it again from the active site",
		Long:              reclone.Help,
		Example:           reclone.Examples,
		Args:              exactly("GROUP", "SITE"),
		ValidArgsFunction: a.completeGroupAndSite,
	}
	cmd.Flags().BoolVar(&op.ConfirmDataLoss, "confirm-data-loss", false, "Delete also what only this site has.")
	out := bindRequest(&op.Request, cmd, 2*time.Hour)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		op.Site = args[1]
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
