// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// openingScenarios: what happens between an answer that permits a site to open and its last statement, and what a site
// holds by then.
var openingScenarios = []scenario{
	{name: "opening that hangs while the role moves", shape: func(w *world) { w.policy.poll = time.Second }, script: func(w *world) {
		w.restartActive()
		w.when(func() bool {
			p := w.podAt(w.sites[0])
			return p != nil && p.sidecar != nil && p.sidecar.state.Open() && p.mysqld.running() && p.mysqld.serving && p.mysqld.readOnly
		}, func() {
			// The port of its sidecar is blocked; its MySQL, which hangs a moment, and its questions are not.
			p := w.podAt(w.sites[0])
			w.reached("the role is moved while a is being opened")
			p.sidecar.serving = false
			p.mysqld.hang = 1200 * time.Millisecond
			w.orders()
		})
	}},
	{name: "sidecar that dies while its opening hangs", shape: func(w *world) { w.policy.poll = time.Second }, script: func(w *world) {
		w.hangOpenings = true
		w.ends = append(w.ends, func() { w.hangOpenings = false })
		w.restartActive()
		var wait func()
		wait = func() {
			w.when(func() bool { m := w.server(0); return m.running() && m.opensToCome > 0 }, func() {
				w.after(w.between(50*time.Millisecond, 900*time.Millisecond), func() {
					p := w.podAt(w.sites[0])
					if p == nil || !p.mysqld.running() || p.mysqld.opensToCome == 0 || p.sidecar.dead {
						wait()
						return
					}
					w.reached("the sidecar of a dies, and the role is moved")
					p.sidecar.kill()
					w.orders()
				})
			})
		}
		wait()
	}},
	{name: "opening on slow SQL while the role moves", shape: func(w *world) { w.policy.poll = time.Second }, script: func(w *world) {
		w.restartActive()
		w.when(func() bool {
			m := w.server(0)
			return m.running() && m.serving && !w.podAt(w.sites[0]).sidecar.state.Newest().Hold
		}, func() {
			w.slow(0, 450*time.Millisecond)
			w.after(w.between(0, 1500*time.Millisecond), func() {
				w.reached("the role is moved while a waits to be opened")
				w.orders()
			})
		})
	}},
	{name: "restarts on slow SQL", script: func(w *world) {
		var again func()
		again = func() {
			if w.healed {
				return
			}
			if m := w.server(0); m.running() && m.serving {
				w.reached("a restarts")
				w.restartActive()
				w.when(func() bool { m := w.server(0); return m.running() && m.serving }, func() {
					w.slow(0, w.between(590*time.Millisecond, 640*time.Millisecond))
				})
			}
			w.after(w.between(8*time.Second, 14*time.Second), again)
		}
		again()
	}},
	{name: "active site that is cut off as it opens", script: func(w *world) {
		w.restartActive()
		w.when(func() bool { m := w.server(0); return m.running() && m.accepts() && m.openEpoch == 1 }, func() {
			w.reached("a was seen fenced a moment ago, and is open and alone")
			w.isolate(w.sites[0])
		})
	}},
	{name: "relay log that is not applied", script: func(w *world) {
		until := w.now + 25*time.Second
		var hold func()
		hold = func() {
			for _, i := range []int{1, 2} {
				if m := w.server(i); m != nil {
					m.applier, m.sqlError = false, "an error"
				}
			}
			if w.now < until {
				w.after(20*time.Millisecond, hold)
			}
		}
		hold()
		w.after(25*time.Second, func() {
			w.reached("a is down, and nobody has applied what it received")
			a := w.sites[0]
			a.noRestart = w.now + time.Hour
			w.restartActive()
			w.ends = append(w.ends, func() { a.noRestart = 0 })
			for _, i := range []int{1, 2} {
				if m := w.server(i); m != nil {
					m.sqlError, m.trickle = "", 1
					w.ends = append(w.ends, func() { m.trickle = 0 })
				}
			}
		})
	}},
	{name: "diverged site that is left alone", script: func(w *world) {
		if !w.tamper(w.server(1)) {
			return
		}
		w.after(25*time.Second, func() {
			w.reached("b has diverged, and nobody else is left")
			w.powerOff(w.sites[0].host)
			w.powerOff(w.sites[2].host)
		})
	}},
	{name: "replaced site that comes back alone", script: func(w *world) {
		mend := w.isolate(w.sites[0])
		w.when(func() bool { d := w.api.group.durable; return d.Epoch > 1 && d.Transition == nil }, func() {
			w.reached("a was replaced, and nobody else is left")
			w.powerOff(w.sites[1].host)
			w.powerOff(w.sites[2].host)
			mend()
		})
	}},
	{name: "target that leaves the spec", script: func(w *world) {
		w.isolate(w.sites[0])
		w.when(w.epoch(2), func() {
			w.reached("the target leaves the spec")
			w.siteOf(w.api.group.durable.ActiveSite).removed = true
		})
	}},
	{name: "site without the data that is left alone", script: func(w *world) {
		w.reached("b is to be provisioned anew, and nobody else is left")
		w.api.change(func(o *object) { o.provisioned = with(o.provisioned, "b", false) })
		w.powerOff(w.sites[0].host)
		w.powerOff(w.sites[2].host)
	}},
	{name: "candidate that has less than a dr-only site", drOnly: true,
		script: func(w *world) {
			w.cut([]*node{w.sites[0].host}, []*node{w.sites[1].host})
			w.after(3*time.Second, func() {
				w.reached("a dies, and only the dr-only site has all of it")
				w.powerOff(w.sites[0].host)
			})
		}},
}
