// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/passwords"
)

func (a *app) rotatePasswordsCommand() *cobra.Command {
	op := passwords.Op{}
	cmd := &cobra.Command{
		Use:   "rotate-passwords GROUP [--account ACCOUNT]...",
		Short: "Replace the passwords of the operator's own accounts, without downtime",
		Long: `Replace the passwords with which operator, sidecars, replication and clones log in at MySQL. Nobody chooses or sees the new
ones. Every site takes both passwords first, then everybody changes to the new one, and in the end the old one is refused on every
site. Clients, roles and pods are not touched, and a failover may happen at any moment of it.

It takes a minute or two, and for as long as a site cannot be reached it waits: both passwords stay valid until it can. Ctrl-C
ends only the waiting.

The password of root is not among them: it is yours. To change it, see docs/security.md.

` + cli.ExitCodes,
		Example: `  # All of them; asks, and shows how far it is
  kubectl mfg rotate-passwords orders

  # Those of replication and of the sidecars, from a script
  kubectl mfg rotate-passwords orders --account replication --account sidecar --yes

  # Ask for it and go
  kubectl mfg rotate-passwords orders --yes --wait=false`,
	}
	cmd.Flags().StringSliceVar(&op.Accounts, "account", nil, "Only the password of this account: "+strings.Join(passwords.Accounts, ", ")+". May be given more than once. Default: all.")
	_ = cmd.RegisterFlagCompletionFunc("account", cobra.FixedCompletions(passwords.Accounts, cobra.ShellCompDirectiveNoFileComp))
	return a.asks(cmd, &op, &op.Request, bindRequest(&op.Request, cmd, 15*time.Minute), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
