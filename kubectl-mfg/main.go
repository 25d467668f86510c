// SPDX-License-Identifier: Apache-2.0

// kubectl-mfg is the plugin behind `kubectl mfg`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cmd.Main(ctx, os.Args[1:], cmd.System())
	stop()
	os.Exit(code)
}
