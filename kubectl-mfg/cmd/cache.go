// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cache"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Show the cache store of a group, move its master, or open a client in it",
		Long: `Show the cache store of a group, move its master, or open a client in it. The cache holds sessions and cached data beside
MySQL, on the active site; it may lose keys, and never keeps MySQL from failing over.

` + cli.ExitCodes,
		Example: `  # Where is the master, who follows it, and what would become of the sessions in a failover?
  kubectl mfg cache status orders

  # Move the master alone; MySQL stays where it is
  kubectl mfg cache promote orders --to frankfurt

  # How many keys are there?
  kubectl mfg cache cli orders -- DBSIZE`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return cli.Usage("unknown command %q; there are status, promote and cli", args[0])
		},
	}
	cmd.AddCommand(a.cacheStatusCommand(), a.cachePromoteCommand(), a.cacheClientCommand())
	return cmd
}

func (a *app) cacheStatusCommand() *cobra.Command {
	op := cache.Status{}
	cmd := &cobra.Command{
		Use:   "status GROUP",
		Short: "Show the cache of each site, its last promotion, and what would become of sessions",
		Long: `Show the cache store of a group in detail: where its master is, how far the others have caught up, how full they are, whether
the last promotion kept the sessions, what a failover would do to them now, and what clients need to connect.

Exit code 3 if the cache is not ready.

` + cli.ExitCodes,
		Example: `  # One screen
  kubectl mfg cache status orders

  # Were sessions lost the last time?
  kubectl mfg cache status orders -o jsonpath='{.cache.lastPromotion.sessionsPreserved}'`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) cachePromoteCommand() *cobra.Command {
	op := cache.Promote{}
	cmd := &cobra.Command{
		Use:   "promote GROUP --to SITE",
		Short: "Move the cache's master to another site, and leave MySQL where it is",
		Long: `Move the cache's master to another site, and leave MySQL where it is. The operator refuses while the cache of that site has not
caught up, because its sessions would be lost. Clients of the cache are cut off once and connect again.

The master belongs on the active site. Use this to bring it home at once, or to take it off a site before work on its node: where a
person has put it, it stays until MySQL moves to another site, or somebody promotes the cache of the active one.

` + cli.ExitCodes,
		Example: `  # Bring the master back beside MySQL now
  kubectl mfg cache promote orders --to paris

  # What would happen?
  kubectl mfg cache promote orders --to frankfurt --dry-run

  # From a script: exit code 5 if it was refused
  kubectl mfg cache promote orders --to frankfurt --yes -o jsonpath='{.sessionsPreserved}'`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.To, "to", "", "Site whose cache becomes the master.")
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	out := bindRequest(&op.Request, cmd, 2*time.Minute)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) cacheClientCommand() *cobra.Command {
	op := cache.Client{}
	cmd := &cobra.Command{
		Use:   "cli GROUP [--site SITE] [-- COMMAND...]",
		Short: "Open the engine's client in the pod of the master, or of a site",
		Long: `Open the engine's client (valkey-cli, or redis-cli) in the pod of the cache's master, or of --site. It needs the rights to exec
into pods and to read the Secret with the cache's password.

The password is in no command line, which the audit log of the API server and a list of processes show, and in no environment,
which /proc shows: the client asks for it, and the plugin types it. Where the cache speaks TLS, so does the client; it
connects to its own pod, so the certificate is not checked.

A write on a replica is refused by the engine.

` + cli.ExitCodes,
		Example: `  # A session on the master
  kubectl mfg cache cli orders

  # One command
  kubectl mfg cache cli orders -- INFO replication

  # How does the replica in frankfurt see it?
  kubectl mfg cache cli orders --site frankfurt -- INFO replication`,
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Site, "site", "", "Site whose cache is asked. Default: the master.")
	_ = cmd.RegisterFlagCompletionFunc("site", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args, op.Args = args[:dash], args[dash:]
		}
		if err := exactly("GROUP")(cmd, args); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
