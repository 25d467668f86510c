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
		Use:   "drill GROUP",
		Short: "Move the active site away and back, measure, and judge against a target",
		Long: `Move the active site to another one and back by two planned failovers, and judge each against a target. A failover that
is never practised does not work on the day that it is needed.

Two figures are measured. The operator's own: from the moment at which the intent to move was persisted, before writes
were stopped, to the moment at which the new site was seen open. And that of a canary, which tries to write a row on both
sites every 20 ms: the longest time in which none was acknowledged. In the end every acknowledged row must be there.
Clients of the Service see the canary's pause plus the time that they take to reconnect.

The canary runs the mysql client in the pods, as root and over the socket, in a schema mfg_drill that is dropped in the end. It
needs the right to exec into pods and to read the group's root Secret; --canary=false does without.

It begins only with a group that is healthy, and waits between the two moves until it is healthy again. If the way back
fails, the role stays where it is and the report says so. So it does if the group is not seen healthy again within --timeout, or
after Ctrl-C: the way back is not asked for then (exit code 5), and the command for it is told. With -o json and -o junit one that does not begin is reported too.

` + cli.ExitCodes,
		Example: `  # There and back; writes may pause for two seconds each
  kubectl mfg drill orders --target 2s

  # Every night, for CI
  kubectl mfg drill orders --target 2s --yes -o junit > drill.xml

  # What would be done?
  kubectl mfg drill orders --dry-run=client`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.To, "to", "", "Site to move to. Default: the one that would take over by itself.")
	f.DurationVar(&op.Target, "target", 5*time.Second, "For how long writes may be kept out by each move.")
	f.DurationVar(&op.Stay, "stay", 0, "How long to stay on the other site once the group is healthy there.")
	f.BoolVar(&op.Canary, "canary", true, "Write rows meanwhile, and measure for how long none is acknowledged.")
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
	f.BoolVarP(&op.Yes, "yes", "y", false, "Do not ask. Required where no terminal is.")
	f.DurationVar(&op.Timeout, "timeout", 5*time.Minute, "How long to wait for each move, and for the group to be healthy after it.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	return addOutputFlag(cmd, cli.OutputJUnit)
}
