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
		Use:     "cache",
		Short:   "Show the cache store of a group, move its master, or open a client in it",
		Long:    cache.Help,
		Example: cache.Examples,
	}
	return family(cmd, a.cacheStatusCommand(), a.cachePromoteCommand(), a.cacheClientCommand())
}

func (a *app) cacheStatusCommand() *cobra.Command {
	op := cache.Status{}
	cmd := &cobra.Command{
		Use:               "status GROUP",
		Short:             "Show the cache of each site, its last promotion, and what a failover would do to sessions",
		Long:              cache.StatusHelp,
		Example:           cache.StatusExamples,
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
		Use:     "promote GROUP --to SITE",
		Short:   "Move the cache's master to another site, and leave MySQL where it is",
		Long:    cache.PromoteHelp,
		Example: cache.PromoteExamples,
	}
	cmd.Flags().StringVar(&op.To, "to", "", "Site whose cache becomes the master.")
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	return a.asks(cmd, &op, &op.Request, bindRequest(&op.Request, cmd, 2*time.Minute), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}

func (a *app) cacheClientCommand() *cobra.Command {
	op := cache.Client{}
	cmd := &cobra.Command{
		Use:               "cli GROUP [--site SITE] [-- COMMAND...]",
		Short:             "Open the engine's client in the pod of the master, or of a site",
		Long:              cache.ClientHelp,
		Example:           cache.ClientExamples,
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Site, "site", "", "Site of the cache to open. Default: the master's.")
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
