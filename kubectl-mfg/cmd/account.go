// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/readonly"
)

func accountCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "account", Short: "Make or drop an account that may only read", Long: readonly.Help, Example: readonly.Examples}
	return family(cmd, accountCreateCommand(a), accountDropCommand(a))
}

func accountCreateCommand(a *app) *cobra.Command {
	op := readonly.Create{}
	cmd := &cobra.Command{Use: "create GROUP", Short: "Make the account readonly and its Secret", Long: readonly.CreateHelp, Example: readonly.CreateExamples}
	cmd.Flags().StringSliceVar(&op.Databases, "database", nil, "What the account may read; default: the application's database. Can be repeated.")
	return a.asks(cmd, &op, &op.Request, bindByHand(&op.Request, cmd, time.Minute), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}

func accountDropCommand(a *app) *cobra.Command {
	op := readonly.Drop{}
	cmd := &cobra.Command{Use: "drop GROUP", Short: "Drop the account readonly and delete its Secret", Long: readonly.DropHelp, Example: readonly.DropExamples}
	return a.asks(cmd, &op, &op.Request, bindByHand(&op.Request, cmd, time.Minute), func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
}
