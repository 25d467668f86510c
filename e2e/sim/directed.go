// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A scenario is a scripted schedule: it brings the world straight to where one guard decides, which chance does once in
// many thousands of runs. All else is as in any run: the same processes, delays and invariants, drawn from the seed.
// `make sim-mutants` plays them without that guard, `go test ./sim` with it.
type scenario struct {
	name string
	// drOnly is true if site c has to be dr-only. All are groups of three that have run for long.
	drOnly bool
	// shape changes what was drawn before anything begins.
	shape func(*world)
	// script plans what happens, from when the group is at work.
	script func(*world)
}

// directed is the name of the scenario that is played instead of faults that are drawn.
var directed string

// settledAt is when scripts begin: by then the group is at work.
const settledAt = 25 * time.Second

func init() {
	flag.StringVar(&directed, "directed", "", "play this scripted schedule instead of faults that are drawn; most seeds do not fit it")
}

// scripted plans the script in place of drawn faults. A world that does not fit is not played.
func (w *world) scripted() {
	i := slices.IndexFunc(scenarios(), func(s scenario) bool { return s.name == directed })
	if i < 0 {
		panic(fmt.Sprintf("there is no scenario %q", directed))
	}
	s := scenarios()[i]
	if !s.suits(w) {
		w.over = true
		return
	}
	w.policy.lease, w.policy.crashGrace, w.policy.cooldown = 20*time.Second, 5*time.Second, time.Second
	if s.shape != nil {
		s.shape(w)
	}
	for _, site := range w.sites {
		for _, p := range site.pods {
			p.lease = w.policy.lease
		}
	}
	w.at(settledAt, func() {
		w.count("directed: " + s.name)
		s.script(w)
	})
	w.at(faultsFor, w.heal)
}

func (s scenario) suits(w *world) bool {
	plain := len(w.sites) == 3 && w.api.group.durable.Epoch == 1 && w.policy.mode == v1alpha1.FailoverAuto &&
		w.policy.lease <= 20*time.Second && w.api.group.maxLost == nil && !w.encrypted()
	return plain && !w.sites[1].drOnly && w.sites[2].drOnly == s.drOnly
}

// reached notes that a script came to the moment that it is for.
func (w *world) reached(format string, args ...any) {
	w.count("directed: reached")
	w.trace("SCRIPT "+format, args...)
}

// when does something at the moment at which something becomes true.
func (w *world) when(so func() bool, then func()) {
	switch {
	case w.healed:
	case so():
		then()
	default:
		w.after(time.Millisecond, func() { w.when(so, then) })
	}
}

// epoch is true once an epoch is durable.
func (w *world) epoch(n int64) func() bool {
	return func() bool { return w.api.group.durable.Epoch >= n }
}

func (w *world) server(site int) *mysqld {
	if p := w.podAt(w.sites[site]); p != nil {
		return p.mysqld
	}
	return nil
}

// cut cuts until all faults are over, or until the function that it returns is called.
func (w *world) cut(some, others []*node) func() {
	mend := w.cuts(both(some, others))
	w.ends = append(w.ends, mend)
	return mend
}

// isolate cuts a site off from everybody.
func (w *world) isolate(s *site) func() { return w.cut([]*node{s.host}, w.except(s.host)) }

// fromOperators cuts the first site off from the operators, fromPeers from the other sites.
func (w *world) fromOperators() { w.cut(w.operatorHosts(), []*node{w.sites[0].host}) }

func (w *world) fromPeers(site int) {
	var others []*node
	for i, s := range w.sites {
		if i != site {
			others = append(others, s.host)
		}
	}
	w.cut(others, []*node{w.sites[site].host})
}

// slow makes the SQL of a site slow until all faults are over, or its server ends.
func (w *world) slow(site int, by time.Duration) {
	m := w.server(site)
	m.slow = by
	w.ends = append(w.ends, func() { m.slow = 0 })
}

// pause keeps the operator from failing over, until the function that it returns is called.
func (w *world) pause() func() {
	w.api.change(func(o *object) { o.pausedUntil = epochZero.Add(24 * time.Hour) })
	return func() { w.api.change(func(o *object) { o.pausedUntil = time.Time{} }) }
}

// orders has a person order site b to open, with the loss that this means.
func (w *world) orders() {
	w.api.change(func(o *object) { o.forceTo = w.sites[1].name })
}

// restartActive ends mysqld of site a; its supervisor starts another.
func (w *world) restartActive() {
	m := w.server(0)
	if m.running() {
		m.end()
		w.restartMysqld(m.pod)
	}
}
