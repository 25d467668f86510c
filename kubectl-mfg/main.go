// SPDX-License-Identifier: Apache-2.0

// kubectl-mfg is the plugin behind `kubectl mfg`.
package main

import (
	"os"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cmd"
)

func main() {
	ctx, env, code := cli.Process()
	os.Exit(code(cmd.Main(ctx, os.Args[1:], env)))
}
