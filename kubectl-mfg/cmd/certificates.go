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

func (a *app) certificatesCommand() *cobra.Command {
	op := inspect.Certificates{}
	cmd := &cobra.Command{
		Use:     "certificates GROUP",
		Aliases: []string{"certs"},
		Short:   "Show the certificates of a group, until when they are good, and what is wrong",
		Long: `Show the certificates of a group: the authorities in ca.crt, and which of them signs; the server certificate in the Secret of
spec.tls; what MySQL of each site shows in a handshake; and what the escrow listener shows, if the group is encrypted.

Each is checked: has it ended, does it end within 14 days and nobody renews it, do certificate and key belong together, did an
authority in ca.crt sign it, does it have the name of every site. While an authority is replaced, two are trusted: one signs, the
other signs next or signed before.

It reads the Secret of spec.tls, whose key is only compared with its certificate, and never the authority's. It shakes hands with
MySQL through a forwarded port, and does not log in. What you have no right to see is said to be unknown. Exit code 3 if a check
is FAIL.

` + cli.ExitCodes,
		Example: `  # Until when is what good, and who renews it?
  kubectl mfg certificates orders

  # With names and fingerprints
  kubectl mfg certificates orders -o wide

  # Days left of what each site shows
  kubectl mfg certificates orders -o jsonpath='{range .certificates[?(@.what=="site")]}{.site} {.daysLeft}{"\n"}{end}'`,
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
	cmd.AddCommand(a.renewCommand())
	return cmd
}

func (a *app) renewCommand() *cobra.Command {
	op := renew.Op{}
	cmd := &cobra.Command{
		Use:   "renew GROUP [--authority]",
		Short: "Renew the certificate that the operator makes, or its authority, now",
		Long: `Renew the certificate that the operator makes for a group with spec.tls: {}, now instead of when two thirds of its time are over.
The sites take it within minutes, without a restart.

With --authority the authority is replaced, in steps: the new one is put beside the former one into ca.crt, it signs once every
site trusts it and clients have had the time of --grace, and the former one leaves once every site shows a new certificate.
Because that takes a day, it is not waited for unless you say --wait.

A certificate that cert-manager or somebody else makes is renewed there: this command refuses.

` + cli.ExitCodes,
		Example: `  # Another certificate, by the same authority
  kubectl mfg certificates renew orders

  # What would be done? Nothing is sent
  kubectl mfg certificates renew orders --authority --dry-run=client

  # Another authority; clients read ca.crt every hour
  kubectl mfg certificates renew orders --authority --grace 2h --yes`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVar(&op.Authority, "authority", false, "Replace the authority too.")
	f.DurationVar(&op.Grace, "grace", 0, "With --authority: for how long clients are given the new authority before it signs, from 2m to 720h. Default: 24h.")
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
