// SPDX-License-Identifier: Apache-2.0

// Command lab builds a real Kubernetes cluster of several nodes on one Linux machine and
// breaks it in every way that a failover has to survive. See docs/internals/lab.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	// What `lab exec` ran has already said what is wrong.
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode())
	}
	fmt.Fprintln(os.Stderr, "lab:", err)
	os.Exit(1)
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "A real Kubernetes cluster on this machine, to try mfg on and to break",
		Long: `lab builds a Kubernetes cluster on this machine: one network namespace per node, control
plane and node programs compiled from their Go modules, containers by Debian's containerd.
Nodes can be cut off, paused and killed for real.

It needs root, Linux and Debian (or a relative of it). State is kept in $MFG_LAB_DIR
(/var/lib/mfg-lab), build products in $MFG_CACHE (~/.cache/mfg).`,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(
		upCommand(), downCommand(), statusCommand(), kubeconfigCommand(), toolsCommand(),
		nodeCommand(), netCommand(), loadCommand(), imagesCommand(), volumesCommand(), execCommand(),
	)
	return root
}
