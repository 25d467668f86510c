// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
)

func (a *app) explainCommand() *cobra.Command {
	op := inspect.Explain{}
	cmd := &cobra.Command{
		Use:   "explain GROUP",
		Short: "Say why a group does, or does not, fail over right now",
		Long: `Say why a group does, or does not, fail over right now: the answer of each rule, the rank of each site and the reason for it,
what would be lost, and what blocks an automatic failover.

The operator answers, with the code that decides and with what it saw at its last look. If the operator cannot be reached, the
output comes from the custom resource alone, and says so. Exit code 3 means that an automatic failover would not happen, or that
the operator did not confirm that it would.`,
		Example: `  # Why is nothing happening?
  kubectl mfg explain orders

  # Would the group fail over if the active site died now? Exit code 3 if not
  kubectl mfg explain orders -o jsonpath='{.explanation.blockers}'

  # Why would this site not take over?
  kubectl mfg explain orders -o jsonpath='{.explanation.candidates[?(@.site=="madrid")].unfit}'`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
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
