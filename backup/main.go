// SPDX-License-Identifier: Apache-2.0

// Command backup makes, loads, verifies, lists and removes backups, in a Job with the MySQL image into which it is copied, and archives
// binary logs in pods of MySQL. It is a program of its own so that nothing of object storage is in the process that fences: docs/decisions/0024. It holds no Kubernetes
// credentials; docs/reference/backup-job.md tells what it is told and what it says.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/backup/archiver"
	"github.com/mysql-mfg/mfg/backup/inspect"
	"github.com/mysql-mfg/mfg/backup/job"
	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/program"
)

// configVariable has the configuration as JSON. It holds no secret.
const configVariable = "MFG_BACKUP_CONFIG"

const usage = `usage: backup COMMAND

commands:
  install DEST   copy this program to DEST
  archive        archive the binary logs of the site of this pod, until the signal to end
  make           make a backup of a site
  load           make the data directory of a site from a backup
  verify         restore a backup into a scratch server and check it
  list           list the backups of the group
  fetch          write a backup to the output as it lies in the storage, as a tar
  timeline       tell what the archive of binary logs can recover
  find           find transactions in the archive of binary logs
  lost           tell what failovers lost and the archive still has
  idle           wait for the signal to end; fetch, timeline, find and lost are run beside it
  delete         remove a backup
  sweep          remove what killed attempts left
  version        print the version

$` + configVariable + ` says the rest, as JSON; for archive, $` + wire.EnvArchiverConfig + ` does.
timeline, find and lost read their question from stdin.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	switch {
	case len(args) == 2 && args[0] == "install":
		if err := program.Install(args[1]); err != nil {
			log.Error("install", "error", err)
			return terms.ExitFailed
		}
		return terms.ExitSucceeded
	case len(args) != 1:
		_, _ = io.WriteString(stderr, usage)
		return terms.ExitConfig
	case args[0] == "idle":
		// What is fetched goes through an exec, and not through the output of the container, which its node keeps in a file.
		<-ctx.Done()
		return terms.ExitSucceeded
	case args[0] == "version":
		_, _ = fmt.Fprintln(stdout, version())
		return terms.ExitSucceeded
	}
	if args[0] == "archive" {
		return archive(ctx, log)
	}
	config, err := terms.ParseConfig([]byte(os.Getenv(configVariable)))
	if err != nil {
		log.Error("the configuration in $"+configVariable+" cannot be used", "error", err)
		return terms.ExitConfig
	}
	if slices.Contains(inspect.Commands, args[0]) {
		q := &inspect.Program{Bucket: config.Bucket, IdentityFile: config.IdentityFile, Timeout: time.Duration(config.TimeoutSeconds) * time.Second, In: os.Stdin, Out: stdout, Log: log}
		return q.Run(ctx, args[0])
	}
	p := &job.Program{Config: config, Out: stdout, Log: log, Version: version()}
	return p.Run(ctx, args[0])
}

// archive runs beside a mysqld until the signal to end.
func archive(ctx context.Context, log *slog.Logger) int {
	config, err := archiver.ParseConfig([]byte(os.Getenv(wire.EnvArchiverConfig)))
	if err != nil {
		log.Error("the configuration in $"+wire.EnvArchiverConfig+" cannot be used", "error", err)
		return archiver.Misconfigured(ctx, []byte(os.Getenv(wire.EnvArchiverConfig)), err, log)
	}
	return archiver.New(config, log).Run(ctx)
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "backup (unknown version)"
	}
	return strings.TrimSpace("backup " + info.Main.Version)
}
