// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
)

func (a *app) failoverCommand() *cobra.Command {
	op := failover.Op{}
	cmd := &cobra.Command{
		Use:     "failover GROUP --to SITE",
		Aliases: []string{"switchover"},
		Short:   "Move the active site to another one, without loss",
		Long: `Move the role of the active site to another site. Nothing is lost: the operator fences the old active site, and opens the new
one only after it has applied everything that the old one held. If that takes too long, the operator opens the old one again.
The plugin shows the plan first.

With --accept-data-loss, order an emergency failover that the operator refuses on its own (kubectl mfg explain says
why). It may lose acknowledged writes, and is refused while the active site accepts writes. The order stays on the
group until it is carried out, also after Ctrl-C: kubectl mfg status shows it, --abort withdraws it.`,
		Example: `  # Look first: what would happen? Nothing is sent
  kubectl mfg failover orders --to frankfurt --dry-run=client

  # Move the role; asks first, shows each phase, and reports the write pause
  kubectl mfg failover orders --to frankfurt

  # From a script: no questions, the outcome as JSON, exit code 5 if refused or reverted
  kubectl mfg failover orders --to frankfurt --yes -o json

  # It takes too long? Abort: the old active site is opened again
  kubectl mfg failover orders --abort

  # The active site is lost and the operator waits for your order
  kubectl mfg failover orders --to frankfurt --accept-data-loss

  # You changed your mind: withdraw the order, even while no operator runs
  kubectl mfg failover orders --abort`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.To, "to", "", "Site that is to become active.")
	f.BoolVar(&op.Abort, "abort", false, "Abort the planned failover in progress, and withdraw a pending order that accepts data loss.")
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
