// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/restart"
)

func restartCommand(a *app) *cobra.Command {
	op := restart.Op{}
	cmd := &cobra.Command{
		Use: "restart GROUP [SITE]", Short: "Replace the pods of a group in the safe order, or that of one site", Long: restart.Help, Example: restart.Examples,
		ValidArgsFunction: a.completeGroupAndSite,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage("GROUP is missing")
			}
			return atMost(2)(cmd, args)
		},
	}
	out := bindRequest(&op.Request, cmd, 15*time.Minute)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		if len(args) == 2 {
			if op.Site = args[1]; op.Site == "" {
				return cli.Usage("SITE is empty; leave it out for all sites")
			}
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
