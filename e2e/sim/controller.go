// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// The controller's part in who holds the group's data, re-enacted: provisioning.go of operator/clone (Provision,
// provisionSite, markActive, takeResult), status.go of operator/controller (siteStatuses, writeStatus) and register.go of
// operator/work (the register of long work, which Busy and Windows read). clone.go holds the jobs.

// Of operator/work/register.go.
const (
	windowLength = 2 * time.Minute
	retryFirst   = 5 * time.Second
	retryRefused = 30 * time.Second
	retryLast    = 5 * time.Minute
)

type work struct {
	jobs map[string]*job
	// donor serves one clone at a time.
	donor lock
}

type job struct {
	running, busy, window, taken bool

	outcome   *outcome
	failures  int
	notBefore time.Duration
}

// outcome is what came of a job.
type outcome struct {
	verdict int
	failed  bool
	volume  string
}

func (k *work) busy(site string) string {
	if j := k.jobs[site]; j != nil && j.busy {
		return "Clone"
	}
	return ""
}

func (k *work) windows(now time.Time) []wire.Window {
	var out []wire.Window
	for _, site := range siteNames {
		if j := k.jobs[site]; j != nil && j.window {
			out = append(out, wire.Window{Site: site, Purpose: wire.WindowClone, Deadline: now.Add(windowLength)})
		}
	}
	return out
}

// finish is Work.finish.
func (r *operatorRun) finish(j *job, o outcome) {
	j.running, j.window, j.outcome, j.taken = false, false, &o, false
	if o.verdict == adopts {
		return
	}
	j.busy = false
	wait := retryFirst
	switch {
	case o.failed:
		j.failures++
		wait = min(retryFirst<<min(j.failures, 10), retryLast)
	case o.verdict == refuses:
		wait = retryRefused
	}
	j.notBefore = r.mono() + wait
}

// scope is one reconcile: what status will say of every site.
type scope struct {
	facts       *facts
	status      object
	provisioned map[string]bool
	volumes     map[string]string
	nodes       map[string]string
	unlisted    map[string]bool
	persisted   []string
	paused      bool
}

func (r *operatorRun) control(t *task) {
	for {
		t.sleep(r.w.between(500*time.Millisecond, 1500*time.Millisecond))
		if r.loop.facts != nil {
			r.reconcile(t)
		}
	}
}

func (r *operatorRun) reconcile(t *task) {
	var status object
	if !r.w.api.call(t, func() { status = r.w.api.group }) {
		return
	}
	s := &scope{facts: r.loop.facts, status: status, provisioned: maps.Clone(status.provisioned), volumes: maps.Clone(status.volumes),
		nodes: maps.Clone(status.nodes), unlisted: map[string]bool{}, paused: r.wall().Before(status.pausedUntil)}
	pods := r.loop.podsOf()
	for _, site := range r.w.sites {
		if site.removed {
			continue
		}
		before := s.provisioned[site.name]
		r.takeResult(s, site.name)
		r.provisionSite(s, site, before)
		if status.unlisted[site.name] && !s.provisioned[site.name] && !listed(site, pods) { // unlisted.go
			s.unlisted[site.name] = true
		}
		if mine := pods[site.name]; len(mine) > 0 && mine[0].hasIP && s.holdsTheData(site.name, mine[0].pod) {
			s.nodes[site.name] = mine[0].pod.host.name
		}
	}
	if !r.writeSites(t, s) {
		return
	}
	for _, site := range s.persisted {
		switch j := r.work.jobs[site]; {
		case j == nil || j.outcome == nil:
		case j.outcome.verdict == adopts:
			delete(r.work.jobs, site)
		default:
			j.taken = true
		}
	}
}

// holdsTheData is status.go's: a pod on another volume than the one that was noted says nothing of where that one is.
func (s *scope) holdsTheData(site string, p *pod) bool {
	seen, _ := s.facts.snapshot.Site(site)
	noted := s.volumes[site]
	return noted == "" || seen.Pod.UID == p.uid && seen.Sidecar.Report.VolumeID == noted
}

