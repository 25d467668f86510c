// SPDX-License-Identifier: Apache-2.0

// kubectl-mfg is the plugin behind `kubectl mfg`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cmd"
)

func main() {
	// Never stopped: a second Ctrl-C during the answer to the first would end the process as killed (130 instead of 0).
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_ = stop
	os.Exit(cmd.Main(ctx, os.Args[1:], cli.System()))
}
