// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	// floodTime is for how long planned failovers are made beside strangers.
	floodTime = 2 * time.Minute
	// floodlessTime is for how long planned failovers are made without them first, so that one run has both.
	floodlessTime = time.Minute
)

// flooded is one listener, and what came of its flood.
type flooded struct {
	Name string `json:"name"`
	// Asked requests were sent, Answered of them in any way. Opened connections were held.
	Asked    int64 `json:"asked"`
	Answered int64 `json:"answered"`
	Opened   int64 `json:"opened"`
	// Refused is what the listener's own metric counted.
	Refused float64 `json:"refused"`

	address string
	secure  bool
}

// floodFigures are the output of `bench -flood`.
type floodFigures struct {
	Machine    machine   `json:"machine"`
	Commit     string    `json:"commit"`
	MeasuredAt time.Time `json:"measuredAt"`
	// Seconds is how long the flood lasted, over all cases.
	Seconds   float64    `json:"seconds"`
	Listeners []*flooded `json:"listeners"`
	// Cases are failovers beside the flood, with the same targets as without. Alone is the first of them before the flood, in the same run.
	Cases []row `json:"cases"`
	Alone *row  `json:"alone,omitempty"`
	// Memory is the resident memory of operator and sidecars in MiB: before the flood, its most during it, and after it.
	Memory []memory `json:"memory"`
	Flat   bool     `json:"flat"`
	// Restarts of containers beside the planned failovers, which replace no pod.
	Restarts     int32 `json:"restarts"`
	WithinTarget bool  `json:"withinTarget"`
}

type memory struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	Most   float64 `json:"most"`
	After  float64 `json:"after"`
	Limit  float64 `json:"limit"`
	Flat   bool    `json:"flat"`
}

// flood makes failovers beside strangers on every listener.
func (b *bench) flood(ctx context.Context) error {
	cases, err := casesNamed("planned,pod-force-delete")
	if err != nil {
		return err
	}
	if err := b.stage.Restore(ctx); err != nil {
		return err
	}
	g, err := b.stage.EnsureGroup(ctx, namespace, group, b.spec())
	if err != nil {
		return err
	}
	if _, err := g.AwaitReady(ctx, bringUp); err != nil {
		return err
	}
	out := floodFigures{Machine: thisMachine(), Commit: b.commit, MeasuredAt: time.Now().UTC().Truncate(time.Second)}
	watch := &memoryWatch{}
	if err := watch.before(ctx, g); err != nil {
		return err
	}
	var figures, alone figures
	var errs []error
	samples, err := b.floodless(ctx, g, cases[0])
	errs = append(errs, err)
	alone.add(cases[0], b.spec(), outcome{samples: samples, commit: b.commit})
	if len(alone.Cases) == 1 {
		out.Alone = &alone.Cases[0]
	}
	for _, c := range cases {
		restarts, err := g.Restarts(ctx)
		errs = append(errs, err)
		samples, err := b.floodCase(ctx, g, c, &out, watch)
		errs = append(errs, err)
		if c.batch > 1 {
			// A case that replaces a pod begins to count again.
			now, err := g.Restarts(context.WithoutCancel(ctx))
			errs = append(errs, err)
			out.Restarts = now - restarts
		}
		o := outcome{samples: samples, commit: b.commit}
		if err != nil {
			o.errs = []error{err}
		}
		figures.add(c, b.spec(), o)
	}
	ctx = context.WithoutCancel(ctx)
	errs = append(errs, watch.after(ctx, g))
	out.Cases, out.Memory = figures.Cases, watch.all()
	out.judge()
	fmt.Fprintln(b.out, "Without the flood:")
	alone.print(b.out)
	fmt.Fprintln(b.out, "Beside the flood:")
	figures.print(b.out)
	out.print(b.out)
	return errors.Join(append(errs, writeJSON(b.options.out, out))...)
}

