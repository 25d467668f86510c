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
		Use:     "doctor GROUP | --preflight",
		Short:   "Check what you can see and the operator cannot",
		Long:    doctor.Help,
		Example: doctor.Examples,
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
