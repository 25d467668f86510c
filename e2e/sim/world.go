// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

const (
	namespace = "sim"
	group     = "shop"
)

var siteNames = []string{"a", "b", "c", "d"}

// policy is what the group's spec says, drawn again for each run.
type policy struct {
	mode                                     v1alpha1.FailoverMode
	poll, crashGrace, cooldown, drainTimeout time.Duration
	lease, fenceTimeout, peerCheck           time.Duration
	plannedLag, plannedPause, stall          time.Duration
	threshold                                int
}

// world is everything of one run.
type world struct {
	schedule
	seed   uint64
	policy policy
	// moment is the group's own in the poll interval.
	moment time.Duration
	// crowded is true if the operator has very many other groups, which are not well either.
	crowded   bool
	nodes     []*node
	net       network
	api       *apiserver
	sites     []*site
	operators []*operator
	truth     *truth
	sets      sets
	// order is in which order servers' transactions are replicated: by when they were first active.
	order []int

	statements []wire.Statement
	nonces     int
	processes  int
	volumes    int
	servers    int
	messages   int
	polls      int

	// idle are the coroutines that wait for another task.
	idle []*coroutine
	// ends end the faults, replaying is true while somebody answers with what was said before.
	ends      []func()
	replaying bool
	// hangOpenings: servers hang while they are opened.
	hangOpenings bool
	// moved is true once a site started again on another machine, whatever still ran on the first.
	moved  bool
	healed bool

	verbose    bool
	said       string
	transcript []string
	stats      stats
	failure    *violation
	dirty      bool
	// over ends the run without a failure.
	over bool
}

// violation is a broken invariant.
type violation struct {
	Invariant, What string
	At              time.Duration
}

func (v *violation) String() string {
	return fmt.Sprintf("%s: %s (at %s)", v.Invariant, v.What, v.At.Round(time.Millisecond))
}

func (w *world) fail(invariant, format string, args ...any) {
	if w.failure == nil && !w.over {
		w.failure = &violation{Invariant: invariant, What: fmt.Sprintf(format, args...), At: w.now}
		w.trace("VIOLATION %s", w.failure)
	}
}

