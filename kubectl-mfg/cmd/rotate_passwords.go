// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/passwords"
)

func (a *app) rotatePasswordsCommand() *cobra.Command {
	op := passwords.Op{}
	cmd := &cobra.Command{
		Use:   "rotate-passwords GROUP [--account ACCOUNT]...",
		Short: "Replace the passwords of the operator's own accounts, without downtime",
		Long: `Replace the passwords that the operator, the sidecars, replication and clones use to log in to MySQL. The operator generates the new
ones, and no person sees them. First every site accepts both passwords. Then all programs switch to the new one. Last, every site
refuses the old one. Clients, roles and pods are not touched, and a failover may happen at any time.

It takes a minute or two. If a site cannot be reached, the operator waits for it; both passwords stay valid until then. Ctrl-C
ends only the waiting.

The password of root is not one of them: it is yours. To change it, see docs/security.md.`,
		Example: `  # All of them; asks first, then shows progress
  kubectl mfg rotate-passwords orders

  # Only replication and the sidecars, from a script
  kubectl mfg rotate-passwords orders --account replication --account sidecar --yes

  # Send the request and do not wait
  kubectl mfg rotate-passwords orders --yes --wait=false`,
	}
	cmd.Flags().StringSliceVar(&op.Accounts, "account", nil, "Only the password of this account: "+strings.Join(passwords.Accounts, ", ")+". May be given more than once. Default: all.")
	_ = cmd.RegisterFlagCompletionFunc("account", cobra.FixedCompletions(passwords.Accounts, cobra.ShellCompDirectiveNoFileComp))
	return a.asks(cmd, &op, &op.Request, bindRequest(&op.Request, cmd, 15*time.Minute), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
