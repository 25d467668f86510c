// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// runScenarios: a pod is deleted by force and runs on behind a cut, while its volume is attached to another machine and another pod of
// the site begins there. What the new one says is no word of the old one.
var runScenarios = []scenario{
	{name: "a voucher deleted by force acknowledges elsewhere", script: func(w *world) {
		w.reached("a and c are cut off together, and c begins anew elsewhere")
		w.behind(0, 2)
		w.moves(2)
	}},
	{name: "a voucher deleted by force, and an operator that restarts", script: func(w *world) {
		w.behind(0, 2)
		w.moves(2)
		w.after(1500*time.Millisecond, func() {
			w.reached("the operator restarts before the new pod of c answers")
			w.leader().crash()
		})
	}},
	{name: "an active site deleted by force reports elsewhere", script: func(w *world) {
		w.reached("a is cut off, open, and begins anew elsewhere")
		w.isolate(w.sites[0])
		w.moves(0)
	}},
	{name: "an active site deleted by force that its peers reach", script: func(w *world) {
		// They keep its lease alive under the present epoch, and tell it of the next.
		w.reached("a is cut off from the operator alone, and begins anew elsewhere")
		w.fromOperators()
		w.cut([]*node{w.api.host}, []*node{w.sites[0].host})
		w.moves(0)
	}},
	{name: "an active site deleted by force while it is opened", script: func(w *world) {
		w.api.change(func(o *object) { o.plannedTo = w.sites[1].name })
		w.when(func() bool { return w.truth.newest.site == w.sites[1].name && w.api.group.durable.Transition != nil }, func() {
			w.reached("b was opened and is cut off before that was seen, and begins anew elsewhere")
			w.isolate(w.sites[1])
			w.moves(1)
		})
	}},
	{name: "a pod deleted by force whose successor ends", script: func(w *world) {
		w.isolate(w.sites[0])
		old := w.podAt(w.sites[0])
		w.moves(0)
		w.when(func() bool {
			p := w.podAt(w.sites[0])
			return p != nil && p != old && p.sidecar != nil && p.sidecar.serving
		}, func() {
			w.after(3*time.Second, func() {
				w.reached("the new pod of a is evicted")
				p := w.podAt(w.sites[0])
				w.endPod(p)
				p.phase, p.hasIP = failed, false
				w.ends = append(w.ends, func() { w.deletePod(p) })
			})
		})
	}},
}

// behind cuts sites off from all others, together.
func (w *world) behind(sites ...int) {
	var some []*node
	for _, i := range sites {
		some = append(some, w.sites[i].host)
	}
	w.cut(some, w.except(some...))
}

// moves deletes the pod of a site by force and attaches its volume to another machine; what runs goes on.
func (w *world) moves(site int) {
	s := w.sites[site]
	p := w.podAt(s)
	if p == nil {
		return
	}
	host := p.host
	host.kubelet = false
	w.ends = append(w.ends, func() { host.kubelet = true })
	w.detach(s, p, w.nodes[len(w.nodes)-1])
}
