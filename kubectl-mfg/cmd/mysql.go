// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
)

func (a *app) mysqlCommand() *cobra.Command {
	op := mysqlclient.Op{}
	cmd := &cobra.Command{
		Use:               "mysql GROUP [SITE] [-e SQL] [-- ARGUMENTS]",
		Short:             "Open a mysql client on the active site, or on another site",
		Long:              mysqlclient.Help,
		Example:           mysqlclient.Examples,
		ValidArgsFunction: a.completeGroupAndSite,
	}
	cmd.Flags().StringVar(&op.Account, "account", mysqlclient.AccountAdmin, "Account whose password is in a Secret: "+strings.Join(mysqlclient.Accounts, "|")+".")
	cmd.Flags().StringVarP(&op.User, "login", "u", "", "User of MySQL whose password you type, instead of --account.")
	cmd.Flags().StringVarP(&op.Execute, "execute", "e", "", "Run this SQL and exit.")
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("account", cobra.FixedCompletions(mysqlclient.Accounts, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args, op.Args = args[:dash], args[dash:]
		}
		if len(args) == 0 {
			return missing([]string{"GROUP"}, nil)
		}
		if err := atMost(2)(cmd, args); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if len(args) == 2 {
			if op.Site = args[1]; op.Site == "" {
				return cli.Usage("SITE is empty; leave it out for the active site")
			}
		}
		if op.User != "" && !cmd.Flags().Changed("account") {
			op.Account = ""
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
