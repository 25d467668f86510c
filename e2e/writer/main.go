// SPDX-License-Identifier: Apache-2.0

// Command writer is the witness of the end-to-end tests: it writes rows into a group, through a Service or directly
// into one site's pod, and journals the outcome of every one with the machine's monotonic clock.
//
//	writer run --addr HOST:PORT --user app --password-file F --table db.t --id NAME [--site SITE]
//	writer session --addr HOST:PORT --password-file F --id NAME
//	                         keeps sessions in a cache, writes and reads them back, and journals the same way
//	writer sessions JOURNAL...
//	                         prints what follows from such journals, and fails when sessions were lost
//	writer stop              ends the writer that is process 1 of this container
//	writer check [--binlogs SITE=DIR...] JOURNAL...
//	                         prints what follows from journals and binary logs, and fails when two sites wrote at once
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "writer: %v\n", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say run, session, sessions, stop or check")
	}
	switch args[0] {
	case "run":
		return run(ctx, args[1:])
	case "session":
		return runSessions(ctx, args[1:])
	case "sessions":
		return checkSessions(os.Stdout, args[1:])
	case "stop":
		if err := syscall.Kill(1, syscall.SIGTERM); err != nil {
			return fmt.Errorf("stop writer: %w", err)
		}
		return nil
	case "check":
		return check(os.Stdout, args[1:])
	}
	return fmt.Errorf("%q is none of run, session, sessions, stop, check", args[0])
}