// judge says whether every failover was within its target and nothing grew.
func (f *floodFigures) judge() {
	f.Flat = len(f.Memory) > 0 && !slices.ContainsFunc(f.Memory, func(m memory) bool { return !m.Flat })
	f.WithinTarget = f.Flat && f.Restarts == 0 && len(f.Cases) > 0 && !slices.ContainsFunc(f.Cases, func(r row) bool { return !r.WithinTarget }) &&
		!slices.ContainsFunc(f.Listeners, func(l *flooded) bool { return l.Refused == 0 })
}

func (f *floodFigures) print(out io.Writer) {
	for _, l := range f.Listeners {
		fmt.Fprintf(out, "%s: %d requests, %d answered, %d connections opened, %.0f refusals counted\n", l.Name, l.Asked, l.Answered, l.Opened, l.Refused)
	}
	for _, m := range f.Memory {
		fmt.Fprintf(out, "%s: %.1f MiB before, %.1f at most, %.1f after (limit %.1f)\n", m.Name, m.Before, m.Most, m.After, m.Limit)
	}
	fmt.Fprintf(out, "%.0f s of flood, %d restarts, within target: %t\n", f.Seconds, f.Restarts, f.WithinTarget)
}

// floodless makes planned failovers as they will be made beside the flood, but without it.
func (b *bench) floodless(ctx context.Context, g *stage.Group, c benchCase) ([]sample, error) {
	s, err := openSession(ctx, g, "flood-none", 0)
	if err != nil {
		return nil, err
	}
	var failed error
	for n, began := 0, time.Now(); failed == nil && ctx.Err() == nil && !s.lost() && (n == 0 || time.Since(began) < floodlessTime); n++ {
		b.stage.Say("%s %d without the flood", c.Name, n+1)
		failed = s.once(ctx, c, pace{before: rateWindow, after: 2 * time.Second})
	}
	samples, err := s.finish(context.WithoutCancel(ctx))
	return samples, errors.Join(failed, err)
}

// floodCase makes failovers of one kind beside the flood: planned ones for floodTime, of the others one.
func (b *bench) floodCase(ctx context.Context, g *stage.Group, c benchCase, out *floodFigures, watch *memoryWatch) ([]sample, error) {
	s, err := openSession(ctx, g, "flood-"+c.Name, 0)
	if err != nil {
		return nil, err
	}
	listeners, err := listenersOf(ctx, g)
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	counted, err := refusals(ctx, g)
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	began := time.Now()
	flood, err := sendStrangers(ctx, listeners)
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	flooding, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { watch.during(flooding, g) })
	var failed error
	for n := 0; failed == nil && ctx.Err() == nil && !s.lost() && (n == 0 || c.batch > 1 && time.Since(began) < floodTime); n++ {
		b.stage.Say("%s %d beside the flood", c.Name, n+1)
		failed = s.once(ctx, c, pace{before: rateWindow, after: 2 * time.Second})
	}
	stop()
	watching.Wait()
	did, floodErr := flood.end()
	out.Seconds += round(time.Since(began).Seconds())
	ctx = context.WithoutCancel(ctx)
	if failed != nil {
		g.Diagnose(ctx, "bench-flood")
	}
	samples, err := s.finish(ctx)
	return samples, errors.Join(failed, err, floodErr, out.take(ctx, g, did, counted))
}

// take adds what came of a flood. A listener that ended with its pod has taken its count along.
func (f *floodFigures) take(ctx context.Context, g *stage.Group, did []flooded, before map[string]float64) error {
	now, err := refusals(ctx, g)
	if err != nil {
		return err
	}
	for _, l := range did {
		i := slices.IndexFunc(f.Listeners, func(known *flooded) bool { return known.Name == l.Name })
		if i < 0 {
			f.Listeners = append(f.Listeners, &flooded{Name: l.Name})
			i = len(f.Listeners) - 1
		}
		sum := f.Listeners[i]
		sum.Asked += l.Asked
		sum.Answered += l.Answered
		sum.Opened += l.Opened
		sum.Refused += max(now[l.Name]-before[l.Name], 0)
	}
	return nil
}

// Names of the operator's listeners, as its metric of refusals has them.
var operatorListeners = map[string]int{
	"metrics": wire.PortOperatorMetrics, "auxiliary": wire.PortOperatorAuxiliary, "escrow": wire.PortOperatorEscrow,
	"probes": wire.PortOperatorHealth,
}

