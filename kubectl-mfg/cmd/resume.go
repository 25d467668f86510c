// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/pause"
)

func (a *app) resumeCommand() *cobra.Command {
	op := pause.Resume{}
	cmd := &cobra.Command{
		Use:               "resume GROUP",
		Short:             "End a pause",
		Long:              pause.ResumeHelp,
		Example:           pause.ResumeExamples,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	out := bindRequest(&op.Request, cmd, 30*time.Second)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
