// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
)

func (a *app) failoverCommand() *cobra.Command {
	op := failover.Op{}
	cmd := &cobra.Command{
		Use:     "failover GROUP --to SITE",
		Aliases: []string{"switchover"},
		Short:   "Move the active site to another one, without loss",
		Long: `Move the active site to another one. Nothing is lost: the old active site is fenced, the new one applies all that it
held, and only then is opened; if that takes too long, the old one is opened again. What will happen is shown first.

With --accept-data-loss, order an emergency failover that the operator does not do by itself (kubectl mfg explain says
why not). That may lose acknowledged writes; it is refused while the active site accepts writes. The order stays on the
group until it is carried out, also after Ctrl-C: kubectl mfg status shows it, --abort withdraws it.

` + cli.ExitCodes,
		Example: `  # Look first: what would happen? Nothing is sent
  kubectl mfg failover orders --to frankfurt --dry-run=client

  # Move the role; asks, shows each phase, and tells for how long writes were kept out
  kubectl mfg failover orders --to frankfurt

  # From a script: no questions, the outcome as JSON, exit code 5 if refused or reverted
  kubectl mfg failover orders --to frankfurt --yes -o json

  # It takes too long? Give it up: the old active site is opened again
  kubectl mfg failover orders --abort

  # The active site is lost and the operator waits for a word
  kubectl mfg failover orders --to frankfurt --accept-data-loss

  # It is not meant any more: withdraw it, also while no operator runs
  kubectl mfg failover orders --abort`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.To, "to", "", "Site that is to become active.")
	f.BoolVar(&op.Abort, "abort", false, "Give up the planned failover that is under way, and withdraw a pending order that accepts data loss.")
	f.BoolVar(&op.AcceptDataLoss, "accept-data-loss", false, "Override what blocks an emergency failover. Acknowledged writes may be lost.")
	out := bindRequest(&op.Request, cmd, 5*time.Minute)
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
