// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/sidecar/watchdog"
)

// site is a site of the group.
type site struct {
	name     string
	index    int
	drOnly   bool
	priority int32
	// pods are all pods that ever ran for it and may still: also those whose object is gone.
	pods []*pod
	// vol is the volume that its claim is bound to, host the machine on which that volume is.
	vol  *volume
	host *node
	// noRestart is until when its mysqld cannot start.
	noRestart time.Duration
	// noStart: its pod cannot be started, for want of its image or its volume.
	noStart bool
	// failsToStart: its mysqld comes and goes, and never serves.
	failsToStart bool
	removed      bool
	// leaving is why the site is about to go, as the operator sees it.
	leaving  string
	tampered bool
}

type phase int

const (
	pending phase = iota
	running
	failed
)

// pod is a pod of a site, with its processes.
type pod struct {
	w    *world
	uid  string
	site *site
	host *node
	vol  *volume
	// lease is what its sidecar was started with, peers whom it was told of.
	lease time.Duration
	peers map[string]bool
	// escrowAt is from when on its keyring is in escrow, in a run with keyrings.
	escrowAt time.Duration

	hasIP        bool
	phase        phase
	bootstrapped bool
	// gone: its object was deleted; over: its processes have ended for good.
	gone, over bool

	sidecar    *sidecar
	mysqld     *mysqld
	restarting bool
	silentFrom time.Duration
	// deadline is what its supervisor was told, on the clock of the machine; watching is true while a look is due.
	deadline time.Duration
	watching bool
}

func (p *pod) String() string { return p.site.name + "/" + p.uid }

func (p *pod) knows(peer *site) bool { return p.peers[peer.name] }

// lockedBy is true if a mysqld holds the datadir: one of this pod, or of an older one on the same volume.
func (v *volume) lockedBy(*pod) bool { return v.holder != nil && v.holder.mysqld.running() }

// newPod creates the object; the kubelet does the rest.
func (w *world) newPod(s *site) {
	w.processes++
	p := &pod{w: w, uid: fmt.Sprintf("p%d", w.processes), site: s, host: s.host, vol: s.vol, lease: w.podLease(), peers: map[string]bool{}, escrowAt: w.escrowAfter()}
	for _, other := range w.sites {
		if !w.api.group.unlisted[other.name] {
			p.peers[other.name] = true
		}
	}
	s.pods = append(s.pods, p)
	w.api.pods = append(w.api.pods, p)
	w.trace("pod %s is created on %s, volume %s", p, p.host.name, p.vol.id)
	w.kubeletStarts(p)
}

// podLease is what a pod's sidecar is started with; the spec may change later.
func (w *world) podLease() time.Duration {
	return w.policy.lease
}

// kubeletStarts brings a pod up: bootstrap waits for the locks of the volume, so two pods never work on one.
func (w *world) kubeletStarts(p *pod) {
	w.after(w.between(500*time.Millisecond, 3*time.Second), func() {
		switch {
		case p.gone || p.over:
			return
		case p.site.noStart || !p.host.up || !p.host.kubelet || p.host.frozen || p.vol.holder != nil && p.vol.holder != p && !p.vol.holder.over:
			w.kubeletStarts(p)
			return
		}
		p.vol.holder = p
		p.hasIP, p.phase, p.bootstrapped = true, running, true
		w.startSidecar(p)
		w.restartMysqld(p)
	})
}

// restartMysqld is the supervisor, which is process 1 of the container: it starts mysqld again.
func (w *world) restartMysqld(p *pod) {
	if p.restarting {
		return
	}
	p.restarting = true
	w.after(w.between(200*time.Millisecond, 700*time.Millisecond), func() {
		p.restarting = false
		switch {
		case p.over || !p.host.up || p.phase == failed:
		case p.mysqld.running() || p.host.frozen || p.vol.stalled || p.site.noRestart > w.now:
			w.restartMysqld(p)
		default:
			w.startMysqld(p)
		}
	})
}

// endPod ends the processes of a pod for good, mysqld before the sidecar.
func (w *world) endPod(p *pod) {
	if p.over {
		return
	}
	p.over = true
	if p.mysqld != nil {
		p.mysqld.end()
	}
	if p.sidecar != nil {
		p.sidecar.kill()
	}
	p.site.pods = slices.DeleteFunc(p.site.pods, func(other *pod) bool { return other == p })
	w.touched()
	w.trace("pod %s has ended", p)
}

// kubelets look after the processes: a sidecar that died is started again; a mysqld whose sidecar does not answer is
// ended by its own liveness probe; a pod without an object is ended.
func (w *world) kubelets() {
	for _, s := range w.sites {
		for _, p := range slices.Clone(s.pods) {
			if p.host.up && p.host.kubelet && !p.host.frozen {
				w.lookAfter(p)
			}
		}
	}
	w.truth.leases()
	w.after(w.between(400*time.Millisecond, 600*time.Millisecond), w.kubelets)
}

const (
	// probesFail is when the third probe in a row has failed, probeGrace what mysqld gets to end by itself.
	probesFail = 7 * time.Second
	probeGrace = 5 * time.Second
)

