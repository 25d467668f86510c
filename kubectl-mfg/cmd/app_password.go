// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/apppassword"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

func appPasswordCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "app-password", Short: "Replace the password of the application's account, without downtime", Long: apppassword.Help, Example: apppassword.Examples,
	}
	return family(cmd, appPasswordRotateCommand(a), appPasswordRetireCommand(a))
}

// bindByHand adds the flags of verbs that work without the operator.
func bindByHand(r *request.Request, cmd *cobra.Command, timeout time.Duration) func() (cli.Output, error) {
	r.Verb, r.OperatorNamespace = cmd.Name(), live.DefaultNamespace
	f := cmd.Flags()
	f.StringVar(&r.DryRun, "dry-run", request.DryRunNone, "none: do it. client: show the plan, change nothing.")
	f.Lookup("dry-run").NoOptDefVal = request.DryRunClient
	f.BoolVarP(&r.Yes, "yes", "y", false, "Do not ask for confirmation. Required without a terminal.")
	f.DurationVar(&r.Timeout, "timeout", timeout, "How long to wait. To continue after that, run the same command again.")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{request.DryRunNone, request.DryRunClient}, cobra.ShellCompDirectiveNoFileComp))
	return addOutputFlag(cmd)
}

func appPasswordRotateCommand(a *app) *cobra.Command {
	op := apppassword.Rotate{}
	cmd := &cobra.Command{
		Use: "rotate GROUP", Short: "Give the account a second, new password", Long: apppassword.RotateHelp, Example: apppassword.RotateExamples,
	}
	cmd.Flags().StringSliceVar(&op.Without, "without", nil, "Do not wait for this site. Can be repeated.")
	return a.asks(cmd, &op, &op.Request, bindByHand(&op.Request, cmd, 5*time.Minute), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}

func appPasswordRetireCommand(a *app) *cobra.Command {
	op := apppassword.Retire{}
	cmd := &cobra.Command{
		Use: "retire GROUP", Short: "End the account's older password", Long: apppassword.RetireHelp, Example: apppassword.RetireExamples,
	}
	return a.asks(cmd, &op, &op.Request, bindByHand(&op.Request, cmd, time.Minute), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
