// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/pause"
)

func (a *app) pauseCommand() *cobra.Command {
	op := pause.Op{}
	cmd := &cobra.Command{
		Use:     "pause GROUP --for DURATION",
		Short:   "Stop the operator's automatic actions for a while",
		Long:    pause.Help,
		Example: pause.Examples,
	}
	cmd.Flags().DurationVar(&op.For, "for", 0, "How long, such as 30m; at most 168h.")
	return a.asks(cmd, &op, &op.Request, bindRequest(&op.Request, cmd, 30*time.Second), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
