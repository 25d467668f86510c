// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
)

func (a *app) keyringCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keyring",
		Short: "Show and check the keyrings in escrow",
		Long: `Show and check the keyrings in escrow: which versions there are, with which digests, and which one each site is sealed
with. No byte of a key is ever shown.`,
		Example: `  # Versions, digests, and which one each site is sealed with
  kubectl mfg keyring list orders

  # Read every keyring, hash it, and compare; exit code 3 if something does not match
  kubectl mfg keyring verify orders`,
	}
	return family(cmd, a.keyringListCommand(), a.keyringVerifyCommand())
}

func (a *app) keyringListCommand() *cobra.Command {
	return a.keyringLook(&cobra.Command{
		Use:   "list GROUP",
		Short: "Show versions, digests, and which one each site is sealed with",
		Long: `Show the keyrings in escrow: versions, the digests that they were stored with, and which one each site is sealed with. The
plugin reads only the metadata of Secrets, no content. Exit code 3 if a Secret that a site is sealed with is missing.`,
		Example: `  # Versions, digests, and which one each site is sealed with
  kubectl mfg keyring list orders

  # Whole digests, names of Secrets, and what each pod has mounted
  kubectl mfg keyring list orders -o wide`,
	}, &inspect.Keyring{})
}

func (a *app) keyringVerifyCommand() *cobra.Command {
	return a.keyringLook(&cobra.Command{
		Use:   "verify GROUP",
		Short: "Read every keyring in escrow, hash it again, and compare",
		Long: `Read every keyring in escrow, hash it, and compare the digest with the one in status, with the one it was stored with, and with
the keyring in the pod. Also check that the Secret is protected. The content is hashed and never shown. You need the right to
read Secrets.

Exit code 3 if something does not match; each finding says what to do next.`,
		Example: `  # Before you drain nodes or upgrade, and once in a while
  kubectl mfg keyring verify orders

  # Only what does not match
  kubectl mfg keyring verify orders -o jsonpath='{range .findings[?(@.level=="FAIL")]}{.site}: {.message}{"\n"}{end}'`,
	}, &inspect.Keyring{Verify: true})
}

// keyringLook adds what both share.
func (a *app) keyringLook(cmd *cobra.Command, op *inspect.Keyring) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = exactly("GROUP"), a.completeGroup
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
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
		return a.perform(cmd.Context(), op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
