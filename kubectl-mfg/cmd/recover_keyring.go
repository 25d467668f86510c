// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/recovery"
)

func (a *app) recoverKeyringCommand() *cobra.Command {
	op := recovery.Op{}
	cmd := &cobra.Command{
		Use:   "recover-keyring GROUP SITE",
		Short: "Restore a lost escrow Secret from the memory of the site's pod",
		Long: `Restore the escrow Secret of a site's keyring after a person deleted it, while the site's pod still runs. The pod's memory
holds the only copy then: do not delete, restart, evict or drain that pod.

The plugin reads the keyring from the running container into its own memory, and writes it to no disk. The keyring must
have the digest that the group's status names, before the Secret is made and after; otherwise the plugin deletes the Secret
again and changes nothing else. Then it labels the Secret and makes it immutable, as the operator does, sets the phase,
and waits until the site is Sealed.

Each step first checks what is already there. Run it again if it was interrupted, or if a person did part of it by hand.`,
		Example: `  # Which one is missing?
  kubectl mfg keyring verify orders

  # Look first: every step and object, with the key redacted. Nothing is sent
  kubectl mfg recover-keyring orders frankfurt --dry-run=client

  # Read the keyring, compare it, and let the API server check every change without keeping any
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
