// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// fault is one kind of trouble. It begins when begin is called; the function it returns ends it, nil if it ends by itself
// or does not apply now. How long it lasts is drawn up to the given time.
type fault struct {
	name   string
	weight int
	upTo   time.Duration
	begin  func(*world) func()
}

// faultsBegin draws the faults of this run: in every second run of all kinds, in the others of a few kinds only, so that
// rare ones meet each other too.
func (w *world) faultsBegin() {
	if directed != "" {
		w.scripted()
		return
	}
	kinds := faults
	if w.chance(0.5) {
		kinds = nil
		for range 2 + w.rnd.IntN(4) {
			kind := faults[w.rnd.IntN(len(faults))]
			kind.weight = 1
			kinds = append(kinds, kind)
		}
	}
	total := 0
	for _, f := range kinds {
		total += f.weight
	}
	first := 8 * time.Second
	if w.api.group.durable.Epoch == 0 {
		first = time.Second
	}
	for range 1 + w.rnd.IntN(faultsMost) {
		n := w.rnd.IntN(total)
		for i := range kinds {
			if n -= kinds[i].weight; n < 0 {
				w.at(first+w.between(0, faultsFor-first), func() { w.inject(&kinds[i]) })
				break
			}
		}
	}
	w.at(faultsFor, w.heal)
}

func (w *world) inject(f *fault) {
	end := f.begin(w)
	if end == nil {
		return
	}
	w.stats.faults++
	w.count("fault " + f.name)
	w.trace("FAULT %s", f.name)
	ended := false
	stop := func() {
		if !ended {
			ended = true
			end()
			w.trace("FAULT %s ends", f.name)
		}
	}
	w.ends = append(w.ends, stop)
	w.after(w.mostly(f.upTo/2, f.upTo, 0.4), stop)
}

// heal ends all faults; from here on the group must come to rest.
func (w *world) heal() {
	for _, end := range w.ends {
		end()
	}
	for _, n := range w.nodes {
		w.freezeNode(n, false)
		w.powerOn(n)
		n.kubelet, n.tainted = true, false
	}
	for _, o := range w.operators {
		o.start()
	}
	w.healed, w.truth.healedAt, w.truth.restAt = true, w.now, w.now
	w.trace("all faults are over")
}

// someSite picks a site, the active one more often than not.
func (w *world) someSite() *site {
	if active := w.siteOf(w.api.group.durable.ActiveSite); active != nil && w.chance(0.6) {
		return active
	}
	return w.sites[w.rnd.IntN(len(w.sites))]
}

// someHost is the machine on which a site's pod runs now.
func (w *world) someHost() *node {
	s := w.someSite()
	if p := w.podAt(s); p != nil {
		return p.host
	}
	return s.host
}

func (w *world) someServer() *mysqld {
	if p := w.podAt(w.someSite()); p != nil && p.mysqld.running() {
		return p.mysqld
	}
	return nil
}

// leader is the operator that leads, or any.
func (w *world) leader() *operator {
	for _, o := range w.operators {
		if o.run != nil && !o.run.dead && o.run.leading {
			return o
		}
	}
	return w.operators[0]
}

// cuts cuts directions of the network and returns what mends exactly these.
func (w *world) cuts(pairs [][2]*node) func() {
	var done [][2]*node
	for _, p := range pairs {
		if p[0] != p[1] && !w.net.cut[p[0].index][p[1].index] {
			w.net.cut[p[0].index][p[1].index] = true
			done = append(done, p)
		}
	}
	return func() {
		for _, p := range done {
			w.net.cut[p[0].index][p[1].index] = false
		}
	}
}

func both(a, b []*node) [][2]*node {
	var out [][2]*node
	for _, x := range a {
		for _, y := range b {
			out = append(out, [2]*node{x, y}, [2]*node{y, x})
		}
	}
	return out
}

func (w *world) except(some ...*node) []*node {
	var out []*node
next:
	for _, n := range w.nodes {
		for _, s := range some {
			if s == n {
				continue next
			}
		}
		out = append(out, n)
	}
	return out
}

func (w *world) operatorHosts() []*node {
	var out []*node
	for _, o := range w.operators {
		out = append(out, o.host)
	}
	return out
}

func nothing() {}

// faults is every kind. A fault that the guarantees exclude (a kubelet that is dead beside a sidecar that is dead) is
// left out here, and named in docs/internals/simulation.md.
var faults []fault

func init() {
	faults = append(faults, networkFaults...)
	faults = append(faults, processFaults...)
	faults = append(faults, clusterFaults...)
	faults = append(faults, humanFaults...)
}

