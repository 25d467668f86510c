// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/drill"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

func (a *app) drillCommand() *cobra.Command {
	op := drill.Op{}
	cmd := &cobra.Command{
		Use:               "drill GROUP",
		Short:             "Move the role to another site and back, and compare the write pause with a target",
		Long:              drill.Help,
		Example:           drill.Examples,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.To, "to", "", "Site to move to. Default: the site that would take over in an emergency.")
	f.DurationVar(&op.Target, "target", 5*time.Second, "The longest write pause that each move may cause.")
	f.DurationVar(&op.Stay, "stay", 0, "How long to stay on the other site once the group is healthy there.")
	f.BoolVar(&op.Canary, "canary", true, "Write rows during the drill, and measure the longest time without an acknowledged one.")
	out := bindDrill(&op, cmd)
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

// bindDrill has the flags of a request but for --wait: a drill that is not waited for measures nothing.
func bindDrill(op *drill.Op, cmd *cobra.Command) func() (cli.Output, error) {
	op.Wait = true
	f := cmd.Flags()
	f.StringVar(&op.DryRun, "dry-run", request.DryRunNone, "none: do it. client: show the plan, send nothing.")
	f.Lookup("dry-run").NoOptDefVal = request.DryRunClient
	f.BoolVarP(&op.Yes, "yes", "y", false, "Do not ask for confirmation. Required without a terminal.")
	f.DurationVar(&op.Timeout, "timeout", 5*time.Minute, "How long to wait for each move, and for the group to be healthy after it.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	return addOutputFlag(cmd, cli.OutputJUnit)
}
