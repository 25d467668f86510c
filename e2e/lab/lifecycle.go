// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

func upCommand() *cobra.Command {
	var o cluster.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Build the cluster and start it",
		Long: `Builds the cluster and starts it. The first time this compiles Kubernetes (about ten
minutes on two cores); later it takes about a minute. Ctrl-C is safe: 'lab down' cleans up
after it, and so does the next 'lab up', also after a restart of the machine.`,
		Example: "  lab up\n  lab up --nodes paris,oslo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			c, err := cluster.Up(cmd.Context(), o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(o.Out, "\nThe lab is up. To use it:\n  export KUBECONFIG=%s PATH=%s:$PATH\n", c.Kubeconfig(), c.Tools())
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Sites, "nodes", cluster.DefaultSites(), "site nodes; each is its own zone")
	f.BoolVar(&o.NoHub, "no-hub", false, "leave out the node \"hub\", which is no site and holds the operator")
	f.BoolVar(&o.NoImages, "no-images", false, "leave out the project's own images (see 'lab images')")
	f.StringVar(&o.Repo, "repo", "", "checkout to build from (default: around the working directory, else around this binary)")
	return cmd
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove all traces of it, but not the cache",
		Long: `Ends the cluster and removes its processes, mounts, networks, control groups and files.
It works whatever state the lab is in, and may be called again. The cache stays.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Down(cmd.Context(), "", cmd.OutOrStdout())
		},
	}
}

func kubeconfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of the administrator's kubeconfig",
		Example: "  export KUBECONFIG=$(lab kubeconfig)",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			return err
		},
	}
}

func toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "tools",
		Short:   "Print the directory that holds kubectl and helm",
		Example: "  PATH=$(lab tools):$PATH",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), c.Tools())
			return err
		},
	}
}
