// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/rotate"
)

func (a *app) rotateCommand() *cobra.Command {
	op := rotate.Op{}
	cmd := &cobra.Command{
		Use:   "rotate GROUP --site SITE | --all-replicas | --all",
		Short: "Give sites new master keys, without loss",
		Long: `Give sites new master keys, of InnoDB and of the binary log. A site is rotated while it is a replica: its pod is replaced
by one whose keyring can be written, both keys are rotated without a transaction, the new keyring goes into escrow, and the
pod is replaced by a sealed one. Data is not rewritten.

--all rotates the replicas one by one, moves the role to one of them by a planned failover, and rotates the former active
site. Nothing is kept on this machine: when it began, and the keyring version that each site had then, is an annotation of
the group (` + v1alpha1.AnnotationRotation + `), and a site is done once status.encryptionAtRest.sites[].rotatedVersion is
newer than that. So after Ctrl-C, or from another machine, the same command goes on with the sites that are left, and takes
the annotation off at the end. --restart forgets what was done and begins with every site again. What was begun more than 24
hours ago is not gone on with: the command is refused until --restart is given. --all-replicas does its part of what --all
began, and leaves the rest to --all, also with --restart.

Ctrl-C ends only the waiting: a rotation that was asked for is finished by the operator (exit code 4). While "waits:" is told
nothing is asked for yet: a wait that ends there leaves nothing that goes on (exit code 5).

` + cli.ExitCodes,
		Example: `  # What would be done, in which order? Nothing is sent
  kubectl mfg rotate orders --all --dry-run=client

  # All sites; asks, shows each step, moves the role once. After Ctrl-C: the same again
  kubectl mfg rotate orders --all

  # All but the active site: the role stays
  kubectl mfg rotate orders --all-replicas

  # One replica, from a script
  kubectl mfg rotate orders --site frankfurt --yes -o json`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.Site, "site", "", "Rotate this replica.")
	f.BoolVar(&op.AllReplicas, "all-replicas", false, "Rotate every site but the active one.")
	f.BoolVar(&op.All, "all", false, "Rotate every site. The role moves to another one.")
	f.StringVar(&op.To, "to", "", "With --all: the site that is to become active. Default: the one that would take over by itself.")
	f.BoolVar(&op.Restart, "restart", false, "Rotate also the sites that an earlier run, which did not come to its end, has rotated.")
	out := bindRequest(&op.Request, cmd, 15*time.Minute)
	f.Lookup("timeout").Usage = "How long to wait for each step. What was asked for goes on after that."
	_ = cmd.RegisterFlagCompletionFunc("site", a.completeSiteFlag)
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.fill(&op.Request, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
