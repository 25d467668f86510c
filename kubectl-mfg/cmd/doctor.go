// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/doctor"
	"github.com/mysql-mfg/mfg/kubectl-mfg/preflight"
)

func (a *app) doctorCommand() *cobra.Command {
	op, preflighted := doctor.Op{}, false
	cmd := &cobra.Command{
		Use:   "doctor GROUP | --preflight",
		Short: "Check what the operator cannot check, but you can",
		Long: `Check around a group what the operator has no right to see, but a person may: whether Secrets are encrypted at rest
and who can read them, swap and readiness of nodes, sites that share a node, clocks, volumes that can grow, budgets
against eviction, whether sites believe the escrow endpoint, who leads, and what would block a failover.

With --preflight, check the cluster before mfg is installed: version, rights, storage, nodes, clocks, whether the network
enforces policies, and cert-manager.

Nothing is changed, and no Secret is read. What you have no right to see is said to be unknown, with the right that is
missing. Exit code 3 means that a finding is FAIL; with WARN and UNKNOWN alone it is 0.

` + cli.ExitCodes,
		Example: `  # Before going into production, and once in a while
  kubectl mfg doctor orders

  # Before the install
  kubectl mfg doctor --preflight

  # Only what is wrong
  kubectl mfg doctor orders -o jsonpath='{range .findings[?(@.level=="FAIL")]}{.check}: {.message}{"\n"}{end}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if preflighted && len(args) > 0 {
				return cli.Usage("GROUP and --preflight exclude each other: there is no group before the install")
			} else if preflighted {
				return nil
			}
			return exactly("GROUP")(cmd, args)
		},
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	cmd.Flags().BoolVar(&preflighted, "preflight", false, "Check the cluster before mfg is installed.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		if preflighted {
			before := preflight.Op{Namespace: op.Namespace, OperatorNamespace: op.OperatorNamespace, Color: op.Color, Output: op.Output}
			return a.perform(cmd.Context(), &before, func(ctx context.Context, c Cluster) (int, error) { return before.Run(ctx, a.env, c) })
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
