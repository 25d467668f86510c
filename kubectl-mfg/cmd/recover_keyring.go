// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/recovery"
)

func (a *app) recoverKeyringCommand() *cobra.Command {
	op := recovery.Op{}
	cmd := &cobra.Command{
		Use:   "recover-keyring GROUP SITE",
		Short: "Bring a lost escrow Secret back from the memory of the site's pod",
		Long: `Bring the escrow Secret of a site's keyring back, that somebody deleted, while the site's pod still runs: its memory
holds the only copy then. Do not delete, restart, evict or drain that pod.

The keyring is read out of the running container into this program's memory, and never written to a disk here. It must
have the digest that the group's status names, before the Secret is made and after; otherwise the Secret is deleted again
and nothing else is changed. Then the Secret is labelled and made immutable, as the operator makes it, the phase is set,
and the site is waited for until it is Sealed.

Each step looks first at what is there: run it again after it was interrupted, or after somebody did a part of it by hand.

` + cli.ExitCodes,
		Example: `  # Which one is missing?
  kubectl mfg keyring verify orders

  # Look first: every step and every object, with the key redacted. Nothing is sent
  kubectl mfg recover-keyring orders frankfurt --dry-run=client

  # Read the keyring, compare it, and let the API server check every change, but keep none
  kubectl mfg recover-keyring orders frankfurt --dry-run=server

  # Do it; asks, shows each step, and waits until the site is Sealed
  kubectl mfg recover-keyring orders frankfurt`,
		Args:              exactly("GROUP", "SITE"),
		ValidArgsFunction: a.completeGroupAndSite,
	}
	out := bindRequest(&op.Request, cmd, 5*time.Minute)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		op.Site = args[1]
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