func (w *world) lookAfter(p *pod) {
	if p.gone && !p.over {
		w.endPod(p)
		return
	}
	if p.over || p.phase == failed || p.sidecar == nil {
		return
	}
	if !p.sidecar.dead && !p.sidecar.frozen {
		p.silentFrom = 0
		return
	}
	if p.silentFrom == 0 {
		p.silentFrom = w.now
	}
	if w.now-p.silentFrom > probesFail+probeGrace-time.Second && p.mysqld.running() {
		w.trace("kubelet ends %s, whose sidecar does not answer", p.mysqld)
		p.mysqld.end()
		w.restartMysqld(p)
		p.sidecar.kill()
	}
	if p.sidecar.dead && w.chance(0.2) {
		p.silentFrom = 0
		w.startSidecar(p)
	}
}

// heartbeats: what a kubelet said last counts for 40 s.
func (w *world) nodeReady(n *node) bool {
	if n.up && n.kubelet && !n.frozen && w.reaches(n, w.api.host) {
		n.readyUntil = w.now + 40*time.Second
	}
	return w.now < n.readyUntil
}

// deletePod deletes the object; by force it vanishes at once, whether or not the processes have ended. The Deployment
// creates another.
func (w *world) deletePod(p *pod) {
	if p.gone {
		return
	}
	p.gone = true
	if p.phase == failed {
		w.api.tellEnded(p)
	}
	w.api.pods = slices.DeleteFunc(w.api.pods, func(other *pod) bool { return other == p })
	w.after(w.between(100*time.Millisecond, 2*time.Second), func() { w.newPod(p.site) })
}

// stopPod deletes a pod the soft way: the sidecar fences, mysqld ends, then the object goes.
func (w *world) stopPod(p *pod) {
	if p.sidecar == nil || p.sidecar.dead {
		return
	}
	p.sidecar.spawn(p.sidecar.leave)
	w.after(w.between(300*time.Millisecond, 4*time.Second), func() {
		w.endPod(p)
		if w.reaches(p.host, w.api.host) {
			w.api.tellEnded(p)
		}
		w.deletePod(p)
	})
}

// powerOff ends everything on a machine at once; powerOn starts it again.
func (w *world) powerOff(n *node) {
	n.up, n.frozen = false, false
	for _, s := range w.sites {
		for _, p := range s.pods {
			if p.host == n {
				if p.mysqld != nil {
					p.mysqld.frozen = false
					p.mysqld.end()
				}
				w.loseRelayLog(p.vol)
				p.deadline = 0 // it lies in memory
				if p.sidecar != nil {
					p.sidecar.kill()
				}
			}
		}
	}
	for _, o := range w.operators {
		if o.host == n {
			o.crash()
		}
	}
	w.touched()
}

// loseRelayLog: sync_relay_log=10 lets a machine that loses its power forget the last events that were not applied yet.
func (w *world) loseRelayLog(v *volume) {
	budget := int32(w.rnd.IntN(4))
	for i := range v.retrieved {
		if n := min(budget, v.retrieved[i]-v.executed[i]); n > 0 {
			v.retrieved[i] -= n
			budget -= n
		}
	}
}

func (w *world) powerOn(n *node) {
	if n.up {
		return
	}
	n.up = true
	for _, s := range w.sites {
		for _, p := range s.pods {
			if p.host == n && !p.over && !p.gone && p.sidecar != nil && p.phase != failed {
				w.startSidecar(p)
				w.restartMysqld(p)
			}
		}
	}
	for _, o := range w.operators {
		if o.host == n {
			o.start()
		}
	}
}

// freezeNode stops a whole machine for a while, as a suspended hypervisor does.
func (w *world) freezeNode(n *node, frozen bool) {
	if !n.up || n.frozen == frozen {
		return
	}
	n.frozen = frozen
	if !frozen {
		n.thawed = w.now
	}
	each := func(p *process) {
		if frozen {
			p.freeze()
		} else {
			p.thaw()
		}
	}
	for _, p := range w.processesOn(n) {
		each(p)
	}
	if !frozen {
		w.superviseAll(n)
	}
	w.touched()
}

// superviseAll has the supervisors of a machine that goes on look at their deadlines.
func (w *world) superviseAll(n *node) {
	for _, s := range w.sites {
		for _, p := range s.pods {
			if p.host == n {
				w.after(w.between(0, watchdog.Interval), func() { w.supervise(p) })
			}
		}
	}
}

// processesOn lists what runs on a machine.
func (w *world) processesOn(n *node) []*process {
	var out []*process
	for _, s := range w.sites {
		for _, p := range s.pods {
			if p.host == n && p.sidecar != nil {
				out = append(out, &p.sidecar.process)
			}
			if p.host == n && p.mysqld != nil {
				out = append(out, &p.mysqld.process)
			}
		}
	}
	for _, o := range w.operators {
		if o.host == n && o.run != nil {
			out = append(out, &o.run.process)
		}
	}
	return out
}

// podAt is the pod that the name of a site leads to.
func (w *world) podAt(s *site) *pod {
	for i := len(s.pods) - 1; i >= 0; i-- {
		if p := s.pods[i]; p.hasIP && !p.over {
			return p
		}
	}
	return nil
}

// resolve is the pod that the name of a site leads to on a machine. One that is cut off from the API server goes on with what it knew.
func (w *world) resolve(from *node, s *site) *pod {
	if from.names == nil {
		from.names = map[*site]*pod{}
	}
	if known := from.names[s]; known == nil || known.over || !w.api.away && w.reaches(w.api.host, from) {
		from.names[s] = w.podAt(s)
	}
	return from.names[s]
}

// serverOf is the server that a replica reaches by the name of its source's site.
func (w *world) serverOf(name string) *mysqld {
	for _, s := range w.sites {
		if s.name == name {
			if p := w.podAt(s); p != nil {
				return p.mysqld
			}
		}
	}
	return nil
}
