// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/dashboard"
)

func (a *app) dashboardCommand() *cobra.Command {
	op := dashboard.Op{}
	cmd := &cobra.Command{
		Use:   "dashboard [GROUP]",
		Short: "Watch groups live on a full screen",
		Long: `Watch groups live on a full screen: which site takes writes, how far the others lag, a failover as it unfolds, and
what would happen if the active site were lost now. Keys are as in k9s; ? lists them.

The data comes from the operator, through the API server's service proxy, or a forwarded port where the proxy is not
allowed. When the stream breaks, the screen says for how long, and shows the custom resource after a while.

The dashboard is read-only unless you give --allow-actions. Then keys run the verbs failover (and its --abort), reclone,
pause and resume. Each shows its plan and asks first.`,
		Example: `  # All groups of the namespace
  kubectl mfg dashboard

  # One group, with keys that act
  kubectl mfg dashboard orders --allow-actions

  # One frame, for a ticket
  kubectl mfg dashboard orders --once`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVarP(&op.AllNamespaces, "all-namespaces", "A", false, "Show the groups of all namespaces.")
	f.BoolVar(&op.Once, "once", false, "Print one frame and exit. Needs no terminal.")
	f.BoolVar(&op.AllowActions, "allow-actions", false, "Let keys run verbs; each shows its plan and asks.")
	f.BoolVar(&op.ASCII, "ascii", false, "Draw with ASCII only. Default: only if the locale is not UTF-8.")
	f.StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+". auto: on a terminal, unless NO_COLOR is set.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(cli.Colors, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) == 1 {
			if op.Group, err = groupArgument(args[0]); err != nil {
				return err
			}
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
