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

func (a *app) logsCommand() *cobra.Command {
	op := logs.Op{}
	cmd := &cobra.Command{
		Use:   "logs GROUP",
		Short: "Show the logs of all pods of a group as one, in order",
		Long: `Show the logs of all pods of a group as one: MySQL, sidecar, archiver, cache and backups, in the order of their times.
Each line has its time (UTC, when the node got it), site and container, level, and text. It needs the right to list
pods and to read their logs.

The level is the key "level" of our own logs, and the one in mysqld's error log; a line without one, as of a stack trace,
has that of the line before it. With -f, pods that are replaced are followed too. Control characters are shown as \x1b.

` + cli.ExitCodes,
		Example: `  # What went wrong in the last hour?
  kubectl mfg logs orders --level warning

  # Follow a failover
  kubectl mfg logs orders -f --since 1m

  # One site's MySQL, from the beginning
  kubectl mfg logs orders --site frankfurt --container mysql --since 0`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVarP(&op.Follow, "follow", "f", false, "Keep showing what comes, until interrupted.")
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
