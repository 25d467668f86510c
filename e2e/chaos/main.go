// SPDX-License-Identifier: Apache-2.0

// Command chaos breaks a group on the lab in every way that it can be broken in, one named scenario after the other,
// while writers are connected to every site, and judges each by what the writers saw: never two sites that accept
// commits, no acknowledged row missing that the group did not report as lost, and a group that is whole again, or held
// for a reason that it states. It waits for behaviour and never judges how long something took; `make bench-failover`
// measures that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	only     string
	out      string
	docs     string
	list     bool
	table    bool
	carryOn  bool
	narrated bool
	repeat   int
	lease    time.Duration
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.StringVar(&o.only, "only", "", "only these scenarios, by commas; their results are kept apart, unless with -continue")
	f.StringVar(&o.out, "out", "out/chaos.json", "file for the results")
	f.StringVar(&o.docs, "docs", "docs/internals/chaos.md", "file for the table")
	f.BoolVar(&o.list, "list", false, "list the scenarios and end")
	f.BoolVar(&o.table, "table", false, "write the table from the results of a complete run and end")
	f.BoolVar(&o.carryOn, "continue", false, "keep what an unfinished run of the same build has shown, and run the rest")
	f.BoolVar(&o.narrated, "narrate", false, "print what the operator thinks, too")
	f.IntVar(&o.repeat, "repeat", 0, "run each scenario of -only so often and sum up its runs; 0: once")
	f.DurationVar(&o.lease, "lease", lease, "spec.sidecar.leaseTimeout of the group, from 5s")
	if err := f.Parse(args); err != nil {
		return o, fmt.Errorf("parse flags: %w", err)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	switch {
	case o.repeat < 0 || o.repeat > 0 && o.only == "":
		return o, errors.New("-repeat takes a number of runs, and -only the scenarios to repeat")
	case o.lease < 5*time.Second || o.lease > 10*time.Minute:
		return o, fmt.Errorf("-lease %s: leases are between 5s and 10m", o.lease)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	all := scenarios()
	switch {
	case o.list:
		return list(out, all)
	case o.table:
		return writeTable(o.out, o.docs, complete(all))
	}
	lease = o.lease
	chosen, err := choose(all, o.only)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("it needs root: it cuts networks and stops processes of the lab")
	}
	release, err := hold(cluster.DefaultDir(), args, time.Now())
	if err != nil {
		return err
	}
	defer release()
	r, err := newRunner(ctx, out, o)
	if err != nil {
		return err
	}
	if o.repeat > 0 {
		return r.repeat(ctx, chosen)
	}
	return r.all(ctx, chosen)
}

// complete are the scenarios of a complete run.
func complete(all []Scenario) []Scenario {
	return slices.DeleteFunc(slices.Clone(all), func(sc Scenario) bool { return sc.ByName })
}

// choose picks scenarios by their names, in their own order.
func choose(all []Scenario, only string) ([]Scenario, error) {
	if only == "" {
		return complete(all), nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []Scenario
	for _, sc := range all {
		if wanted[sc.Name] {
			chosen = append(chosen, sc)
			delete(wanted, sc.Name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("there is no scenario %q; -list shows them", name)
	}
	return chosen, nil
}

func list(out io.Writer, all []Scenario) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, sc := range all {
		note := ""
		if sc.ByName {
			note = " (by name only)"
		}
		fmt.Fprintf(w, "%s\t%s%s\n", sc.Name, sc.claim(), note)
	}
	fmt.Fprintf(w, "%d scenarios\n", len(all))
	if err := w.Flush(); err != nil {
		return fmt.Errorf("list scenarios: %w", err)
	}
	return nil
}
