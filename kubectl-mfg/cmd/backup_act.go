// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/backup"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func (a *app) backupVerifyCommand() *cobra.Command {
	op := backup.Verify{}
	cmd := &cobra.Command{
		Use:   "verify GROUP [BACKUP]",
		Short: "Restore a backup into a scratch server and check it, now",
		Long: `Restore a backup into a scratch server and check it: count and check every table, and run the query of the profile. The group is not
touched. Without BACKUP, verify the newest complete one.

An encrypted backup needs encryption.identitySecretName in its profile. Exit code 5 if the restore failed, or was not tried: the
message says which.`,
		Example: `  # The newest
  kubectl mfg backup verify orders

  # The newest of a profile
  kubectl mfg backup verify orders --profile nightly

  # A particular one, without waiting
  kubectl mfg backup verify orders orders-nightly-20261124-0200 --wait=false`,
		Args:              groupAndMaybeBackup,
		ValidArgsFunction: a.completeGroupAndBackup,
	}
	cmd.Flags().StringVar(&op.Profile, "profile", "", "Without BACKUP: the newest of this profile. Default: of any.")
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfileFlag)
	out := bindBackup(&op.Common, cmd, 6*time.Hour)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := a.fillBackup(&op.Common, out); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if len(args) > 1 {
			if op.Name, err = backupArgument(args[1]); err != nil {
				return err
			}
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) backupDeleteCommand() *cobra.Command {
	op := backup.Delete{}
	cmd := &cobra.Command{
		Use:   "delete [GROUP] BACKUP",
		Short: "Delete a backup, with what is in the storage",
		Long: `Delete a backup, and its data in the storage, for good. --keep-artifact keeps the data and removes only the object. A backup in
progress is stopped first.

The plan says how many other backups there are, and whether any of them is verified.`,
		Example: `  # Show the plan and ask
  kubectl mfg backup delete orders-nightly-20261124-0200

  # Forget it here, and keep what is in the bucket
  kubectl mfg backup delete orders orders-nightly-20261124-0200 --keep-artifact --yes`,
		Args:              backupArguments,
		ValidArgsFunction: a.completeBackup,
	}
	cmd.Flags().BoolVarP(&op.Yes, "yes", "y", false, "Do not ask for confirmation. Required without a terminal.")
	cmd.Flags().BoolVar(&op.KeepArtifact, "keep-artifact", false, "Keep the data in the storage.")
	out := bindBackup(&op.Common, cmd, 10*time.Minute)
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

func (a *app) backupDownloadCommand() *cobra.Command {
	op := backup.Download{}
	cmd := &cobra.Command{
		Use:   "download [GROUP] BACKUP --file FILE",
		Short: "Download a backup from the storage into a tar, as it is or decrypted",
		Long: `Download a backup from the storage into a tar: its manifest and its objects as they are, or with --identity the plaintext of its parts
(without --identity too, if it is not encrypted). Every object is compared with its digest in the manifest. If one does not match, no
file is kept.

A pod in the namespace reads the storage with the Secrets of the profile, and is removed afterwards. You need the rights to create, get
and delete pods and to exec into them. The data comes to you through the exec, and reaches no log and no disk of a node. The identity
stays on this machine.`,
		Example: `  # As it is: encrypted parts stay encrypted
  kubectl mfg backup download orders-nightly-20261124-0200 --file nightly.tar

  # Decrypted: the dump and the rest, in the clear on your disk
  kubectl mfg backup download orders-nightly-20261124-0200 --identity ~/orders-backup-identity.txt --file nightly.tar

  # What is in it?
  kubectl mfg backup download orders-nightly-20261124-0200 --file - | tar t`,
		Args:              backupArguments,
		ValidArgsFunction: a.completeBackup,
	}
	f := cmd.Flags()
	f.StringVarP(&op.File, "file", "f", "", "File to write the tar to. It must not exist. - is stdout.")
	f.StringVar(&op.Identity, "identity", "", "File with the age identity that decrypts it. Default: it stays encrypted.")
	f.StringVar(&op.Image, "image", "", "Image with the program backup. Default: the image in the operator's Deployment.")
	f.DurationVar(&op.Timeout, "timeout", 2*time.Hour, "How long the whole download may take.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		if op.Group, op.Name, err = backupNamed(args); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op, func(ctx context.Context, c Cluster) (int, error) { return op.Run(ctx, a.env, c) })
	}
	return cmd
}

func (a *app) backupKeygenCommand() *cobra.Command {
	op := backup.Keygen{}
	cmd := &cobra.Command{
		Use:   "keygen [--file FILE] [--secret NAME]",
		Short: "Make a key pair for backups: an age identity that decrypts them, and its recipient",
		Long: `Make a key pair for backups: an age identity (X25519), which decrypts them, and its recipient, which encrypts them. The identity goes to
a file that only you can read (mode 0600); an existing file is never overwritten. The recipient is public, and is printed.

Nothing is sent to a cluster. With --secret, the manifest of a Secret with the identity goes to stdout, for kubectl apply -f -. Restores
and verifications in the cluster need that Secret. It holds the key: do not keep it in a repository.`,
		Example: `  # A key pair; the output says how to use both halves
  kubectl mfg backup keygen --file ~/orders-backup-identity.txt

  # The same, and its Secret in the namespace shop at once
  kubectl mfg backup keygen --file ~/orders-backup-identity.txt --secret mfg-backup-identity -n shop | kubectl apply -f -`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&op.File, "file", "f", backup.DefaultIdentityFile, "File for the identity. It must not exist.")
	cmd.Flags().StringVar(&op.Secret, "secret", "", "Print the manifest of a Secret of this name with the identity. Default: none.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if given := cmd.Flag("namespace"); given != nil {
			op.Namespace = given.Value.String() // the kubeconfig's does not count: no cluster is needed
		}
		return a.offline(cmd.Context(), &op, func(ctx context.Context) (int, error) { return op.Run(ctx, a.env) })
	}
	return cmd
}

// backupArguments expects BACKUP, or GROUP and BACKUP.
func backupArguments(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return missing([]string{"BACKUP"}, nil)
	case 1, 2:
		return nil
	}
	return cli.Usage("at most 2 arguments expected (GROUP BACKUP), got %d: %s", len(args), strings.Join(args, " "))
}

// groupAndMaybeBackup expects GROUP, or GROUP and BACKUP.
func groupAndMaybeBackup(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return missing([]string{"GROUP"}, nil)
	case 1, 2:
		return nil
	}
	return cli.Usage("at most 2 arguments expected (GROUP BACKUP), got %d: %s", len(args), strings.Join(args, " "))
}

// backupNamed reads [GROUP] BACKUP.
func backupNamed(args []string) (group, name string, err error) {
	if len(args) == 2 {
		if group, err = groupArgument(args[0]); err != nil {
			return "", "", err
		}
	}
	name, err = backupArgument(args[len(args)-1])
	return group, name, err
}

// backupArgument reads BACKUP as people and kubectl write it.
func backupArgument(arg string) (string, error) {
	kind, name, both := strings.Cut(arg, "/")
	if !both {
		kind, name = "mb", arg
	}
	kind, _, _ = strings.Cut(strings.TrimSuffix(kind, "."+v1alpha1.GroupVersion.Group), ".")
	switch kind = strings.ToLower(kind); {
	case kind != "mb" && kind != "mysqlbackup" && kind != "mysqlbackups":
		return "", cli.Usage("%q is no backup: expected BACKUP or mb/BACKUP", arg)
	case name == "":
		return "", cli.Usage("BACKUP is empty")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", cli.Usage("%q cannot be the name of a backup", name)
	}
	return name, nil
}
