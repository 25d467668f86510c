// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// patience is how long a site may take to answer in this poll.
func (l *loop) patience(site string) time.Duration {
	return l.durable.Transition.Patience(site, l.silent[site], l.r.wall(), l.policy())
}

// asked is what one site answers in one poll.
type asked struct {
	pushed, queried promise
	report          wire.Report
	answered        bool
	status          mysqlStatus
	direct          bool
	late            bool
	at              time.Time
}

// gather is monitor/gather.go: every site is asked at once, and nobody is waited for longer than failover.AskTimeout.
func (l *loop) gather(t *task) failover.Snapshot {
	w := l.r.w
	pods := l.podsOf()
	s := failover.Snapshot{Policy: l.policy(), Status: l.durable, Sites: l.sitesOf(pods)}
	questions := make([]*asked, len(s.Sites))
	for i := range s.Sites {
		site := &s.Sites[i]
		site.Busy = l.r.work.busy(site.Name)
		site.Pod = l.evidence(site.Name, pods[site.Name])
		site.Leaving = w.siteOf(site.Name).leaving
		questions[i] = l.ask(site.Name, pods[site.Name])
	}
	s.Nodes, s.EndedPods = l.nodes()
	began := w.now
	for i, q := range questions {
		deadline := began + l.r.host.clock.real(l.patience(s.Sites[i].Name))
		for _, f := range []*promise{&q.pushed, &q.queried} {
			t.await(f, max(0, l.r.host.clock.local(deadline-w.now)))
		}
		q.late = true
		l.takeAnswers(&s.Sites[i], q)
	}
	l.silent = map[string]bool{}
	for _, site := range s.Sites {
		l.silent[site.Name] = !site.Reachable()
	}
	names := make([]string, 0, len(s.Sites))
	for _, site := range s.Sites {
		names = append(names, site.Name)
	}
	l.authority.SetSites(names)
	l.takeFences()
	s.Answered, s.Permitted = l.authority.Answered(names)
	s.Renewed = l.authority.Renewed(names)
	s.LeaderSince = l.started
	if thawed := l.r.pulse.ThawedAt(l.r.wall()); thawed.After(s.LeaderSince) {
		s.LeaderSince = thawed
	}
	s.Now = l.r.wall()
	return s
}

func (l *loop) takeAnswers(site *failover.Site, q *asked) {
	if q.answered {
		site.Sidecar = failover.Sidecar{Answered: true, Report: q.report, At: q.at}
		known := l.cache.volumes[site.Name]
		site.OtherVolume = known != "" && q.report.VolumeID != "" && q.report.VolumeID != known
		site.Unnoted = known == "" && q.report.VolumeID != ""
		site.Noted = known != "" && q.report.VolumeID == known
	}
	delete(l.seen, site.Name)
	if q.direct {
		l.seen[site.Name] = q.status.executed.union(q.status.retrieved)
		l.told[site.Name] = q.status.executed
	}
	site.MySQL = l.merge(q, site.Sidecar)
	site.MySQL.ReplicaOf = site.MySQL.ReplicaHost
}

// ask is loop.ask with push and query side by side.
func (l *loop) ask(name string, pods []podView) *asked {
	q := &asked{}
	q.pushed.w, q.queried.w = l.r.w, l.r.w
	k := l.links[name]
	if k == nil {
		k = &link{}
		l.links[name] = k
	}
	if len(pods) == 0 || !pods[0].hasIP {
		k.pod = nil
		q.pushed.done, q.queried.done = true, true
		return q
	}
	k.pod = pods[0].pod
	l.push(k.pod, &q.pushed, func(r wire.Report) {
		if !q.late {
			q.report, q.answered, q.at = r, true, l.r.wall()
		}
	})
	l.sqlAsync(k.pod, &q.queried, func(m *mysqld) {
		status := m.status()
		q.queried.then = func() {
			if !q.late {
				q.status, q.direct = status, true
			}
		}
	})
	return q
}

// push sends the statement that stands to a sidecar, which carries it out although nobody may wait any more.
func (l *loop) push(p *pod, done *promise, answer func(wire.Report)) {
	w := l.r.w
	signed, err := l.authority.Sign(l.r.wall())
	if err != nil {
		signed = ""
	}
	w.send(l.r.host, p.host, func() {
		s := p.sidecar
		if s == nil || s.dead || !s.serving {
			w.send(p.host, l.r.host, func() { l.r.do(done.fulfil) })
			return
		}
		s.do(func() {
			s.spawn(func(t *task) {
				r := s.put(t, signed)
				w.send(p.host, l.r.host, func() {
					l.r.do(func() {
						answer(r)
						done.fulfil()
					})
				})
			})
		})
	})
}

// sqlAsync is one query of the operator that waits for nothing inside the server.
func (l *loop) sqlAsync(p *pod, done *promise, run func(*mysqld)) {
	w := l.r.w
	w.send(l.r.host, p.host, func() {
		m := p.mysqld
		back := func(then func()) {
			w.send(p.host, l.r.host, func() {
				l.r.do(func() {
					if then != nil {
						then()
					}
					done.fulfil()
				})
			})
		}
		if !m.running() || !m.serving {
			back(nil)
			return
		}
		m.after(m.delay(), func() {
			run(m)
			back(done.then)
		})
	})
}

