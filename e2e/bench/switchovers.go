// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	// switchoverRuns is how many planned failovers are made in a row.
	switchoverRuns = 72
	// readEvery is after how many of them it is read what the processes hold.
	readEvery = 6
)

// switchoverFigures are the output of planned failovers in a row.
type switchoverFigures struct {
	Machine    machine   `json:"machine"`
	Commit     string    `json:"commit"`
	MeasuredAt time.Time `json:"measuredAt"`
	// Moves were asked for, Succeeded of them in a row.
	Moves     int `json:"moves"`
	Succeeded int `json:"succeeded"`
	// Row has the pauses and the losses, as for the case planned.
	row
	// Growth says of everything that was watched whether it grew, Flat whether nothing did.
	Growth   []growth  `json:"growth"`
	Flat     bool      `json:"flat"`
	Readings []reading `json:"readings"`
}

// reading is what the processes held after a number of moves.
type reading struct {
	Moves int                `json:"moves"`
	At    time.Time          `json:"at"`
	Held  map[string]float64 `json:"held"`
}

// growth compares the first third of the readings with the last one.
type growth struct {
	Name  string  `json:"name"`
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	// Limit is how much the last may be.
	Limit float64 `json:"limit"`
	Flat  bool    `json:"flat"`
}

// switchovers moves the role back and forth under load and watches whether anything grows.
func (b *bench) switchovers(ctx context.Context) error {
	runs := switchoverRuns
	if b.options.runs > 0 {
		runs = b.options.runs
	}
	planned, err := casesNamed("planned")
	if err != nil {
		return err
	}
	c := planned[0]
	c.batch = runs
	if err := b.stage.Restore(ctx); err != nil {
		return err
	}
	g, err := b.stage.EnsureGroup(ctx, namespace, group, b.spec())
	if err != nil {
		return err
	}
	s, err := openSession(ctx, g, "switchovers", 0)
	if err != nil {
		return err
	}
	readings, failed := b.moveInTurn(ctx, s, c)
	ctx = context.WithoutCancel(ctx)
	if failed != nil {
		g.Diagnose(ctx, "bench-switchovers")
	}
	samples, err := s.finish(ctx)
	err = errors.Join(failed, err)
	out := b.sumUp(c, samples, readings, err)
	out.Moves = runs
	out.print(b.out)
	return errors.Join(err, writeJSON(b.options.out, out))
}

// moveInTurn makes the moves, one after the other as soon as the group is whole again.
func (b *bench) moveInTurn(ctx context.Context, s *session, c benchCase) ([]reading, error) {
	var readings []reading
	for n := 0; ctx.Err() == nil; n++ {
		if n%readEvery == 0 || n == c.batch {
			if _, err := s.AwaitReady(ctx, bringUp); err != nil {
				return readings, err
			}
			held, err := holdings(ctx, s.Group)
			if err != nil {
				return readings, err
			}
			readings = append(readings, reading{Moves: n, At: time.Now().UTC().Truncate(time.Second), Held: held})
		}
		if n == c.batch {
			break
		}
		b.stage.Say("planned failover %d of %d", n+1, c.batch)
		if err := s.once(ctx, c, pace{before: rateWindow, after: time.Second}); err != nil {
			return readings, fmt.Errorf("planned failover %d: %w", n+1, err)
		}
	}
	return readings, ctx.Err()
}

func (b *bench) sumUp(c benchCase, samples []sample, readings []reading, err error) switchoverFigures {
	o := outcome{samples: samples, commit: b.commit}
	if err != nil {
		o.errs = []error{err}
	}
	var f figures
	f.add(c, b.spec(), o)
	f.Cases[0].Name = "switchovers"
	out := switchoverFigures{
		Machine: thisMachine(), Commit: b.commit, MeasuredAt: f.Cases[0].MeasuredAt, Succeeded: len(samples),
		row: f.Cases[0], Readings: readings, Growth: grown(readings),
	}
	out.Flat = len(out.Growth) > 0 && !slices.ContainsFunc(out.Growth, func(g growth) bool { return !g.Flat })
	out.WithinTarget = out.WithinTarget && out.Flat
	return out
}

// grown compares what was held at first and at last. The very first reading is left out where there are enough: caches
// and pools fill then.
func grown(readings []reading) []growth {
	if len(readings) > 3 {
		readings = readings[1:]
	}
	if len(readings) < 2 {
		return nil
	}
	third := max(len(readings)/3, 1)
	var all []growth
	for _, name := range heldNames(readings) {
		g := growth{
			Name: name, First: round(median(readings[:third], name)), Last: round(median(readings[len(readings)-third:], name)),
		}
		g.Limit = round(max(g.First*(1+tolerance), g.First+slack(name)))
		g.Flat = g.Last <= g.Limit
		all = append(all, g)
	}
	return all
}

// tolerance and slack are what one may differ from the other by chance: the garbage collector keeps memory for a while,
// and a connection more or less is in use when it is looked.
const tolerance = 0.2

func slack(name string) float64 {
	switch kindOf(name) {
	case kindMemory:
		return 16
	case kindConnections:
		return 3
	}
	return 10
}

func median(readings []reading, name string) float64 {
	var values []float64
	for _, r := range readings {
		if v, ok := r.Held[name]; ok {
			values = append(values, v)
		}
	}
	return percentile(values, 50)
}

func (f switchoverFigures) print(out io.Writer) {
	(&figures{Cases: []row{f.row}}).print(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nHELD\tAT FIRST\tAT LAST\tLIMIT\tVERDICT")
	for _, g := range f.Growth {
		verdict := "flat"
		if !g.Flat {
			verdict = "GREW"
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%s\n", g.Name, g.First, g.Last, g.Limit, verdict)
	}
	_ = w.Flush()
	fmt.Fprintf(out, "%d of %d planned failovers in a row\n", f.Succeeded, f.Moves)
}

// heldNames are the names of everything that was read, sorted.
func heldNames(readings []reading) []string {
	var names []string
	for _, r := range readings {
		for name := range r.Held {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// holdings reads what the operator and the sidecars hold, and what they hold at MySQL.
func holdings(ctx context.Context, g *stage.Group) (map[string]float64, error) {
	held := map[string]float64{}
	raw, err := g.Fetch(ctx, "mfg-metrics", "8080", "/metrics")
	if err != nil {
		return nil, err
	}
	if err := takeProcess(held, "operator", string(raw)); err != nil {
		return nil, err
	}
	connections := 0.0
	for _, site := range stage.Sites {
		pod, err := g.Pod(ctx, site)
		if err != nil {
			return nil, err
		}
		raw, err := g.Core.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, "8090", "/metrics", nil).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("read metrics of %s: %w", pod.Name, err)
		}
		if err := takeProcess(held, "sidecar "+site, string(raw)); err != nil {
			return nil, err
		}
		n, err := countConnections(ctx, g, site)
		if err != nil {
			return nil, err
		}
		connections += n
	}
	// Of all sites together: which site has which of them changes with the roles.
	held[kindConnections] = connections
	return held, nil
}
