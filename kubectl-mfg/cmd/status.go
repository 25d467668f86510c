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
		Short: "Show the state of a group, or of all groups",
		Long: `Show the state of a group: which site takes writes, how far the others lag, and what to do next.
Without GROUP, show one line for each group of the namespace.

The plugin reads the custom resource, and asks the operator for its live view through the API server's service proxy.
If the operator cannot be reached, the output shows the last known status and says so. The group is then Unknown
(exit code 3), unless you merely lack the right to ask the operator.`,
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
	f.BoolVarP(&op.Watch, "watch", "w", false, "Redraw until interrupted.")
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
			// An empty name would mean all groups: not what a user wants who gave one.
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