var networkFaults = []fault{
	{"cut a node off", 10, 60 * time.Second, func(w *world) func() {
		n := w.someHost()
		return w.cuts(both([]*node{n}, w.except(n)))
	}},
	{"cut one way", 8, 40 * time.Second, func(w *world) func() {
		a, b := w.nodes[w.rnd.IntN(len(w.nodes))], w.someHost()
		if w.chance(0.5) {
			a, b = b, a
		}
		return w.cuts([][2]*node{{a, b}})
	}},
	{"cut a node off one way", 5, 40 * time.Second, func(w *world) func() {
		n := w.someHost()
		pairs := both([]*node{n}, w.except(n))
		var some [][2]*node
		inward := w.chance(0.5)
		for _, p := range pairs {
			if (p[1] == n) == inward {
				some = append(some, p)
			}
		}
		return w.cuts(some)
	}},
	{"cut operators from a site", 8, 60 * time.Second, func(w *world) func() {
		return w.cuts(both(w.operatorHosts(), []*node{w.someHost()}))
	}},
	{"cut two sites", 6, 60 * time.Second, func(w *world) func() {
		return w.cuts(both([]*node{w.someHost()}, []*node{w.sites[w.rnd.IntN(len(w.sites))].host}))
	}},
	{"cut in two", 8, 60 * time.Second, func(w *world) func() {
		var left, right []*node
		for _, n := range w.nodes {
			if w.chance(0.5) {
				left = append(left, n)
			} else {
				right = append(right, n)
			}
		}
		return w.cuts(both(left, right))
	}},
	{"active and peer against the rest", 6, 60 * time.Second, func(w *world) func() {
		some := []*node{w.someHost(), w.sites[w.rnd.IntN(len(w.sites))].host}
		return w.cuts(both(some, w.except(some...)))
	}},
	{"cut leader from API server", 5, 40 * time.Second, func(w *world) func() {
		return w.cuts(both([]*node{w.leader().host}, []*node{w.api.host}))
	}},
	{"lose messages", 4, 40 * time.Second, func(w *world) func() {
		w.net.loss = w.rnd.Float64() * 0.5
		return func() { w.net.loss = 0 }
	}},
	{"slow network", 4, 40 * time.Second, func(w *world) func() {
		w.net.slow = w.between(50*time.Millisecond, 2*time.Second)
		return func() { w.net.slow = 0 }
	}},
	{"replay what was said", 6, 40 * time.Second, func(w *world) func() {
		w.replaying = true
		w.replay()
		return func() { w.replaying = false }
	}},
}

// meddle is somebody between a sidecar and the operator who answers with what was signed for another question, or for
// another group that shares the key.
func (w *world) meddle(_ *sidecar, signed wire.Signed, nonce string) wire.Signed {
	if !w.replaying || w.chance(0.6) {
		return signed
	}
	w.count("replayed answer")
	old := w.statements[w.rnd.IntN(len(w.statements))]
	if w.chance(0.3) {
		old = w.verify(signed)
		old.Group, old.Nonce, old.Hold = "other", nonce, false
		old.ActiveSite = w.sites[w.rnd.IntN(len(w.sites))].name
		old.Epoch += int64(w.rnd.IntN(3))
	}
	return w.sign(old)
}

// recorded is a statement that somebody may have kept: any that was signed, or, of the epoch that a sidecar knows, one from before its
// window, and the one that holds, which the operator signs for anybody who asks in the name of an unknown pod.
func (w *world) recorded(s *sidecar) wire.Statement {
	old := s.state.Newest()
	if old.Epoch == 0 || w.chance(0.4) {
		return w.statements[w.rnd.IntN(len(w.statements))]
	}
	old.Nonce = ""
	if old.Hold = old.Hold || w.chance(0.6); w.chance(0.6) {
		old.Windows = nil
	}
	return old
}

// replay pushes old statements to everybody.
func (w *world) replay() {
	if !w.replaying {
		return
	}
	for _, s := range w.sites {
		p := w.podAt(s)
		if p == nil || p.sidecar == nil || p.sidecar.dead || !p.sidecar.serving || len(w.statements) == 0 {
			continue
		}
		signed := w.sign(w.recorded(p.sidecar))
		w.count("replayed push")
		p.sidecar.do(func() { p.sidecar.spawn(func(t *task) { p.sidecar.put(t, signed) }) })
	}
	w.after(w.between(200*time.Millisecond, 3*time.Second), w.replay)
}
