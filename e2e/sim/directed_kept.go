// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// keptScenarios: a person keeps a site fenced that would take over, or be opened again (I29). What is ended at the end is that too, and the group
// must come to rest then.
var keptScenarios = []scenario{
	{name: "a site that is kept fenced, and the active site dies", script: func(w *world) {
		w.keepFenced(1)
		w.after(4*time.Second, func() {
			if w.api.group.durable.ActiveSite != "a" {
				return // it was slow to start, or its role has moved: what dies is no active site, or what is kept fenced is one
			}
			w.reached("a dies, and b is kept fenced")
			w.powerOff(w.sites[0].host)
			w.after(w.policy.lease+30*time.Second, func() { w.opened("c", "b") })
		})
	}},
	{name: "the only candidate is kept fenced, and a person orders it", drOnly: true, script: func(w *world) {
		w.keepFenced(1)
		w.after(4*time.Second, func() {
			if w.api.group.durable.ActiveSite != "a" {
				return // the same
			}
			w.reached("a dies, only b could take over, and b is ordered")
			w.powerOff(w.sites[0].host)
			w.orders()
			w.after(w.policy.lease+30*time.Second, func() { w.opened("", "b") })
		})
	}},
	{name: "the active site is kept fenced, and restarts", script: func(w *world) {
		w.keepFenced(0)
		w.after(4*time.Second, func() {
			if m := w.server(0); !m.running() || !m.accepts() {
				return // it was not open, or is not the active site
			}
			w.reached("a is open all the same, and restarts")
			w.restartActive()
			w.after(30*time.Second, func() { w.opened("", "a") })
		})
	}},
}

// keepFenced is a person who keeps a site fenced until all faults are over.
func (w *world) keepFenced(site int) {
	name := w.sites[site].name
	w.api.change(func(o *object) { o.kept = with(o.kept, name, true) })
	w.ends = append(w.ends, func() {
		w.api.change(func(o *object) { o.kept = without(o.kept, name) })
		w.api.change(func(o *object) { o.forceTo = "" })
	})
}

// opened holds that a site is open by now, if one is named, and that another is not.
func (w *world) opened(open, shut string) {
	if m := w.serverOf(open); open != "" && (!m.running() || !m.accepts()) {
		w.fail("live", "%s does not take over beside a site that is kept fenced", open)
	}
	if m := w.serverOf(shut); m.running() && m.accepts() {
		w.fail("I29", "%s is open, and a person keeps it fenced", shut)
	}
}
