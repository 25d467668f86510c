// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/logs"
)

func logsCommand(a *app) *cobra.Command {
	op := logs.Op{}
	cmd := &cobra.Command{
		Use:               "logs GROUP",
		Short:             "Show the logs of all pods of a group as one stream",
		Long:              logs.Help,
		Example:           logs.Examples,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVarP(&op.Follow, "follow", "f", false, "Keep showing new lines until interrupted.")
	f.StringVar(&op.Site, "site", "", "Only the pods of this site.")
	f.StringVarP(&op.Container, "container", "c", "", "Only this container, such as mysql, sidecar or archiver.")
	f.DurationVar(&op.Since, "since", time.Hour, "How far back to begin; 0 is everything that the nodes still have.")
	f.StringVar(&op.Level, "level", logs.Levels[0], "The least important level to show: "+strings.Join(logs.Levels, "|")+".")
	f.StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("site", a.completeSiteFlag)
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(logs.Levels, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
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
