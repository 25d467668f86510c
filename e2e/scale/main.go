// SPDX-License-Identifier: Apache-2.0

// Command scale measures what one operator costs that looks after many groups. The operator is the real one, a process of
// its own with its own flags, against a real API server and etcd; the sites are fakes that speak what MySQL and the
// sidecar speak on the wire: thousands of them, each on an address of its own on the loopback network. See
// docs/internals/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	debug.SetGCPercent(400) // the fakes, as lavish says
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "scale: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	points   string
	operator string
	out      string
	memLimit string
	cores    int
	settle   time.Duration
	window   time.Duration
	bringUp  time.Duration
	plain    bool
	cache    bool
	backups  bool
	atOnce   int
	poll     time.Duration
	profile  string
	args     string
}

// size is how much one point of the curve holds.
type size struct{ groups, sites int }

func parse(args []string) (options, []size, error) {
	var o options
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.StringVar(&o.points, "points", "10x3,100x3,1000x3,1x16", "groups x sites of each point, by commas")
	f.StringVar(&o.operator, "operator", "bin/operator", "the operator")
	f.StringVar(&o.out, "out", "out/bench-scale.json", "file for the figures")
	f.IntVar(&o.cores, "cores", 2, "processors that the operator may use")
	f.StringVar(&o.memLimit, "mem-limit", chartMemLimit, "GOMEMLIMIT of the operator, the chart's goMemLimit by default, which the targets are for")
	f.DurationVar(&o.settle, "settle", 30*time.Second, "time between the last group's readiness and the measurement")
	f.DurationVar(&o.window, "window", 2*time.Minute, "time of the measurement")
	f.DurationVar(&o.bringUp, "bring-up", 30*time.Minute, "time for all groups to become ready")
	f.BoolVar(&o.plain, "plain", false, "groups without TLS")
	f.BoolVar(&o.cache, "cache", false, "groups with a cache each")
	f.BoolVar(&o.backups, "backups", false, "have every group backed up by schedules that name the same minute, and measure meanwhile")
	f.IntVar(&o.atOnce, "backups-at-once", 5, "how many backups the operator may make at a time, its default by default")
	f.DurationVar(&o.poll, "poll", 0, "spec.failover.pollInterval; 0: the default of 2s, which the targets are for")
	f.StringVar(&o.profile, "profile", "", "address of the operator's pprof, for an operator that was built with it; profiles go beside the figures")
	f.StringVar(&o.args, "operator-args", "", "further flags of the operator, by spaces")
	if err := f.Parse(args); err != nil {
		return o, nil, fmt.Errorf("parse flags: %w", err)
	}
	sizes, err := parseSizes(o.points)
	return o, sizes, err
}

func parseSizes(list string) ([]size, error) {
	var sizes []size
	for text := range strings.SplitSeq(list, ",") {
		groups, sites, ok := strings.Cut(strings.TrimSpace(text), "x")
		g, err1 := strconv.Atoi(groups)
		s, err2 := strconv.Atoi(sites)
		if !ok || err1 != nil || err2 != nil || g < 1 || s < 2 || s > maxSites || g*s > maxAddresses {
			return nil, fmt.Errorf("point %q is not like 100x3: groups, and 2 to %d sites", text, maxSites)
		}
		sizes = append(sizes, size{groups: g, sites: s})
	}
	return sizes, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, sizes, err := parse(args)
	if err != nil {
		return err
	}
	b := &bench{options: o, out: out, began: time.Now()}
	var errs []error
	for _, s := range sizes {
		p, err := b.measure(ctx, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%d groups of %d sites: %w", s.groups, s.sites, err))
			b.say("FAILED: %v", err)
		}
		if p != nil {
			b.figures.Points = append(b.figures.Points, *p)
		}
		errs = append(errs, b.figures.write(o.out))
		if ctx.Err() != nil {
			break
		}
	}
	b.figures.print(out)
	b.say("wrote %s", o.out)
	return errors.Join(errs...)
}

// bench measures point by point.
type bench struct {
	options options
	out     io.Writer
	began   time.Time
	figures figures
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.out, "[%6.1fs] %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}
