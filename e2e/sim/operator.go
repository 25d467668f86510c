// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// operator is one replica of the operator; run is its present process.
type operator struct {
	w    *world
	name string
	host *node
	run  *operatorRun
}

// operatorRun is one process of the operator: what it knows dies with it.
type operatorRun struct {
	process
	o       *operator
	leading bool
	pulse   authority.Pulse
	loop    *loop
	work    *work
	// observed is what this process saw of the Lease last, and when.
	observed   lease
	observedAt time.Duration
	renewedAt  time.Duration
	// lingers is how long a leader that was stopped for a while goes on before it notices that the Lease is lost.
	lingers time.Duration
	// endsFrom is from which pod on it saw how they ended: what ended before it began it does not know.
	endsFrom int
}

// Of operator/main.go.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

func (o *operator) start() {
	if o.run != nil && !o.run.dead || !o.host.up {
		return
	}
	r := &operatorRun{process: process{w: o.w, host: o.host}, o: o, work: &work{jobs: map[string]*job{}}, endsFrom: len(o.w.api.ended)}
	r.frozen = o.host.frozen
	o.run = r
	o.w.trace("operator %s starts", o.name)
	r.spawn(r.elect)
}

// crash ends the process; the kubelet starts another.
func (o *operator) crash() {
	if o.run == nil || o.run.dead {
		return
	}
	o.w.trace("operator %s ends", o.name)
	o.run.leading = false
	o.run.kill()
	o.w.after(o.w.between(500*time.Millisecond, 6*time.Second), o.start)
}

// anyOperator is where the operator's Service leads to.
func (w *world) anyOperator() *operator { return w.operators[w.rnd.IntN(len(w.operators))] }

// elect is client-go's leader election.
func (r *operatorRun) elect(t *task) {
	r.observedAt = r.mono()
	for {
		sent := r.mono()
		won := r.tryAcquire(t)
		switch {
		case won && !r.leading:
			r.renewedAt = sent
			r.lead()
		case won:
			r.renewedAt = sent
		case r.leading && r.mono()-r.renewedAt > renewDeadline:
			t.sleep(r.lingers)
			r.w.count("leader deposed")
			r.w.trace("operator %s loses the lease", r.o.name)
			r.w.at(r.w.now, r.o.crash)
			t.sleep(time.Minute)
		}
		t.sleep(retryPeriod)
	}
}

func (r *operatorRun) tryAcquire(t *task) bool {
	var seen lease
	api := r.w.api
	if !api.call(t, func() { seen = api.lease }) {
		return false
	}
	if seen != r.observed {
		r.observed, r.observedAt = seen, r.mono()
	}
	if seen.holder != "" && seen.holder != r.o.name && r.mono()-r.observedAt < leaseDuration {
		return false
	}
	won := false
	ok := api.call(t, func() {
		if api.lease == seen {
			api.lease = lease{holder: r.o.name, renewed: seen.renewed + 1}
			won = true
		}
	})
	return ok && won
}

func (r *operatorRun) lead() {
	r.leading = true
	r.w.count("leader elected")
	r.w.trace("operator %s leads", r.o.name)
	r.pulse.Beat(r.wall())
	r.loop = newLoop(r)
	r.spawn(func(t *task) {
		for {
			r.pulse.Beat(r.wall())
			t.sleep(authority.BeatEvery)
		}
	})
	r.spawn(r.loop.runs)
	r.spawn(r.control)
}

// answer is Monitor.Answer.
func (r *operatorRun) answer(q wire.Ask) wire.Signed {
	if !r.leading || r.loop == nil || !r.pulse.Steady(r.wall()) {
		return ""
	}
	signed, err := r.loop.authority.Answer(q, r.wall())
	if err != nil {
		return ""
	}
	return signed
}

// loop is operator/monitor/loop.go: the poll loop of the group.
type loop struct {
	r         *operatorRun
	authority *authority.Authority
	links     map[string]*link
	// seen is what each site held in this poll.
	seen map[string]history
	// told is what each site's server had at the last look of this loop that it answered; the truth's, not the core's.
	told    map[string]history
	started time.Time
	fenced  map[string]failover.SQLFence

	durable failover.Durable
	loaded  bool
	tried   failover.Durable
	// unwritten is true if the last decision was to be persisted and could not be.
	unwritten bool
	memory    failover.Memory
	// silent are the sites that did not answer the last poll.
	silent map[string]bool
	// looked is when the look that is acted on began.
	looked  time.Time
	cache   object
	pods    []podView
	ended   []string
	facts   *facts
	said    string
	written time.Duration
	labels  string
	chosen  string
	wake    func()
	// turns is the poll interval if the next look is one like any other, else 0.
	turns time.Duration
	// version is what this loop wrote last. While it stands, nobody else has written.
	version int64
}

// facts is operator/monitor/facts.go: the group as the loop last saw it.
type facts struct {
	snapshot failover.Snapshot
	decision failover.Decision
	open     bool
	// pods are where each site was asked.
	pods map[string]*pod
}

// link is what is kept of a site between polls.
type link struct {
	pod     *pod
	fencing bool
}

