// SPDX-License-Identifier: Apache-2.0

// Command sidecar runs in every MySQL pod: it installs itself for the other containers, initialises the datadir, and
// guards who may write. It holds no Kubernetes credentials. docs/internals/fence.md says what it guarantees.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/mysql-mfg/mfg/internal/logpipe"
	"github.com/mysql-mfg/mfg/internal/program"
)

const usage = `usage: sidecar COMMAND [flags]

commands:
  install DEST   copy this program to DEST
  bootstrap      initialise the data directory, once
  run            guard the MySQL of this pod
  mysqld PROGRAM [ARGUMENT...]
                 run mysqld, and start it again when it ends
  leave          wait until mysqld can be ended without anybody missing it
  version        print the version

"sidecar COMMAND -h" lists the flags; the default of each is taken from the environment.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// errUsage makes the program print the usage text.
var errUsage = errors.New("usage")

func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	pipe := logpipe.New(stderr)
	defer pipe.Close()
	log := slog.New(slog.NewJSONHandler(pipe, nil))
	err := dispatch(ctx, args, stdout, log)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case errors.Is(err, errUsage):
		_, _ = io.WriteString(stderr, usage)
	case err != nil:
		log.Error("sidecar ends", "error", err.Error())
	}
	return err
}

func dispatch(ctx context.Context, args []string, stdout io.Writer, log *slog.Logger) error {
	if len(args) == 0 {
		return errUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "install":
		if len(args) != 1 {
			return errUsage
		}
		return program.Install(args[0])
	case "bootstrap":
		s, err := parseSettings(name, args, os.Getenv)
		if err != nil {
			return err
		}
		err = bootstrap(ctx, s, log)
		tellKubelet(terminationLog, s, err)
		return err
	case "run":
		s, err := parseSettings(name, args, os.Getenv)
		if err != nil {
			return err
		}
		return run(ctx, s, log)
	case "mysqld":
		if len(args) == 0 {
			return errUsage
		}
		return supervise(runDirOf(os.Getenv), args, log)
	case "leave":
		s, err := parseSettings(name, args, os.Getenv)
		if err != nil {
			return err
		}
		return leave(ctx, s, log)
	case "version":
		_, err := fmt.Fprintln(stdout, version())
		return err
	default:
		return errUsage
	}
}

// version is what the Go toolchain recorded; it needs no flags of the linker.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "sidecar (unknown version)"
	}
	text := "sidecar " + info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return text + " " + info.GoVersion
}
