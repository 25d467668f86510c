// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/backup"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Make, list, verify, download and delete backups, and search the archive of binary logs",
		Long: `Make, list, verify, download and delete backups of a group, and make the key that decrypts them. The group's spec.backup.profiles say
where backups go, how they are encrypted, and on which schedule they are made.

Trust a backup only once it has been restored: "verify" restores it into a scratch server and checks it. To bring a group back, see
"kubectl mfg restore"; if the namespace or the cluster is gone, see docs/disaster.md.

With spec.backup.pitr the binary logs are archived too: "timeline" shows the period in which any moment can be restored, "find" the
transaction to restore to, and "lost" what a failover lost and the archive still has. docs/point-in-time.md walks through it.`,
		Example: `  # First a key: without one, anyone who can read the bucket can read the data
  kubectl mfg backup keygen --file ~/orders-backup-identity.txt

  # Make one now, with the only profile of the group, and watch
  kubectl mfg backup create orders

  # Which backups exist, and was any of them ever restored?
  kubectl mfg backup list orders

  # Verify the newest
  kubectl mfg backup verify orders`,
	}
	return family(cmd, a.backupCreateCommand(), a.backupListCommand(), a.backupShowCommand(), a.backupVerifyCommand(), a.backupDeleteCommand(),
		a.backupDownloadCommand(), a.backupKeygenCommand(), a.backupTimelineCommand(), a.backupFindCommand(), a.backupLostCommand())
}

// bindBackup adds the flags that the requesting verbs share.
func bindBackup(op *backup.Common, cmd *cobra.Command, timeout time.Duration) func() (cli.Output, error) {
	cmd.Flags().BoolVar(&op.Wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&op.Timeout, "timeout", timeout, "How long to wait for the outcome. The request stays in force after that.")
	return addOutputFlag(cmd)
}

// fillBackup copies what the command line says.
func (a *app) fillBackup(op *backup.Common, out func() (cli.Output, error)) (err error) {
	if op.Output, err = out(); err != nil {
		return err
	}
	op.Namespace, err = a.namespace()
	return err
}

func (a *app) backupCreateCommand() *cobra.Command {
	op := backup.Create{}
	cmd := &cobra.Command{
		Use:   "create GROUP",
		Short: "Make a backup now, and watch its progress",
		Long: `Make a backup now: the command creates a MysqlBackup, and the operator carries it out. It copies from a replica, unless the profile says
otherwise, and makes way for every failover: then it starts again from another site.

Ctrl-C, or the end of --timeout, ends only the waiting (exit code 4). Exit code 5 means that there is no backup. The operator has used
up its attempts by then, so fix what the message names first.`,
		Example: `  # With the only profile of the group
  kubectl mfg backup create orders

  # With one of several profiles, and as a copy of the files instead of a dump
  kubectl mfg backup create orders --profile nightly --method Physical

  # Before a release, from a script
  kubectl mfg backup create orders --profile nightly --name before-v42 --timeout 1h -o jsonpath='{.outcome}'`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.Profile, "profile", "", "Profile of the group to use. Default: the only one.")
	f.StringVar(&op.Method, "method", "", "How the data is copied: "+strings.Join(backup.Methods, " or ")+". Default: the profile's.")
	f.StringVar(&op.Name, "name", "", "Name of the backup, at most 56 characters. Default: group, profile and time.")
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfileFlag)
	_ = cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(backup.Methods, cobra.ShellCompDirectiveNoFileComp))
	out := bindBackup(&op.Common, cmd, 3*time.Hour)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := a.fillBackup(&op.Common, out); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) backupListCommand() *cobra.Command {
	op := backup.List{}
	cmd := &cobra.Command{
		Use:   "list [GROUP]",
		Short: "List the backups of a group, or of the namespace, newest first",
		Long: `List the backups of a group, or of all groups of the namespace, newest first: the progress, site, size and age of each, and whether it
was ever restored.

The list shows the MysqlBackup objects of the cluster. The data in a bucket does not depend on them.

Exit code 3 if the newest backup of a profile failed, or if the verification of an existing backup failed.`,
		Example: `  # Of one group
  kubectl mfg backup list orders

  # With the storage, the MySQL version and the message of each
  kubectl mfg backup list orders -o wide

  # Those that are verified
  kubectl mfg backup list orders -o jsonpath='{.items[?(@.verified.outcome=="Passed")].metadata.name}'`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	out := addOutputFlag(cmd, cli.OutputWide, cli.OutputName)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := a.fillBackup(&op.Common, out); err != nil {
			return err
		}
		if len(args) > 0 {
			if op.Group, err = groupArgument(args[0]); err != nil {
				return err
			}
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) backupShowCommand() *cobra.Command {
	op := backup.Show{}
	cmd := &cobra.Command{
		Use:   "show [GROUP] BACKUP",
		Short: "Show everything about one backup, and the next step",
		Long: `Show everything about one backup: its site and time, what it holds, where it is stored, whether it is verified, why it failed, and the
next step.

Exit code 3 if the backup or its verification failed.`,
		Example: `  # One screen
  kubectl mfg backup show orders-nightly-20261124-0200

  # How long did the restore take in its verification?
  kubectl mfg backup show orders orders-nightly-20261124-0200 -o jsonpath='{.verified.restoreSeconds}'`,
		Args:              backupArguments,
		ValidArgsFunction: a.completeBackup,
	}
	cmd.Flags().StringVar(&op.Color, "color", cli.ColorAuto, "Colour: "+strings.Join(cli.Colors, "|")+".")
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := a.fillBackup(&op.Common, out); err != nil {
			return err
		}
		if op.Group, op.Name, err = backupNamed(args); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