func sidecarName(site string) string { return "sidecar " + site }

// listenersOf finds every listener of the operator and of the group.
func listenersOf(ctx context.Context, g *stage.Group) ([]*flooded, error) {
	var all []*flooded
	pods, err := g.OperatorPods(ctx)
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 || pods[0].Status.PodIP == "" {
		return nil, fmt.Errorf("%d operators run, and one is wanted", len(pods))
	}
	for name, port := range operatorListeners {
		all = append(all, &flooded{
			Name: name, address: net.JoinHostPort(pods[0].Status.PodIP, strconv.Itoa(port)), secure: port == wire.PortOperatorEscrow,
		})
	}
	for _, site := range stage.Sites {
		pod, err := g.Pod(ctx, site)
		if err != nil {
			return nil, err
		}
		all = append(all, &flooded{Name: sidecarName(site), address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(wire.PortSidecar))})
	}
	return all, nil
}

// refusals are what the listeners themselves counted, by the names of listenersOf.
func refusals(ctx context.Context, g *stage.Group) (map[string]float64, error) {
	counted := map[string]float64{}
	// A listener that was full a moment ago may refuse this question, too.
	err := stage.Poll(ctx, time.Minute, "the metrics of refusals", func(ctx context.Context) error {
		raw, err := g.Fetch(ctx, "mfg-metrics", strconv.Itoa(wire.PortOperatorMetrics), wire.PathMetrics)
		if err != nil {
			return err
		}
		for name := range operatorListeners {
			counted[name] = sumOf(string(raw), "operator_refused_requests_total{", `listener="`+name+`"`)
		}
		for _, site := range stage.Sites {
			pod, err := g.Pod(ctx, site)
			if err != nil {
				return err
			}
			raw, err := g.Core.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(wire.PortSidecar), wire.PathMetrics, nil).DoRaw(ctx)
			if err != nil {
				return fmt.Errorf("read metrics of %s: %w", pod.Name, err)
			}
			counted[sidecarName(site)] = sumOf(string(raw), "sidecar_refused_requests_total{", "")
		}
		return nil
	})
	return counted, err
}

// sumOf adds up the series that begin so and have a label.
func sumOf(metrics, begin, label string) float64 {
	sum := 0.0
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, begin) || !strings.Contains(line, label) {
			continue
		}
		fields := strings.Fields(line)
		if value, err := strconv.ParseFloat(fields[len(fields)-1], 64); err == nil {
			sum += value
		}
	}
	return sum
}

// memoryWatch reads how much memory operator and sidecars hold, from the machine, which no flood hinders.
type memoryWatch struct {
	mu     sync.Mutex
	values map[string]*memory
}

// memorySlack is how much a process may hold more than before the flood: the places of its listener, and what the collector of
// garbage has not taken yet.
const memorySlack = 24

func (w *memoryWatch) before(ctx context.Context, g *stage.Group) error {
	w.values = map[string]*memory{}
	return w.read(ctx, g, func(m *memory, now float64) { m.Before, m.Most, m.Limit = now, now, round(now+memorySlack) })
}

// during follows it. A site whose pod is being replaced has none for a moment.
func (w *memoryWatch) during(ctx context.Context, g *stage.Group) {
	for {
		_ = w.read(ctx, g, func(m *memory, now float64) { m.Most = max(m.Most, now) })
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

func (w *memoryWatch) after(ctx context.Context, g *stage.Group) error {
	return w.read(ctx, g, func(m *memory, now float64) { m.After = now })
}

func (w *memoryWatch) read(ctx context.Context, g *stage.Group, note func(*memory, float64)) error {
	held, err := g.ResidentMiB(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, now := range held {
		if w.values[name] == nil {
			w.values[name] = &memory{Name: name}
		}
		note(w.values[name], round(now))
	}
	return err
}

func (w *memoryWatch) all() []memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []memory
	for _, m := range w.values {
		m.Flat = m.Most <= m.Limit
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b memory) int { return strings.Compare(a.Name, b.Name) })
	return all
}
