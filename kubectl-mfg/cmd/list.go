// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
)

// listCommand is status without a group under the name that people look for.
func (a *app) listCommand() *cobra.Command {
	op := inspect.Status{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls", "get"},
		Short:   "Show one line for each group",
		Long: `Show one line for each group of the namespace, or of all namespaces with -A: the active site, how many sites are healthy,
the largest lag, and the last failover.`,
		Example: `  # Everything that this cluster runs
  kubectl mfg list -A

  # The same, redrawn every two seconds
  kubectl mfg list -A -w

  # Which groups need attention? Exit code 3 if any does
  kubectl mfg list -A -o wide

  # Names only, for other kubectl commands
  kubectl mfg list -o name`,
		Args: atMost(0),
	}
	cmd.Flags().BoolVarP(&op.AllNamespaces, "all-namespaces", "A", false, "Show the groups of all namespaces.")
	cmd.Flags().BoolVarP(&op.Watch, "watch", "w", false, "Redraw until interrupted.")
	cmd.Flags().DurationVar(&op.Interval, "interval", 2*time.Second, "With --watch, the time between two looks.")
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	out := addOutputFlag(cmd, cli.OutputWide, cli.OutputName)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
