// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/rotate"
)

func (a *app) rotateCommand() *cobra.Command {
	op := rotate.Op{}
	cmd := &cobra.Command{
		Use:               "rotate GROUP --site SITE | --all-replicas | --all | --stop",
		Short:             "Give sites new master keys, without loss",
		Long:              rotate.Help,
		Example:           rotate.Examples,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.Site, "site", "", "Rotate this replica.")
	f.BoolVar(&op.AllReplicas, "all-replicas", false, "Rotate every site but the active one.")
	f.BoolVar(&op.All, "all", false, "Rotate every site. The role moves to another site.")
	f.StringVar(&op.To, "to", "", "With --all: the site that becomes active. Default: the site that would take over in an emergency.")
	f.BoolVar(&op.Restart, "restart", false, "Start over: rotate also the sites that a stopped rotation has already rotated.")
	f.BoolVar(&op.Stop, "stop", false, "Stop the rotation of all sites in progress: no further step begins.")
	out := bindRequest(&op.Request, cmd, 15*time.Minute)
	f.Lookup("timeout").Usage = "How long to wait for each step. The request stays in force after that."
	_ = cmd.RegisterFlagCompletionFunc("site", a.completeSiteFlag)
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