func (w *world) trace(format string, args ...any) {
	if w.verbose {
		w.transcript = append(w.transcript, fmt.Sprintf("%9.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) touched() { w.dirty = true }

func (w *world) siteOf(name string) *site {
	for _, s := range w.sites {
		if s.name == name {
			return s
		}
	}
	return nil
}

func newWorld(seed uint64, verbose bool) *world {
	w := &world{seed: seed, verbose: verbose, sets: sets{}, stats: stats{}}
	w.rnd = rand.New(rand.NewPCG(seed, 0x6d6667))
	w.truth = &truth{w: w, sites: map[int64]string{}, openings: map[int64]opening{}, completed: map[int64]bool{}, ordered: map[int64]bool{}, changes: map[int64]failover.Transition{}, checked: map[int64]bool{}, errantSeen: map[string]int{}, told: map[string]history{}}
	w.policy = w.drawPolicy()
	w.moment = time.Duration(seed * 0x9e3779b97f4a7c15 % uint64(w.policy.poll)) // as a hash of the group's name: any
	w.crowded = seed%10 == 0
	w.api = &apiserver{w: w, host: w.newNode("api")}
	w.api.group = object{version: 1, provisioned: map[string]bool{}, volumes: map[string]string{}, nodes: map[string]string{}}
	if w.chance(0.1) {
		lost := int64(w.rnd.IntN(20))
		w.api.group.maxLost = &lost
	}
	for i := range 2 {
		w.operators = append(w.operators, &operator{w: w, name: fmt.Sprintf("o%d", i+1), host: w.newNode(fmt.Sprintf("op%d", i+1))})
	}
	count := 2 + w.rnd.IntN(3)
	for i := range count {
		s := &site{name: siteNames[i], index: i, priority: int32(w.rnd.IntN(3)), host: w.newNode("n" + siteNames[i])}
		s.drOnly = i > 0 && w.chance(0.15)
		s.vol = w.newVolume(s)
		w.sites = append(w.sites, s)
	}
	for i := range 2 {
		w.newNode(fmt.Sprintf("spare%d", i+1))
	}
	w.net.cut = make([][]bool, len(w.nodes))
	for i := range w.net.cut {
		w.net.cut[i] = make([]bool, len(w.nodes))
	}
	if w.chance(0.88) {
		w.settle()
	}
	if seed%11 == 4 && directed == "" {
		w.addSite()
	}
	return w
}

// addSite makes the last site of a group that has run for long a new one, which has no data and of which nobody's sidecar was told.
// Its pod may start at any time, or not before all faults are over.
func (w *world) addSite() {
	s := w.sites[len(w.sites)-1]
	if w.api.group.durable.Epoch == 0 || len(w.sites) < 3 {
		return
	}
	s.vol.executed, s.vol.databases, s.vol.acked, s.vol.kept, s.vol.source = history{}, false, 0, fence.Kept{}, ""
	o := &w.api.group
	o.provisioned, o.volumes, o.nodes = without(o.provisioned, s.name), without(o.volumes, s.name), without(o.nodes, s.name)
	o.unlisted = map[string]bool{s.name: true}
	s.noStart = true
	w.ends = append(w.ends, func() { s.noStart = false })
	if w.seed%2 == 0 && directed == "" {
		w.at(time.Duration(w.seed%97)*time.Second, func() { s.noStart = false })
	}
	w.count("a new site")
}

func (w *world) drawPolicy() policy {
	p := policy{mode: v1alpha1.FailoverAuto, poll: 2 * time.Second, threshold: 3, crashGrace: 5 * time.Second, drainTimeout: 30 * time.Second,
		lease: 20 * time.Second, fenceTimeout: 2 * time.Second, peerCheck: 2 * time.Second, cooldown: 2 * time.Second,
		plannedLag: 20 * time.Second, plannedPause: 5 * time.Second, stall: 20 * time.Second}
	if w.chance(0.3) {
		p.poll = time.Second
	}
	if w.chance(0.5) {
		p.lease = 15 * time.Second
	}
	if w.chance(0.3) {
		p.drainTimeout = 8 * time.Second
	}
	if w.chance(0.3) {
		p.crashGrace = 0
	}
	if w.chance(0.15) {
		p.threshold = 1
	}
	if w.chance(0.2) {
		p.cooldown = w.between(5*time.Second, 30*time.Second)
	}
	if w.chance(0.02) {
		p.mode = v1alpha1.FailoverObserve
	} else if w.chance(0.02) {
		p.mode = v1alpha1.FailoverManual
	}
	return p
}

func (w *world) newNode(name string) *node {
	n := &node{name: name, index: len(w.nodes), up: true, kubelet: true}
	n.clock = clock{rate: 1 + (w.rnd.Float64()-0.5)*0.008, wall: w.between(-skewMost, skewMost)}
	w.nodes = append(w.nodes, n)
	return n
}

func (w *world) newVolume(s *site) *volume {
	w.volumes++
	v := &volume{id: fmt.Sprintf("v%d", w.volumes), server: w.servers, site: s.name, host: s.host}
	w.order = append(w.order, w.servers)
	w.servers++
	return v
}

// settle makes the group one that has run for long: site a is active under an epoch, the others follow it.
func (w *world) settle() {
	start := history{}
	start[0] = 1000
	first := w.sites[0]
	statement := wire.Statement{Namespace: namespace, Group: group, ActiveSite: first.name, Epoch: 1,
		LeaseTimeoutMillis: w.policy.lease.Milliseconds()}
	signed := w.sign(statement)
	o := &w.api.group
	o.durable = failover.Durable{Epoch: 1, ActiveSite: first.name, ActiveSince: epochZero}
	w.truth.epoch = 1
	w.truth.sites[1] = first.name
	for _, s := range w.sites {
		v := s.vol
		v.executed, v.databases, v.acked = start, true, 1
		v.kept = fence.Kept{Signed: signed, Statement: statement, Verified: true, Heard: true}
		if s != first {
			v.source = first.name
		}
		o.provisioned[s.name], o.volumes[s.name], o.nodes[s.name] = true, v.id, s.host.name
	}
	w.truth.acked = start
	if w.outsideInnoDB() {
		w.settleTables()
	}
}

// addLast is addSite for a script, which is played after the processes have begun.
func (w *world) addLast() {
	w.addSite()
	s := w.sites[len(w.sites)-1]
	for _, other := range w.sites {
		for _, p := range other.pods {
			if other != s {
				delete(p.peers, s.name)
			}
		}
	}
}

// begin starts all processes.
func (w *world) begin() {
	for _, s := range w.sites {
		w.newPod(s)
		w.writer(s)
	}
	late := time.Duration(0)
	if w.api.group.durable.Epoch == 0 && w.chance(0.4) {
		// The operator comes long after the servers, and somebody writes meanwhile.
		late = 30 * time.Second
		w.at(w.between(6*time.Second, 10*time.Second), func() { w.tamper(w.someServer()) })
	}
	for _, o := range w.operators {
		w.after(late+w.between(0, 2*time.Second), o.start)
	}
	if w.chance(0.2) {
		w.shortenLease()
	}
	w.kubelets()
	w.stalls()
	w.faultsBegin()
}

// shortenLease: the spec gets a shorter lease while the group runs; pods that run keep theirs, unless they hear of it.
func (w *world) shortenLease() {
	w.policy.lease += 10 * time.Second
	for _, s := range w.sites {
		for _, p := range s.pods {
			p.lease = w.policy.lease
		}
	}
	w.at(w.between(20*time.Second, 80*time.Second), func() { w.policy.lease -= 10 * time.Second })
}

const (
	// faultsFor is how long faults begin, settleFor how long the group has afterwards to come to rest.
	faultsFor  = 140 * time.Second
	faultsMost = 16
	settleFor  = 150 * time.Second
	// cooldownMost is how long a cooldown may last after that: as long as it may be, and by how much the clocks of two operators may
	// differ, of which one wrote its end as a time of day and the other waits for it.
	cooldownMost = 30*time.Second + 2*skewMost
	// skewMost is by how much the time of day on a machine may be wrong.
	skewMost = 2 * time.Minute
	// maxEvents bounds a run: one that goes round without an advance of time is a mistake of the model.
	maxEvents = 1_000_000
)

// play runs to the end, or to the first violation.
func (w *world) play() {
	w.begin()
	for w.failure == nil && !w.over {
		e, ok := w.pop()
		if !ok {
			return
		}
		e.run()
		if w.stats.events++; w.stats.events > maxEvents {
			w.fail("model", "the run does not end")
		}
		if w.dirty {
			w.dirty = false
			w.truth.writers()
		}
		if w.healed && w.now > w.truth.restAt {
			w.truth.restAt = w.now + time.Second
			if w.atRest() {
				return
			}
		}
	}
}

// close ends the coroutines that are left.
func (w *world) close() {
	for _, o := range w.operators {
		if o.run != nil {
			o.run.kill()
		}
	}
	for _, s := range w.sites {
		for _, p := range s.pods {
			if p.sidecar != nil {
				p.sidecar.kill()
			}
			if p.mysqld != nil {
				p.mysqld.kill()
			}
		}
	}
	for _, c := range w.idle {
		c.stop()
	}
}
