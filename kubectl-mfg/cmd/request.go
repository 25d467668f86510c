// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// bindRequest adds the flags that all verbs share which ask the operator for something.
func bindRequest(r *request.Request, cmd *cobra.Command, timeout time.Duration) func() (cli.Output, error) {
	r.Verb = cmd.Name()
	f := cmd.Flags()
	f.StringVar(&r.DryRun, "dry-run", request.DryRunNone, "none: do it. client: show the plan and the change, send nothing. server: let the API server check the change and keep nothing.")
	f.Lookup("dry-run").NoOptDefVal = request.DryRunClient
	f.BoolVarP(&r.Yes, "yes", "y", false, "Do not ask for confirmation. Required without a terminal.")
	f.BoolVar(&r.Wait, "wait", true, "Wait for the outcome.")
	f.DurationVar(&r.Timeout, "timeout", timeout, "How long to wait for the outcome. The request stays in force after that.")
	addOperatorNamespace(cmd, &r.OperatorNamespace)
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(request.DryRuns, cobra.ShellCompDirectiveNoFileComp))
	return addOutputFlag(cmd)
}

// fill copies what the command line says.
func (a *app) fill(r *request.Request, group string, out func() (cli.Output, error)) (err error) {
	if r.Output, err = out(); err != nil {
		return err
	}
	if r.Group, err = groupArgument(group); err != nil {
		return err
	}
	r.Namespace, err = a.namespace()
	return err
}

// asks completes a verb that takes one group and no other argument: it fills the request and runs it.
func (a *app) asks(cmd *cobra.Command, op operation, r *request.Request, out func() (cli.Output, error), run func(context.Context, Cluster) (int, error)) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = exactly("GROUP"), a.completeGroup
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(r, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), op, run)
	}
	return cmd
}
