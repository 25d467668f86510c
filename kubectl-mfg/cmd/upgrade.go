// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/upgrade"
)

func (a *app) upgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Show which groups wait for the pods of a new version of the operator, and hold them up",
		Long: `Show which groups wait for the pods of a new version of the operator, and hold them up. A new operator decides at once about
failovers; its pods reach one group at a time, each healthy for a while before the next. What a person changes in a group waits
for no turn.

` + cli.ExitCodes,
		Example: `  # Whose turn is it, and what do the others wait for?
  kubectl mfg upgrade status

  # Let no further group begin; the one that has the turn goes on
  kubectl mfg upgrade pause

  # Keep one group as it is, and say why
  kubectl mfg upgrade pause orders --why "until the sale is over"

  # Go on, also after it stopped
  kubectl mfg upgrade resume`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return cli.Usage("unknown command %q; there are status, pause and resume", args[0])
		},
	}
	cmd.AddCommand(a.upgradeStatusCommand(), a.upgradePauseCommand(), a.upgradeResumeCommand())
	return cmd
}

func (a *app) upgradeStatusCommand() *cobra.Command {
	op := upgrade.Status{}
	cmd := &cobra.Command{
		Use:   "status [GROUP]",
		Short: "Show whose turn it is, and what the others wait for",
		Long: `Show which group has the turn, and of each group whether it waits, why, and when a closed window opens next. Without GROUP, all
groups of all namespaces: the turn is one for all of them.

  UpToDate  no pod waits for a turn
  UnderWay  it has the turn: its pods are replaced, one site at a time
  Settling  it has the turn and all its new pods, and stays healthy for the pause before the next group's turn
  Waiting   others come first, or all are paused or stopped
  Held      something about the group is in the way: it is not healthy, or its window is closed or cannot be read
  Pinned    a person keeps it as it is
  NotSeen   the operator that leads has not looked at it yet

Exit code 3 if it stopped: nothing goes on without a person then.

` + cli.ExitCodes,
		Example: `  # All groups
  kubectl mfg upgrade status

  # One group
  kubectl mfg upgrade status orders -n shop

  # What is still to come?
  kubectl mfg upgrade status -o jsonpath='{range .groups[?(@.state!="UpToDate")]}{.namespace}/{.name}: {.why}{"\n"}{end}'`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = optionalGroup(args); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) upgradePauseCommand() *cobra.Command {
	op := &upgrade.Hold{}
	cmd := &cobra.Command{
		Use:   "pause [GROUP]",
		Short: "Let no further group begin, or keep one group as it is",
		Long: `Let no further group be given the pods of another version of the operator; the one that has the turn goes on. With GROUP, keep
only that group's pods as they are (a pin), whatever its turn. Both last until somebody resumes: a pin is for weeks, not for years.

Failovers, fences and what a person changes in a group go on as ever. kubectl mfg pause is the one that keeps the operator from
acting at all.

` + cli.ExitCodes,
		Example: `  # All groups, for example because the first ones do not look right
  kubectl mfg upgrade pause

  # One group
  kubectl mfg upgrade pause orders -n shop --why "until the sale is over"

  # What would be changed?
  kubectl mfg upgrade pause --dry-run`,
	}
	cmd.Flags().StringVar(&op.Why, "why", "", "With GROUP, a word on why, for those who find it pinned. Default: since when.")
	return a.upgradeHold(cmd, op)
}

func (a *app) upgradeResumeCommand() *cobra.Command {
	return a.upgradeHold(&cobra.Command{
		Use:   "resume [GROUP]",
		Short: "Let groups have their turn again",
		Long: `Let groups have their turn again: end a pause, or go on after a group that was not healthy with its new pods stopped the others. With
GROUP, take the pin off that group.

` + cli.ExitCodes,
		Example: `  # Why did it stop?
  kubectl mfg upgrade status

  # Go on with all
  kubectl mfg upgrade resume

  # Let one group have its turn again
  kubectl mfg upgrade resume orders -n shop`,
	}, &upgrade.Hold{Resume: true})
}

// upgradeHold is what both have in common.
func (a *app) upgradeHold(cmd *cobra.Command, op *upgrade.Hold) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = atMost(1), a.completeGroup
	op.Verb, op.Timeout = cmd.Name(), time.Second // nothing is waited for
	f := cmd.Flags()
	f.StringVar(&op.DryRun, "dry-run", request.DryRunNone, "none: do it. client: show the plan and the change, send nothing. server: let the API server check the change and keep nothing.")
	f.Lookup("dry-run").NoOptDefVal = request.DryRunClient
	f.BoolVarP(&op.Yes, "yes", "y", false, "Do not ask. Required where no terminal is.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(request.DryRuns, cobra.ShellCompDirectiveNoFileComp))
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = optionalGroup(args); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

// optionalGroup reads GROUP where it may be left out. An empty name would mean all groups: not what somebody wants who gave one.
func optionalGroup(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	return groupArgument(args[0])
}
