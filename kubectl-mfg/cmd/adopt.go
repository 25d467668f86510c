// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/adopt"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func (a *app) adoptCommand() *cobra.Command {
	op := adopt.Op{}
	cmd := &cobra.Command{
		Use:   "adopt GROUP",
		Short: "Encrypt a group that serves already, in part; list what is still in the clear",
		Long: `Encrypt a group that serves already. spec.encryptionAtRest.enabled is to be set before; the operator refuses it until
somebody accepts what it means, and that is what this command does:

- What is written from then on to redo, undo, binary and relay logs is encrypted, and so are tables of new schemas.
- What is there stays in the clear until it is rebuilt: every table, and old binary logs until they are purged.
- A schema that is there goes on making its new tables in the clear, until its default is changed.
- Encryption cannot be turned off again.

--tables lists what is still in the clear on the active site, as statements that can be piped into "kubectl mfg mysql". It
reads it with the mysql client in the pod: that needs the rights of that command. A statement copies its table, on the
active site and then on each replica. Exit code 3 says that something is still in the clear.

If nothing may ever have been in the clear on a volume, make a new encrypted group instead, and load it from this one.

` + cli.ExitCodes,
		Example: `  # What would it mean? Nothing is sent
  kubectl mfg adopt orders --dry-run=client

  # Accept it, and wait until every site is sealed
  kubectl mfg adopt orders

  # What is still in the clear, and what encrypts it
  kubectl mfg adopt orders --tables

  # Encrypt all of it; paris is active
  kubectl mfg adopt orders --tables | kubectl mfg mysql orders paris`,
	}
	cmd.Flags().BoolVar(&op.Tables, "tables", false, "List what is still in the clear, with the statements that encrypt it. Changes nothing.")
	return a.asks(cmd, &op, &op.Request, bindRequest(&op.Request, cmd, time.Hour), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
