// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// completionTimeout bounds how long a shell hangs on <tab>.
const completionTimeout = 2 * time.Second

// completeGroup offers the groups of the namespace, each with a word on how it is.
func (a *app) completeGroup(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []cobra.Completion
	for _, g := range a.listForCompletion(cmd, namespace) {
		offers = append(offers, cobra.CompletionWithDesc(g.Name, describe(g)))
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

// completeNamespace offers the namespaces that hold groups.
func (a *app) completeNamespace(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offers []cobra.Completion
	for _, g := range a.listForCompletion(cmd, "") {
		offers = append(offers, g.Namespace)
	}
	slices.Sort(offers)
	return slices.Compact(offers), cobra.ShellCompDirectiveNoFileComp
}

// listForCompletion offers nothing if the cluster does not answer: a shell is no place for error messages.
func (a *app) listForCompletion(cmd *cobra.Command, namespace string) []v1alpha1.MysqlFailoverGroup {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	cluster, err := a.connect()
	if err != nil {
		return nil
	}
	groups, err := cluster.Groups(ctx, namespace)
	if err != nil {
		return nil
	}
	return groups
}

func describe(g v1alpha1.MysqlFailoverGroup) string {
	phase := string(g.Status.Phase)
	if phase == "" {
		phase = "new"
	}
	if g.Status.ActiveSite == "" {
		return phase
	}
	return phase + ", active site " + g.Status.ActiveSite
}

// completeGroupAndSite offers groups, then the sites of the group.
func (a *app) completeGroupAndSite(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeGroup(cmd, args, word)
	case 1:
		return a.sitesOf(cmd, args[0]), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeSiteFlag offers the sites of the group named before the flag, or of all groups.
func (a *app) completeSiteFlag(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.sitesOf(cmd, args[0]), cobra.ShellCompDirectiveNoFileComp
}

// sitesOf describes each site by its role and state.
func (a *app) sitesOf(cmd *cobra.Command, group string) []cobra.Completion {
	name, err := bareName(group)
	if err != nil {
		return nil
	}
	namespace, err := a.namespace()
	if err != nil {
		return nil
	}
	var offers []cobra.Completion
	for _, g := range a.listForCompletion(cmd, namespace) {
		if g.Name != name {
			continue
		}
		states := map[string]string{}
		for _, s := range g.Status.Sites {
			states[s.Name] = ", " + strings.ToLower(string(s.State))
		}
		for _, s := range g.Spec.Sites {
			words := string(s.Role) + states[s.Name]
			if s.Name == g.Status.ActiveSite {
				words += ", active"
			}
			offers = append(offers, cobra.CompletionWithDesc(s.Name, words))
		}
	}
	return offers
}
