// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/adopt"
)

func (a *app) adoptCommand() *cobra.Command {
	op := adopt.Op{}
	cmd := &cobra.Command{
		Use:   "adopt GROUP",
		Short: "Encrypt a group that is already in use, in part; list what is still in the clear",
		Long: `Encrypt a group that is already in use. Set spec.encryptionAtRest.enabled first. The operator does not act on it until a person
accepts the consequences, and this command accepts them:

- From then on redo, undo, binary and relay logs are encrypted, and so are the tables of new schemas.
- Existing tables stay in the clear until each is rebuilt. Existing binary logs stay so until they are purged.
- An existing schema still creates its new tables in the clear, until you change its default.
- Encryption cannot be turned off again.

--tables lists what is still in the clear on the active site, as statements for "kubectl mfg mysql". It needs the rights of that
command, because it runs the mysql client in the pod. Each statement copies its table, on the active site and then on each
replica. Exit code 3 means that something is still in the clear.

If no data may ever have been in the clear on a volume, make a new encrypted group instead, and load it from this one.`,
		Example: `  # What are the consequences? Nothing is sent
  kubectl mfg adopt orders --dry-run=client

  # Accept it, and wait until every site is sealed
  kubectl mfg adopt orders

  # What is still in the clear, and the statements that encrypt it
  kubectl mfg adopt orders --tables

  # Encrypt all of it; paris is active
  kubectl mfg adopt orders --tables | kubectl mfg mysql orders paris`,
	}
	cmd.Flags().BoolVar(&op.Tables, "tables", false, "List what is still in the clear, with the statements that encrypt it. Changes nothing.")
	return a.asks(cmd, &op, &op.Request, bindRequest(&op.Request, cmd, time.Hour), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