// merge joins both witnesses.
func (l *loop) merge(q *asked, sidecar failover.Sidecar) failover.MySQL {
	r := sidecar.Report
	if !q.direct {
		if !sidecar.Answered || !r.Answered {
			return failover.MySQL{}
		}
		executed, err := gtid.Parse(r.GTIDExecuted)
		if err != nil {
			return failover.MySQL{}
		}
		return failover.MySQL{SuperReadOnly: r.SuperReadOnly, ReadOnly: !r.Writable, Executed: executed,
			OfflineMode: r.OfflineMode, ServerUUID: r.ServerUUID}
	}
	seen, sets := q.status, l.r.w.sets
	out := failover.MySQL{
		Direct: true, ServerUUID: uuidOf(seen.server), ReadOnly: seen.readOnly, SuperReadOnly: seen.superReadOnly,
		OfflineMode: seen.offline, Executed: sets.of(seen.executed).set, Purged: sets.of(seen.purged).set,
		Retrieved: sets.of(seen.retrieved).set, Cloning: seen.cloning, HalfCloned: seen.clone == cloneRuns || seen.clone == cloneFailed,
	}
	if seen.channel {
		out.ReplicaHost, out.IORunning, out.SQLRunning = seen.source, seen.ioRunning, seen.sqlRunning
		out.ReceiverStopped = !seen.ioRunning && !seen.ioConnecting
		out.IOErrno, out.SQLError = seen.ioErrno, seen.sqlError
		if seen.lagKnown {
			lag := seen.lag
			out.LagSeconds = &lag
		}
	}
	return out
}

// podsOf returns the pods of each site as the cache has them, the newest first.
func (l *loop) podsOf() map[string][]podView {
	all := map[string][]podView{}
	for _, p := range l.pods {
		site := p.pod.site.name
		if p.hasIP && len(all[site]) > 0 && !all[site][0].hasIP {
			all[site] = slices.Insert(all[site], 0, p) // the one that holds the volume comes first
			continue
		}
		all[site] = append(all[site], p)
	}
	return all
}

// sitesOf lists the sites of the spec, and those that left it and may still run.
func (l *loop) sitesOf(pods map[string][]podView) []failover.Site {
	var sites []failover.Site
	for _, s := range l.r.w.sites {
		site := failover.Site{Name: s.name, Provisioned: l.cache.provisioned[s.name], Unlisted: l.cache.unlisted[s.name], Listed: listed(s, pods), KeptFenced: l.cache.kept[s.name]}
		_, known := l.cache.provisioned[s.name]
		from := l.durable.Transition != nil && l.durable.Transition.From == s.name
		switch {
		case !s.removed:
			site.Role, site.Priority = v1alpha1.PrimaryCandidate, s.priority
			if s.drOnly {
				site.Role = v1alpha1.DROnly
			}
		case known || len(pods[s.name]) > 0 || from:
			site.Removed = true
		default:
			continue
		}
		sites = append(sites, site)
	}
	slices.SortFunc(sites, func(a, b failover.Site) int { return strings.Compare(a.Name, b.Name) })
	return sites
}

// listed is true if the pod of another site was told of this one.
func listed(s *site, pods map[string][]podView) bool {
	for other, of := range pods {
		if other != s.name && slices.ContainsFunc(of, func(p podView) bool { return p.pod.knows(s) }) {
			return true
		}
	}
	return false
}

// evidence is what Kubernetes proves about a site.
func (l *loop) evidence(name string, pods []podView) failover.Pod {
	w := l.r.w
	out := failover.Pod{Exists: len(pods) > 0, Node: l.cache.nodes[name]}
	if len(pods) > 0 {
		p := pods[0].pod
		out.Name, out.UID, out.Lease = p.uid, p.uid, p.lease+w.policy.fenceTimeout
		out.Node = cmp.Or(out.Node, p.host.name)
	}
	if len(pods) == 1 && pods[0].phase == failed && pods[0].bootstrap {
		out.Ended = w.nodeReady(pods[0].pod.host)
	}
	for _, p := range slices.Backward(l.pods) {
		if p.pod.site.name == name {
			host := p.pod.host
			out.Runs = append(out.Runs, failover.SeenRun{UID: p.pod.uid, Node: host.name, Machine: host.name, Lease: p.pod.lease + w.policy.fenceTimeout,
				Started: p.bootstrap, Ended: p.phase == failed && w.nodeReady(host)})
		}
	}
	for _, n := range w.nodes {
		out.OutOfService = out.OutOfService || n.name == out.Node && n.tainted
	}
	return out
}

// nodes is what Kubernetes shows of machines, and of pods that are gone.
func (l *loop) nodes() (map[string]failover.Node, map[string]bool) {
	nodes, ended := map[string]failover.Node{}, map[string]bool{}
	for _, n := range l.r.w.nodes {
		nodes[n.name] = failover.Node{Machine: n.name, Ready: l.r.w.nodeReady(n), OutOfService: n.tainted}
	}
	for _, uid := range l.ended {
		ended[uid] = true
	}
	return nodes, ended
}

func (l *loop) policy() failover.Policy {
	p := l.r.w.policy
	return failover.Policy{
		Mode: p.mode, PollInterval: p.poll, Threshold: p.threshold, CrashGrace: p.crashGrace, Cooldown: p.cooldown, StallTimeout: p.stall,
		DrainTimeout: p.drainTimeout, LeaseTimeout: p.lease, FenceTimeout: p.fenceTimeout, MaxLost: l.cache.maxLost, ForceTo: l.cache.forceTo,
		PlannedTo: l.cache.plannedTo, AbortPlanned: l.cache.abort, PausedUntil: l.cache.pausedUntil,
		PlannedLagTimeout: p.plannedLag, PlannedPauseTimeout: p.plannedPause,
	}
}
