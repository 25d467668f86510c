// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// scenarios is every scripted schedule.
func scenarios() []scenario {
	return slices.Concat(leaseScenarios, openingScenarios, volumeScenarios, stallScenarios, runScenarios, keptScenarios, strangerScenarios)
}

// leaseScenarios: site a is cut off and stays open until its lease runs out; nobody may be opened before.
var leaseScenarios = []scenario{
	{name: "the sidecar stands still and its site is cut off", script: oneGuardLeft},
	{name: "lease answered by the operator", script: func(w *world) {
		// Its peers have not answered it for long, so that all rests on when the operator did.
		w.fromPeers(0)
		w.after(30*time.Second, func() {
			w.reached("a is cut off")
			w.fromOperators()
			w.isolate(w.sites[0])
		})
	}},
	{name: "lease answered by peers", script: func(w *world) {
		// The operator has not answered it for long; its peers did, until they heard of the next epoch.
		resume := w.pause()
		w.fromOperators()
		w.after(18*time.Second, resume)
		w.when(w.epoch(2), func() {
			w.reached("a is cut off from its peers too")
			w.isolate(w.sites[0])
		})
	}},
	{name: "lease answered by a peer that is gone", script: func(w *world) {
		resume := w.pause()
		w.fromOperators()
		w.cut([]*node{w.sites[0].host}, []*node{w.sites[1].host})
		w.after(18*time.Second, func() {
			w.reached("c, which alone kept the lease of a, is gone")
			c := w.sites[2].host
			w.isolate(w.sites[0])
			w.powerOff(c)
			c.tainted = true
			resume()
		})
	}},
	{name: "lease kept by a peer that is cut off too", script: func(w *world) {
		w.reached("a and b are cut off from the rest")
		some := []*node{w.sites[0].host, w.sites[1].host}
		w.cut(some, w.except(some...))
	}},
	{name: "new site that never starts", shape: func(w *world) { w.addLast() }, script: func(w *world) {
		if w.api.group.durable.ActiveSite != "a" {
			return // a was so slow to start that b is active: nothing has to move
		}
		w.reached("a dies; c is new, and its pod does not start")
		w.powerOff(w.sites[0].host)
		began := w.api.group.durable.Epoch
		w.after(w.policy.lease+40*time.Second, func() {
			if d := w.api.group.durable; d.Epoch == began || d.Transition != nil {
				w.fail("live", "b does not take over beside a new site that never starts")
			}
		})
	}},
	{name: "new site that starts in the middle of a failover", shape: func(w *world) { w.addLast() }, script: func(w *world) {
		w.isolate(w.sites[0])
		w.when(w.epoch(2), func() {
			w.reached("c, which is new, starts while the lease of a runs out")
			w.sites[2].noStart = false
		})
	}},
	{name: "lease kept by a site that was new", shape: func(w *world) { w.addLast() }, script: func(w *world) {
		// It has its data, and the pods of the others are replaced, which are told of it then. It and the active site are cut off together.
		w.sites[2].noStart = false
		w.when(func() bool { return w.api.group.provisioned["c"] && !w.api.group.unlisted["c"] }, func() {
			w.stopPod(w.podAt(w.sites[0]))
			w.after(15*time.Second, func() {
				some := []*node{w.sites[0].host, w.sites[2].host}
				if w.api.group.durable.ActiveSite != "a" {
					some[0] = w.sites[1].host
				}
				w.reached("c keeps the lease of the active site")
				w.cut(some, w.except(some...))
			})
		})
	}},
	{name: "lease answered by an earlier leader", shape: func(w *world) { w.policy.threshold = 1 }, script: func(w *world) {
		w.fromPeers(0)
		w.after(20*time.Second, func() {
			w.reached("a is cut off, and its leader is gone")
			w.isolate(w.sites[0])
			w.leader().crash()
		})
	}},
	{name: "lease that ends in a slow fence", shape: func(w *world) { w.policy.fenceTimeout = 2 * time.Second }, script: func(w *world) {
		w.isolate(w.sites[0])
		w.after(12*time.Second, func() {
			if m := w.server(0); m != nil {
				w.reached("a answers no SQL while its lease ends")
				m.stuck = w.now + time.Minute
			}
		})
	}},
	{name: "lease that a fast clock counts", shape: fastOperators, script: func(w *world) {
		w.isolate(w.sites[0])
		w.after(12*time.Second, func() {
			if m := w.server(0); m != nil {
				w.reached("a answers no SQL while its lease ends, and a time service makes the operators' clocks faster")
				m.stuck = w.now + time.Minute
			}
		})
	}},
	{name: "lease that a fast clock counts, and a sidecar that hangs", shape: fastOperators, script: oneGuardLeft},
	{name: "lease that was longer", shape: func(w *world) { w.policy.lease = 30 * time.Second }, script: func(w *world) {
		w.reached("a is cut off and the lease is made shorter")
		w.isolate(w.sites[0])
		w.policy.lease = 15 * time.Second
	}},
	{name: "lease and old answers", script: func(w *world) {
		w.replaying = true
		w.replay()
		w.reached("a is cut off from all but somebody who answers with what was said")
		w.isolate(w.sites[0])
		w.after(60*time.Second, func() { w.replaying = false })
	}},
	{name: "lease over an epoch that was missed", script: func(w *world) {
		w.api.change(func(o *object) { o.plannedTo = w.sites[1].name })
		w.when(w.epoch(2), func() {
			mend := w.isolate(w.sites[0])
			w.api.change(func(o *object) { o.abort = true })
			w.when(w.epoch(3), func() {
				w.reached("a is named again and has missed an epoch")
				mend()
			})
		})
	}}}

// fastOperators makes the clocks of the operators' machines as fast as a time service may (chrony, by a twelfth), by the clock of site a.
func fastOperators(w *world) {
	w.policy.fenceTimeout = 2 * time.Second
	for _, host := range w.operatorHosts() {
		host.clock.rate = w.sites[0].host.clock.rate * 13 / 12
	}
}

// oneGuardLeft: only clients reach site a, and no kubelet ends it: its supervisor is the one guard that is left.
func oneGuardLeft(w *world) {
	p := w.podAt(w.sites[0])
	if p == nil || p.sidecar == nil || !p.mysqld.running() {
		return
	}
	w.reached("the sidecar of a stands still")
	p.sidecar.freeze()
	p.host.kubelet = false
	w.isolate(w.sites[0])
	w.ends = append(w.ends, func() {
		p.host.kubelet = true
		p.sidecar.guardedSince = w.now
		p.sidecar.thaw()
	})
}
