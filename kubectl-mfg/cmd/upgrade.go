// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/upgrade"
)

func upgradeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "upgrade", Short: "Show which groups wait for the pods of a new operator version, and hold them back",
		Long: upgrade.Help, Example: upgrade.Examples,
	}
	pause, pausing := &cobra.Command{Use: "pause [GROUP]", Short: "Let no further group begin, or keep one group as it is", Long: upgrade.PauseHelp, Example: upgrade.PauseExamples}, &upgrade.Hold{}
	pause.Flags().StringVar(&pausing.Why, "why", "", "With GROUP, the reason, for others who find it pinned. Default: the time.")
	resume := &cobra.Command{Use: "resume [GROUP]", Short: "Let groups have their turn again", Long: upgrade.ResumeHelp, Example: upgrade.ResumeExamples}
	return family(cmd, upgradeStatus(a), upgradeHold(a, pause, pausing), upgradeHold(a, resume, &upgrade.Hold{Resume: true}))
}

func upgradeStatus(a *app) *cobra.Command {
	op := upgrade.Status{}
	cmd := &cobra.Command{
		Use: "status [GROUP]", Short: "Show whose turn it is, and what the others wait for", Long: upgrade.StatusHelp, Example: upgrade.StatusExamples,
		Args: atMost(1), ValidArgsFunction: a.completeGroup,
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

// upgradeHold adds what pause and resume share.
func upgradeHold(a *app, cmd *cobra.Command, op *upgrade.Hold) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = atMost(1), a.completeGroup
	out := bindRequest(&op.Request, cmd, time.Second)
	for _, flag := range []string{"wait", "timeout"} { // it waits for nothing: it holds once it is written
		cmd.Flags().Lookup(flag).Hidden = true
	}
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

// optionalGroup reads GROUP if it may be left out. An empty name would mean all groups: not what a user wants who gave one.
func optionalGroup(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	return groupArgument(args[0])
}
