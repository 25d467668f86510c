// SPDX-License-Identifier: Apache-2.0

// Command release makes everything that a release of mfg consists of out of one commit, without a container engine and without a
// network: programs, images, charts, install.yaml, archives of the plugin, bills of materials, provenance and checksums; and it
// verifies what it finds in such a folder. The workflow of releases runs the same program, so that what `make rehearse` shows is
// what is published. See docs/releasing.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:          "release",
		Short:        "Make, sign, verify and push the files of a release",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(buildCommand(), verifyCommand(), imagesCommand(), pushCommand(), rehearseCommand())
	return root
}

// flags adds what every command that builds needs.
func (p *plan) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.repo, "repo", ".", "checkout of the repository; its newest commit is built, nothing that is not committed")
	f.StringVar(&p.out, "out", "out/release", "folder for the files; it is emptied first")
	f.StringVar(&p.version, "version", "", "version to build, as 1.2.3 (default: the tag of the commit, or 0.0.0-g<commit>)")
	f.StringVar(&p.registry, "registry", "registry.example.org/mysql-mfg", "where images and charts will be: host and path, which the charts name in full")
	f.StringVar(&p.helm, "helm", "bin/helm", "the program helm")
	f.StringVar(&p.authorities, "ca", "/etc/ssl/certs/ca-certificates.crt", "certificates of public authorities, for the images")
}

func buildCommand() *cobra.Command {
	p := plan{}
	cmd := &cobra.Command{
		Use: "build", Short: "Make the files of a release, without signatures", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.log = cmd.OutOrStdout()
			return build(cmd.Context(), &p)
		},
	}
	p.flags(cmd)
	return cmd
}

func verifyCommand() *cobra.Command {
	v := verifier{}
	var key string
	cmd := &cobra.Command{
		Use: "verify FOLDER", Short: "Verify the files of a release", Args: cobra.ExactArgs(1),
		Long: "Verifies checksums, images, programs, bills of materials, provenance, charts and manifests against each other. With --key it\n" +
			"verifies the signatures of that key; without, it says that it has not.",
		RunE: func(cmd *cobra.Command, args []string) error {
			v.dir, v.log = args[0], cmd.OutOrStdout()
			if key != "" {
				var err error
				if v.key, err = readPublicKey(key); err != nil {
					return err
				}
			}
			return v.verify(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&v.helm, "helm", "bin/helm", "the program helm")
	cmd.Flags().StringVar(&key, "key", "", "file with the public key (PEM) that signed the files")
	return cmd
}

func imagesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "images FOLDER", Short: "List images and charts of a release by digest, one a line, as the registry that it is for names them", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v := verifier{dir: args[0]}
			if err := errors.Join(v.checkSums(), v.checkProvenance()); err != nil {
				return err
			}
			all, err := pushed(args[0], v.registry)
			for _, image := range all {
				fmt.Fprintln(cmd.OutOrStdout(), image)
			}
			return err
		},
	}
}

func pushCommand() *cobra.Command {
	var to string
	var plain bool
	cmd := &cobra.Command{
		Use: "push FOLDER", Short: "Push images and charts of a release to a registry", Args: cobra.ExactArgs(1),
		Long: "Pushes what the folder holds, by the digests that its charts name, and tags it with the version. The credentials are those of\n" +
			"docker login (~/.docker/config.json).",
		RunE: func(cmd *cobra.Command, args []string) error {
			return push(cmd.Context(), cmd.OutOrStdout(), args[0], target{registry: to, plain: plain})
		},
	}
	cmd.Flags().StringVar(&to, "registry", "", "where to push: host and path")
	cmd.Flags().BoolVar(&plain, "plain-http", false, "speak HTTP, with a registry on this machine")
	_ = cmd.MarkFlagRequired("registry")
	return cmd
}

func rehearseCommand() *cobra.Command {
	p := plan{}
	cmd := &cobra.Command{
		Use: "rehearse", Short: "Make, sign with a throw-away key, verify, push to a registry of this process and pull again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.log = cmd.OutOrStdout()
			return rehearse(cmd.Context(), &p)
		},
	}
	p.flags(cmd)
	return cmd
}
