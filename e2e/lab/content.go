// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

func loadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "load IMAGE.tar", Short: "Import a docker-archive on every node", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			return c.LoadImage(cmd.Context(), args[0])
		},
	}
}

func imagesCommand() *cobra.Command {
	var repo string
	var s3 bool
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Build the project's images from the checkout and load them on every node",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			c.Progress(cmd.OutOrStdout())
			if _, err = c.BuildImages(cmd.Context(), repo); err != nil || !s3 {
				return err
			}
			return c.BuildS3Image(cmd.Context(), repo)
		},
	}
	cmd.Flags().BoolVar(&s3, "s3", false, "also the image of an S3 server, "+cluster.S3Image)
	cmd.Flags().StringVar(&repo, "repo", "", "checkout to build from (default: the one that the lab was started from)")
	return cmd
}

func volumesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "volumes", Short: "Care for the nodes' local volumes"}
	cmd.AddCommand(&cobra.Command{
		Use: "recycle", Short: "Empty the volumes whose claims are gone and offer them again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			n, err := c.RecycleVolumes(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d volumes recycled\n", n)
			return err
		},
	})
	return cmd
}

func execCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NODE -- COMMAND",
		Short: "Run a command on a node's network (or on that of \"client\" or \"host\")",
		Long: `Runs a command in the network namespace of a node or of the client, with this machine's
files, and with KUBECONFIG and PATH set for the lab.`,
		Example: "  lab exec east -- ip route\n  lab exec client -- mysql -h 10.244.3.5",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := cluster.Open("")
			if err != nil {
				return err
			}
			argv := args[1:]
			if argv[0] == "--" {
				argv = argv[1:]
			}
			run, err := c.Command(cmd.Context(), args[0], argv...)
			if err != nil {
				return err
			}
			run.Stdin, run.Stdout, run.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
			return run.Run()
		},
	}
	// What follows the node belongs to the command, dashes or not.
	cmd.Flags().SetInterspersed(false)
	return cmd
}
