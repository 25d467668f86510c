// SPDX-License-Identifier: Apache-2.0

// Command bench measures failovers on the lab and writes the figures as JSON. A run is one fault under load; every
// run is also a test: two writers at a time, or an acknowledged row that is missing without the group's record saying
// so, make the command fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	runs  int
	only  string
	out   string
	lease time.Duration
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.runs, "runs", 10, "runs of each case")
	f.StringVar(&o.only, "case", "", "only this case: node-kill, node-cut, pod-force-delete or mysqld-kill")
	f.StringVar(&o.out, "out", "out/bench-failover.json", "file for the figures")
	f.DurationVar(&o.lease, "lease", 0, "spec.sidecar.leaseTimeout; 0: the default")
	if err := f.Parse(args); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	faults := stage.Faults()
	if o.only != "" {
		fault, err := stage.FaultNamed(o.only)
		if err != nil {
			return err
		}
		faults = []stage.Fault{fault}
	}
	s, err := stage.Open(ctx, out)
	if err != nil {
		return err
	}
	if err := s.InstallOperator(ctx); err != nil {
		return err
	}
	b := &bench{stage: s, options: o}
	var errs []error
	for _, fault := range faults {
		errs = append(errs, b.measure(ctx, fault))
		// After every case, so that an hour's figures are not lost by the last one.
		errs = append(errs, b.figures.write(o.out))
		if ctx.Err() != nil {
			break
		}
	}
	s.Say("wrote %s", o.out)
	return errors.Join(errs...)
}
