// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
)

func (a *app) statusCommand() *cobra.Command {
	op := inspect.Status{}
	cmd := &cobra.Command{
		Use:   "status [GROUP]",
		Short: "Show how a group is, or all groups",
		Long: `Show how a group is: who may accept writes, how far the others are, and what to do next.
Without GROUP, show one line for each group of the namespace.

The custom resource is always read. What the operator sees right now is asked of the operator through the
API server's service proxy; where that cannot be reached, the last known status is shown and said to be so.
Then the group is Unknown (exit code 3) unless it is only that you may not ask.

` + cli.ExitCodes,
		Example: `  # One group, one screen
  kubectl mfg status orders

  # All groups of all namespaces, redrawn every two seconds
  kubectl mfg status -A -w

  # Who replicates from whom
  kubectl mfg status orders -o tree

  # For scripts: exit code 3 if a group needs attention
  kubectl mfg status orders -o json`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVarP(&op.AllNamespaces, "all-namespaces", "A", false, "Show the groups of all namespaces.")
	f.BoolVarP(&op.Watch, "watch", "w", false, "Keep showing, until interrupted.")
	f.DurationVar(&op.Interval, "interval", 2*time.Second, "With --watch, the time between two looks.")
	f.StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+". auto: on a terminal, unless NO_COLOR is set.")
	f.StringVar(&op.OperatorNamespace, "operator-namespace", live.DefaultNamespace, "Namespace in which the operator runs.")
	out := addOutputFlag(cmd, cli.OutputWide, cli.OutputTree, cli.OutputName)
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(cli.Colors, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if op.Output, err = out(); err != nil {
			return err
		}
		if len(args) == 1 {
			if op.Group, err = bareName(args[0]); err != nil {
				return err
			}
			// An empty name would mean all groups: not what somebody wants who gave one.
			if op.Group == "" {
				return cli.Usage("GROUP is empty")
			}
		}
		if op.Namespace, _, err = a.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("read kubeconfig: %w", err)
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
