// SPDX-License-Identifier: Apache-2.0

// Command bench measures failovers on the lab and writes the figures as JSON. A run is one fault under load; every
// run is also a test: two writers at a time, or an acknowledged row that is missing without the group's record saying
// so, make the command fail. A target that was missed does not: it is said, and the figures are there to be judged.
// docs/internals/benchmarks.md says what each case does and how to read the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
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
	runs        int
	only        string
	out         string
	lease       time.Duration
	merge       bool
	rate        int
	switchovers bool
	keyring     bool
	cache       bool
	backup      bool
	size        string
	status      bool
	flood       bool
	strangers   bool
	pitr        bool
	watch       time.Duration
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.runs, "runs", 0, "runs of each case; 0: as many as the case's targets are for")
	f.StringVar(&o.only, "case", "", "only these cases, by commas: "+strings.Join(caseNames(), ", "))
	f.StringVar(&o.out, "out", "out/bench-failover.json", "file for the figures")
	f.DurationVar(&o.lease, "lease", 0, "spec.sidecar.leaseTimeout; 0: the default")
	f.BoolVar(&o.merge, "merge", false, "keep what the file says of the cases that do not run now")
	f.IntVar(&o.rate, "rate", 0, fmt.Sprintf("commits a second that -cache asks for, of each group; 0: %d, which two processors cannot do beside anything else", fullRate))
	f.BoolVar(&o.switchovers, "switchovers", false, "planned failovers in a row, and whether anything grows with them")
	f.BoolVar(&o.flood, "flood", false, "failovers beside strangers on every listener")
	f.BoolVar(&o.strangers, "strangers", false, "what -flood starts: flood the listeners that standard input names until it ends")
	f.BoolVar(&o.status, "status", false, "how long kubectl mfg status takes")
	f.BoolVar(&o.keyring, "keyring", false, "what encryption at rest costs; its -case are parts: "+strings.Join(keyringParts(), ", "))
	f.BoolVar(&o.cache, "cache", false, "what a cache costs MySQL and what its sessions see; its -case are parts: "+strings.Join(cacheParts(), ", "))
	f.BoolVar(&o.backup, "backup", false, "backups and restores beside mysqldump | zstd and a copy; its -case are: "+strings.Join(backupCaseNames(), ", "))
	f.BoolVar(&o.pitr, "pitr", false, "what archiving binary logs costs, and how old the recoverable point is; its -case are parts: "+strings.Join(pitrParts(), ", "))
	f.DurationVar(&o.watch, "duration", pitrWatch, "how long -pitr watches the recoverable point")
	f.StringVar(&o.size, "size", backupSize, "how much data -backup is about")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("parse flags: %w", err)
	}
	if o.rate < 0 || o.rate > fullRate || o.rate > 0 && !o.cache {
		return o, fmt.Errorf("-rate %d: it is for -cache, and at most %d", o.rate, fullRate)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.strangers {
		return beStrangers(ctx, os.Stdin, out)
	}
	b := &bench{options: o, out: out}
	if o.backup {
		return b.measureBackups(ctx)
	}
	if o.pitr {
		return b.measurePITR(ctx)
	}
	if o.keyring || o.cache {
		return b.compare(ctx)
	}
	cases, err := casesNamed(o.only)
	if err != nil {
		return err
	}
	if o.merge {
		if err := b.figures.read(o.out); err != nil {
			return err
		}
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	if o.status {
		return b.status(ctx)
	}
	if o.flood {
		return b.flood(ctx)
	}
	if o.switchovers {
		return b.switchovers(ctx)
	}
	var errs []error
	for _, c := range cases {
		errs = append(errs, b.measure(ctx, c))
		// After every case, so that an hour's figures are not lost by the last one.
		errs = append(errs, b.figures.write(o.out))
		if ctx.Err() != nil {
			break
		}
	}
	b.figures.print(out)
	b.stage.Say("wrote %s", o.out)
	return errors.Join(errs...)
}

// compare measures two groups beside each other, which differ in one thing.
func (b *bench) compare(ctx context.Context) error {
	named, measure := partsNamed, b.keyring
	if b.options.cache {
		named, measure = cachePartsNamed, b.cache
	}
	if _, err := named(b.options.only); err != nil {
		return err
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	return measure(ctx)
}

// measureBackups refuses what cannot be measured before the lab is asked for.
func (b *bench) measureBackups(ctx context.Context) error {
	_, err := backupCasesNamed(b.options.only)
	if _, sizeErr := sizeOf(b.options.size); err == nil {
		err = sizeErr
	}
	if err != nil {
		return err
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	return b.backups(ctx)
}

// open takes the lab, with an operator of this checkout.
func (b *bench) open(ctx context.Context) error {
	var err error
	if b.stage, err = stage.Open(ctx, b.out); err != nil {
		return err
	}
	b.commit = commitOf(ctx, b.stage.Repo)
	return b.stage.InstallOperator(ctx)
}
