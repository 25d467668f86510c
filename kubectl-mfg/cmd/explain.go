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
		Long: `Say why a group does, or does not, fail over right now: each rule with what it was asked and what it says, each site
with why it ranks where it does, what would be lost, and what would keep a failover from happening by itself.

It is the operator that answers, by the functions that decide, from what they saw at the last look. Where it cannot be
asked, what the custom resource says is shown, and said to be no more than that. Exit code 3 means that a failover would not
happen by itself, or that the operator did not say that it would.

` + cli.ExitCodes,
		Example: `  # Why is nothing happening?
  kubectl mfg explain orders

  # Would a failover happen by itself if the active site died now? Exit code 3 if not
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