func newLoop(r *operatorRun) *loop {
	return &loop{r: r, authority: newAuthority(r.w), links: map[string]*link{}, seen: map[string]history{}, told: map[string]history{}, started: r.wall(), fenced: map[string]failover.SQLFence{}}
}

const shortestPause = 5 * time.Millisecond

func (l *loop) runs(t *task) {
	for {
		l.turns = 0
		next := l.pass(t)
		l.await(t, max(next, shortestPause))
	}
}

const lateTurn = 250 * time.Millisecond

// await is loop.await: a turn that this process missed because it stood still is left out.
func (l *loop) await(t *task, d time.Duration) {
	due := l.r.mono() + d
	if l.sleep(t, d) || l.turns == 0 || l.r.mono()-due < lateTurn {
		return
	}
	l.r.w.count("turn left out")
	l.sleep(t, l.turn(l.turns))
}

// sleep is true if something woke the loop.
func (l *loop) sleep(t *task, d time.Duration) bool {
	woken := &promise{w: l.r.w}
	l.wake = woken.fulfil
	return t.await(woken, d)
}

// wakeUp is what the informer does when the controller has noted something of the sites' data. It is late, or lost, as long as the API
// server is out of reach.
func (l *loop) wakeUp() {
	if w := l.r.w; l.wake != nil && !w.api.away && w.reaches(w.api.host, l.r.host) {
		l.wake()
	}
}

// pass is loop.pass: gather, decide, persist, perform, report.
func (l *loop) pass(t *task) time.Duration {
	w := l.r.w
	l.refresh()
	if !l.load(t) {
		return time.Second
	}
	l.looked = l.r.wall()
	snapshot := l.gather(t)
	w.polls++
	decision := failover.Decide(snapshot, l.memory)
	l.memory = decision.Memory
	w.truth.decided(l, snapshot, decision)
	l.publish(snapshot, decision)
	failed := l.carryOut(t, snapshot, decision)
	l.report(t, snapshot, decision, failed)
	return l.next(decision, snapshot.Policy, failed)
}

// refresh is the informers' cache: it follows the API server while it is in reach, and is old otherwise.
func (l *loop) refresh() {
	w := l.r.w
	first := l.cache.version == 0
	if first || !w.api.away && w.reaches(w.api.host, l.r.host) && w.chance(0.9) {
		l.cache, l.pods, l.ended = w.api.group, w.api.view(), w.api.ended[l.r.endsFrom:]
	}
}

// carryOut is loop.carryOut.
func (l *loop) carryOut(t *task, s failover.Snapshot, d failover.Decision) error {
	var unwritten error
	if d.Persist {
		detached := l.detachBeside(d)
		unwritten = l.persist(t, d)
		t.await(detached, forever)
	}
	l.unwritten = unwritten != nil
	if l.unwritten && !l.loaded {
		l.state(s, l.durable, true)
		return unwritten
	}
	l.state(s, d.Status, d.Hold)
	return errors.Join(unwritten, l.perform(t, s, d))
}

// state is loop.state: it replaces the statement that stands.
func (l *loop) state(s failover.Snapshot, durable failover.Durable, hold bool) {
	if durable.Epoch == 0 {
		return
	}
	uids := map[string]string{}
	for _, site := range s.Sites {
		if l.durable.Noted(site.Name, site.Pod.UID) {
			uids[site.Name] = site.Pod.UID
		}
	}
	l.authority.Set(wire.Statement{
		Namespace: namespace, Group: group, ActiveSite: durable.ActiveSite, Epoch: durable.Epoch, Hold: hold,
		LeaseTimeoutMillis: s.Policy.LeaseTimeout.Milliseconds(), Windows: l.r.work.windows(l.r.wall()),
	}, uids, l.r.wall())
}

// turn is how long it is until the group's own moment of the interval.
func (l *loop) turn(interval time.Duration) time.Duration {
	return interval - time.Duration(l.r.wall().UnixNano()-int64(l.r.w.moment))%interval
}

// next is loop.next. In a world that is crowded many other groups use up the extra polls.
func (l *loop) next(d failover.Decision, p failover.Policy, failed error) time.Duration {
	if errors.Is(failed, errOvertaken) || errors.Is(failed, errConflict) {
		return 0
	}
	next := l.turn(p.PollInterval)
	switch {
	case d.Topology == failover.TopologyHealthy && d.Next == 0 && failed == nil:
		l.turns = p.PollInterval
	case d.Topology != failover.TopologyHealthy && next > p.PollInterval/4 && (!l.r.w.crowded || l.r.w.chance(0.1)):
		next = p.PollInterval / 4
	}
	if d.Next > 0 && failed == nil {
		next = min(next, d.Next)
	}
	return next
}

func (l *loop) publish(s failover.Snapshot, d failover.Decision) {
	active, _ := s.Site(s.Status.ActiveSite)
	f := &facts{snapshot: s, decision: d, open: s.Status.Transition == nil && active.Writable(), pods: map[string]*pod{}}
	for _, site := range s.Sites {
		if k := l.links[site.Name]; k != nil && site.Pod.Exists && k.pod != nil {
			f.pods[site.Name] = k.pod
		}
	}
	l.facts = f
}
