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
		Use:     "resume GROUP",
		Short:   "End a pause",
		Long:    pause.ResumeHelp,
		Example: pause.ResumeExamples,
	}
	return a.asks(cmd, &op, &op.Request, bindRequest(&op.Request, cmd, 30*time.Second), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
