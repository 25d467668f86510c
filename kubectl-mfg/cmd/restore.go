// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/restore"
)

func (a *app) restoreCommand() *cobra.Command {
	op := restore.Op{}
	cmd := &cobra.Command{
		Use:               "restore NEWGROUP --from GROUP",
		Short:             "Create a new group from a backup of another group, or of a lost one",
		Long:              restore.Help,
		Example:           restore.Examples,
		Args:              exactly("NEWGROUP"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&op.From, "from", "", "Group that was backed up. It does not have to exist any more.")
	f.StringVar(&op.FromNamespace, "from-namespace", "", "Namespace of that group. Default: that of the new group.")
	f.StringVar(&op.Backup, "backup", "", "Name of the backup. Default: the newest one that is known to be restorable.")
	f.StringVar(&op.Profile, "profile", "", "Profile whose storage holds the backup. Default: that of the backup, or the only one.")
	f.StringVar(&op.StorageFile, "storage-file", "", "File with the storage that holds the backup, in YAML as in a profile. Instead of --profile.")
	f.StringVar(&op.IdentitySecret, "identity-secret", "", "Secret in the namespace of the new group whose key identity opens the backup. Default: that of the profile.")
	f.StringVarP(&op.File, "filename", "f", "", "File with the MysqlFailoverGroup whose specification to use. Default: the existing group.")
	f.StringVar(&op.At, "at", "", "Point in time beyond the backup: TIME, GTID, before:GTID, before-failover:EPOCH or latest. Default: the backup's own.")
	f.BoolVar(&op.Check, "check", true, "With --at: check first that the archive reaches that point.")
	f.StringVar(&op.Image, "image", "", "With --at: image with the program backup. Default: the image in the operator's Deployment.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	f.BoolVar(&op.Apply, "apply", false, "Create the group. Without this flag, print its YAML.")
	f.BoolVar(&op.Wait, "wait", true, "With --apply: follow the restore to its end.")
	f.DurationVar(&op.Timeout, "timeout", 12*time.Hour, "How long to follow it. The restore continues after that.")
	_ = cmd.RegisterFlagCompletionFunc("from", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completeGroup(cmd, nil, word)
	})
	_ = cmd.RegisterFlagCompletionFunc("from-namespace", a.completeNamespace)
	_ = cmd.RegisterFlagCompletionFunc("backup", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.backupsOf(cmd, op.From, op.FromNamespace), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("profile", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completeProfileFlag(cmd, []string{op.From}, word)
	})
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.From, err = bareName(op.From); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}
