// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
	"github.com/mysql-mfg/mfg/kubectl-mfg/renew"
)

func certificatesCommand(a *app) *cobra.Command {
	op := inspect.Certificates{}
	cmd := &cobra.Command{
		Use:               "certificates GROUP",
		Aliases:           []string{"certs"},
		Short:             "Show the certificates of a group, when they expire, and what is wrong",
		Long:              inspect.CertificatesHelp,
		Example:           inspect.CertificatesExamples,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	out := addOutputFlag(cmd, cli.OutputWide)
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
	cmd.AddCommand(renewCommand(a))
	return cmd
}

func renewCommand(a *app) *cobra.Command {
	op := renew.Op{}
	cmd := &cobra.Command{
		Use:               "renew GROUP [--authority]",
		Short:             "Renew the certificate that the operator issued, or replace its authority, now",
		Long:              renew.Help,
		Example:           renew.Examples,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVar(&op.Authority, "authority", false, "Replace the authority too.")
	f.DurationVar(&op.Grace, "grace", 0, "With --authority: how long clients have to load the new authority before it signs, from 2m to 720h. Default: 24h.")
	out := bindRequest(&op.Request, cmd, 15*time.Minute)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		op.Wait = op.Wait && (!op.Authority || cmd.Flags().Changed("wait"))
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
