// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/fence"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

func fenceCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "fence", Short: "Keep one site from accepting writes and from taking over", Long: fence.Help, Example: fence.Examples}
	on, off := &fence.On{}, &fence.Off{}
	return family(cmd,
		fencingCommand(a, &cobra.Command{Use: "on GROUP SITE", Short: "Keep a site fenced", Long: fence.OnHelp, Example: fence.OnExamples}, fencing{on, &on.Request, &on.Site, on.Run}),
		fencingCommand(a, &cobra.Command{Use: "off GROUP SITE", Short: "Let a site take the role again", Long: fence.OffHelp, Example: fence.OffExamples}, fencing{off, &off.Request, &off.Site, off.Run}),
	)
}

// fencing is one of the two operations, and what the command line fills in.
type fencing struct {
	op      operation
	request *request.Request
	site    *string
	run     func(context.Context, cli.Environment, request.Cluster) (int, error)
}

func fencingCommand(a *app, cmd *cobra.Command, f fencing) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = exactly("GROUP", "SITE"), a.completeGroupAndSite
	out := bindRequest(f.request, cmd, 30*time.Second)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(f.request, args[0], out); err != nil {
			return err
		}
		if *f.site = args[1]; *f.site == "" {
			return cli.Usage("SITE is empty")
		}
		return a.perform(cmd.Context(), f.op, func(ctx context.Context, c Cluster) (int, error) { return f.run(ctx, a.env, c) })
	}
	return cmd
}
