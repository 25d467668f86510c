// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// completeBackup offers the backups of the namespace, or of the group named before.
func (a *app) completeBackup(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.backupsOf(cmd, "", ""), cobra.ShellCompDirectiveNoFileComp
	case 1:
		return a.backupsOf(cmd, args[0], ""), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeGroupAndBackup offers groups, then the backups of the group.
func (a *app) completeGroupAndBackup(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeGroup(cmd, args, word)
	}
	if len(args) == 1 {
		return a.backupsOf(cmd, args[0], ""), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// backupsOf describes each backup by its phase, profile and proof; an empty namespace means that of the flags.
func (a *app) backupsOf(cmd *cobra.Command, group, namespace string) []cobra.Completion {
	name, err := bareName(group)
	if err != nil {
		return nil
	}
	own, err := a.namespace()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	cluster, err := a.connect()
	if err != nil {
		return nil
	}
	all, err := cluster.Backups(ctx, cmp.Or(namespace, own), name)
	if err != nil {
		return nil
	}
	var offers []cobra.Completion
	for _, b := range report.NewBackupList(all).Items {
		words := b.Phase + ", profile " + b.Profile
		switch {
		case b.Proven():
			words += ", verified"
		case b.NotRestorable():
			words += ", could not be restored"
		}
		offers = append(offers, cobra.CompletionWithDesc(b.Metadata.Name, words))
	}
	return offers
}

// completeProfileFlag offers the profiles of the group named before the flag.
func (a *app) completeProfileFlag(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	name, err := bareName(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, err := a.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []cobra.Completion
	for _, g := range a.listForCompletion(cmd, namespace) {
		if g.Name != name || g.Spec.Backup == nil {
			continue
		}
		for _, p := range g.Spec.Backup.Profiles {
			offers = append(offers, cobra.CompletionWithDesc(p.Name, cmp.Or(string(p.Method), string(v1alpha1.BackupLogical))+" to "+report.StorageWords(p.Storage)))
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}
