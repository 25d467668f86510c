// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
)

func (a *app) mysqlCommand() *cobra.Command {
	op := mysqlclient.Op{}
	cmd := &cobra.Command{
		Use:   "mysql GROUP SITE [-e SQL] [-- ARGUMENTS]",
		Short: "Open a mysql client in the pod of a site",
		Long: `Open a mysql client in the pod of a site, over its socket. It needs the right to exec into pods; the client is the one
in the image of MySQL, if it has one.

On a terminal the client asks for the password. With -e, or with SQL on stdin, the password of root is taken from the
group's Secret, which needs the right to read it, and goes through stdin: never through a command line.

A write on a site that is not active is refused by MySQL: such a site is read-only, also for root.

` + cli.ExitCodes,
		Example: `  # A session on the active site; the password:
  kubectl get secret mysql-orders-root -o jsonpath='{.data.password}' | base64 -d
  kubectl mfg mysql orders paris

  # One statement
  kubectl mfg mysql orders frankfurt -e 'SHOW REPLICA STATUS\G'

  # As another user, with further arguments of the client
  kubectl mfg mysql orders paris --user app -- --table`,
		ValidArgsFunction: a.completeGroupAndSite,
	}
	cmd.Flags().StringVarP(&op.User, "user", "u", "root", "User of MySQL.")
	cmd.Flags().StringVarP(&op.Execute, "execute", "e", "", "Run this SQL and end.")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args, op.Args = args[:dash], args[dash:]
		}
		if err := exactly("GROUP", "SITE")(cmd, args); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		op.Site = args[1]
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
