// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// volumeScenarios: the volume of site a is replaced while its old pod still runs and is open, cut off from everybody.
var volumeScenarios = []scenario{
	{name: "replaced volume that acknowledges", script: func(w *world) { w.replaceUnder() }},
	{name: "replaced volume whose pod ends", script: func(w *world) {
		old := w.podAt(w.sites[0])
		w.replaceUnder()
		w.when(func() bool {
			p := w.podAt(w.sites[0])
			return p != nil && p != old && p.hasIP && p.bootstrapped && p.vol != old.vol
		}, func() {
			p := w.podAt(w.sites[0])
			w.endPod(p)
			p.phase, p.hasIP = failed, false
			w.ends = append(w.ends, func() { w.deletePod(p) })
		})
	}},
	{name: "replaced volume and a shorter lease", shape: func(w *world) { w.policy.lease = 30 * time.Second }, script: func(w *world) {
		w.policy.lease = 15 * time.Second
		w.replaceUnder()
	}},
	{name: "replaced volume and an operator that restarts", script: func(w *world) {
		w.replaceUnder()
		w.after(8*time.Second, func() { w.leader().crash() })
	}},
}

// replaceUnder deletes the pod of site a by force, and its claim; what runs is cut off and runs on.
func (w *world) replaceUnder() {
	s := w.sites[0]
	p := w.podAt(s)
	if p == nil || w.servers >= maxServers {
		return
	}
	w.reached("the volume of %s is replaced", s.name)
	w.isolate(w.sites[0])
	host := p.host
	host.kubelet = false
	w.ends = append(w.ends, func() { host.kubelet = true })
	s.host = w.nodes[len(w.nodes)-1]
	w.moved = true
	s.vol = w.newVolume(s)
	w.deletePod(p)
}