// writeSites writes the controller's part of the status of every site, unless somebody has written since it was read.
func (r *operatorRun) writeSites(t *task, s *scope) bool {
	if maps.Equal(s.provisioned, s.status.provisioned) && maps.Equal(s.volumes, s.status.volumes) && maps.Equal(s.nodes, s.status.nodes) && maps.Equal(s.unlisted, s.status.unlisted) {
		return true
	}
	written := false
	return r.w.api.call(t, func() {
		if r.w.api.group.version != s.status.version {
			return
		}
		written = true
		r.w.api.change(func(o *object) {
			o.provisioned, o.volumes, o.nodes, o.unlisted = s.provisioned, s.volumes, s.nodes, s.unlisted
		})
		r.w.after(r.w.between(time.Millisecond, 50*time.Millisecond), r.loop.wakeUp)
		r.w.trace("the controller of %s writes provisioned=%v volumes=%v", r.o.name, s.provisioned, s.volumes)
	}) && written
}

func (r *operatorRun) provisionSite(s *scope, site *site, before bool) {
	name := site.name
	seen, _ := s.facts.snapshot.Site(name)
	volume := seen.Sidecar.Report.VolumeID
	replaced := s.volumes[name] != "" && volume != "" && s.volumes[name] != volume
	steady := s.facts.snapshot.Status.ActiveSite == s.status.durable.ActiveSite && s.status.durable.Transition == nil
	switch {
	case name == s.status.durable.ActiveSite:
		if t := s.status.durable.Transition; t != nil && t.To == name && t.GatePassedAt.IsZero() && !s.provisioned[name] &&
			(t.Kind == v1alpha1.FailoverBootstrap || s.volumes[name] == "") { // neverOpened
			if volume != "" && s.facts.snapshot.Status.ActiveSite == name {
				s.volumes[name] = volume
			}
			return
		}
		if replaced || !s.facts.open || s.facts.snapshot.Status.ActiveSite != name {
			return
		}
		s.provisioned[name] = true
		if s.volumes[name] == "" {
			s.volumes[name] = volume
		}
	case before && s.provisioned[name] && replaced:
		s.provisioned[name] = false
	case before && steady && s.facts.stranded(name) && !s.paused:
		s.provisioned[name] = false
	case s.provisioned[name] && s.volumes[name] == "" && s.facts.following(name):
		s.volumes[name] = volume
	case !s.provisioned[name] && steady && s.facts.provisionable(name) && !s.paused:
		r.begin(site)
	}
}

// takeResult takes over what came of the last job on a site.
func (r *operatorRun) takeResult(s *scope, site string) {
	j := r.work.jobs[site]
	if j == nil || j.outcome == nil {
		return
	}
	if s.provisioned[site] && j.outcome.verdict != adopts {
		if !j.running {
			delete(r.work.jobs, site)
		}
		return
	}
	s.persisted = append(s.persisted, site)
	if j.outcome.verdict == adopts && !s.provisioned[site] {
		s.provisioned[site] = true
		if j.outcome.volume != "" {
			s.volumes[site] = j.outcome.volume
		}
	}
}

// following is SiteFacts.Following of operator/facts.go.
func (f *facts) following(site string) bool {
	seen, _ := f.snapshot.Site(site)
	return seen.MySQL.ReplicaOf == f.snapshot.Status.ActiveSite && seen.MySQL.IORunning && seen.MySQL.SQLRunning
}

func (f *facts) provisionable(site string) bool {
	seen, _ := f.snapshot.Site(site)
	active := f.snapshot.Status.ActiveSite
	for _, v := range f.decision.Views {
		if v.Name == site && v.State == v1alpha1.SiteDiverged {
			return false
		}
	}
	return f.open && site != active && seen.MySQL.Direct && !seen.Writable() && f.pods[site] != nil && f.pods[active] != nil
}

func (f *facts) stranded(site string) bool {
	seen, _ := f.snapshot.Site(site)
	active, _ := f.snapshot.Site(f.snapshot.Status.ActiveSite)
	if !f.provisionable(site) || !active.MySQL.Direct || f.following(site) || seen.MySQL.IOErrno == 0 || seen.MySQL.Cloning {
		return false
	}
	return active.MySQL.Executed.Contains(seen.All()) && !seen.All().Contains(active.MySQL.Purged)
}

// begin is provisioner.begin.
func (r *operatorRun) begin(site *site) {
	j := r.work.jobs[site.name]
	if j == nil {
		j = &job{}
		r.work.jobs[site.name] = j
	}
	if j.running || j.outcome != nil && !j.taken || r.mono() < j.notBefore {
		return
	}
	j.running = true
	r.spawn(func(t *task) {
		o := r.bring(t, &provisioning{r: r, site: site, j: j})
		if slices.Contains([]int{adopts, clones, reclones, refuses}, o.verdict) {
			r.w.trace("the job on %s ends: verdict %d, failed %v", site.name, o.verdict, o.failed)
		}
		r.finish(j, o)
	})
}
