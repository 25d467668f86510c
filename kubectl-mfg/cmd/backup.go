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
		Short: "Make, list, prove, fetch and delete backups, and look into the archive of binary logs",
		Long: `Make, list, prove, fetch and delete backups of a group, and make the key that opens them. Where backups go, how they are encrypted, and
when they are made by themselves is in the group's spec.backup.profiles.

A backup is one once it was restored: "verify" restores it into a scratch server and checks it. To bring a group back, see
"kubectl mfg restore"; with the namespace or the cluster gone, see docs/disaster.md.

With spec.backup.pitr the binary logs are archived too: "timeline" shows from when to when any moment can be brought back, "find" where to
restore to, and "lost" what a failover lost and the archive still has. docs/point-in-time.md goes through it.

` + cli.ExitCodes,
		Example: `  # A key first: without one, anyone who can read the bucket can read the data
  kubectl mfg backup keygen --file ~/orders-backup-identity.txt

  # Make one now, by the only profile of the group, and watch
  kubectl mfg backup create orders

  # Which are there, and was one of them ever restored?
  kubectl mfg backup list orders

  # Prove the newest
  kubectl mfg backup verify orders`,
	}
	return family(cmd, a.backupCreateCommand(), a.backupListCommand(), a.backupShowCommand(), a.backupVerifyCommand(), a.backupDeleteCommand(),
		a.backupDownloadCommand(), a.backupKeygenCommand(), a.backupTimelineCommand(), a.backupFindCommand(), a.backupLostCommand())
}

// bindBackup adds the flags that the verbs have in common which ask for something.
func bindBackup(op *backup.Common, cmd *cobra.Command, timeout time.Duration) func() (cli.Output, error) {
	cmd.Flags().BoolVar(&op.Wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&op.Timeout, "timeout", timeout, "How long to wait for the outcome. What was asked for goes on after that.")
	return addOutputFlag(cmd)
}

// fillBackup takes over what the command line says.
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
		Short: "Make a backup now, and watch how far it is",
		Long: `Make a backup now: a MysqlBackup that the operator carries out. It is taken from a site that only replicates, unless the profile says
otherwise, and gets out of the way of every failover: then it begins again from another site.

Ctrl-C, or the end of --timeout, ends only the waiting (exit code 4). Exit code 5 says that there is no backup: the operator tries again
as long as it may before that, so what the message says has to be changed first.

` + cli.ExitCodes,
		Example: `  # By the only profile of the group
  kubectl mfg backup create orders

  # By a profile, and as a copy of the files instead of a dump
  kubectl mfg backup create orders --profile nightly --method Physical

  # Before a release, from a script
  kubectl mfg backup create orders --profile nightly --name before-v42 --timeout 1h -o jsonpath='{.outcome}'`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.Profile, "profile", "", "Profile of the group by which it is made. Default: the only one.")
	f.StringVar(&op.Method, "method", "", "How the data is copied: "+strings.Join(backup.Methods, " or ")+". Default: the profile's.")
	f.StringVar(&op.Name, "name", "", "Name of the backup, at most 56 characters. Default: made of the group, the profile and the time.")
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
		Short: "List the backups of a group, or of the namespace, the newest first",
		Long: `List the backups of a group, or of all groups of the namespace, the newest first: how far each is, from which site, how large, how old,
and whether it was ever restored.

These are the MysqlBackup objects of the cluster. What is in a bucket is there without them too.

Exit code 3 if the newest backup of a profile failed, or if one that is there could not be restored when that was tried.

` + cli.ExitCodes,
		Example: `  # Of one group
  kubectl mfg backup list orders

  # Where is each, of which MySQL, and what does it say?
  kubectl mfg backup list orders -o wide

  # The newest that was proven
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
		Short: "Show all that is known of one backup, and what to do with it",
		Long: `Show all that is known of one backup: from where and when, what it holds, where it is, whether it was proven, why it failed, and the next
step.

Exit code 3 if it failed, or could not be restored when that was tried.

` + cli.ExitCodes,
		Example: `  # One screen
  kubectl mfg backup show orders-nightly-20261124-0200

  # How long did the restore take when it was verified?
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
