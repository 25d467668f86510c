// SPDX-License-Identifier: Apache-2.0

// Command counts runs the parts of `make test` and adds up what they did, so that one plain line can close it:
//
//	counts step -dir out/test -part vet -- go vet ./...          one check, passed or failed
//	counts go -dir out/test -part unit -- ./...                  go test, every test counted; fails if there is none
//	counts total -dir out/test unit vet …                        the time of each part, the slowest tests and the closing
//	                                                             line; fails if anything did, or is missing
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "counts: %v\n", err)
		os.Exit(1)
	}
}

var errFailed = errors.New("something failed, see above")

func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say step, go or total")
	}
	f := flag.NewFlagSet("counts "+args[0], flag.ContinueOnError)
	dir := f.String("dir", "out/test", "where the parts leave their counts")
	part := f.String("part", "", "name of this part")
	live := f.Bool("live", false, "go: print what tests say as they say it")
	took := f.Float64("took", 0, "total: the seconds from the first part's start to the last part's end; parts can overlap")
	noSkip := f.Bool("no-skip", false, "go: a skipped test is a failed one")
	if err := f.Parse(args[1:]); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	switch args[0] {
	case "step":
		return record(*dir, *part, step(ctx, out, *part, f.Args()))
	case "go":
		r := &reader{out: out, live: *live, noSkip: *noSkip}
		return record(*dir, *part, r.test(ctx, *part, f.Args()))
	case "total":
		return total(out, *dir, *took, f.Args())
	}
	return fmt.Errorf("%q is none of step, go, total", args[0])
}

// step runs one check. Its output is shown as it comes.
func step(ctx context.Context, out io.Writer, name string, argv []string) result {
	if len(argv) == 0 {
		return result{Failed: []string{name + " (no command)"}}
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	took := time.Since(began).Round(100 * time.Millisecond)
	r := result{Seconds: took.Seconds()}
	if err != nil {
		_, _ = fmt.Fprintf(out, "FAIL  %-12s %6s  %v\n", name, took, err)
		r.Failed = []string{name}
		return r
	}
	_, _ = fmt.Fprintf(out, "ok    %-12s %6s\n", name, took)
	r.Passed = 1
	return r
}
