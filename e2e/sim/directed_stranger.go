// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// strangerScenarios: somebody without rights pushes what was signed under the present epoch, as fast as a sidecar takes it. It must
// neither keep a site shut nor end a window (I3).
var strangerScenarios = []scenario{
	{name: "a stranger who pushes that nothing may open", script: func(w *world) {
		if w.api.group.durable.ActiveSite != "a" {
			return
		}
		w.pushes(0, time.Millisecond, 8*time.Second, func(st *wire.Statement) { st.Hold = true })
		w.after(100*time.Millisecond, func() {
			w.reached("a restarts while a stranger tells it to stay shut")
			w.restartActive()
			m := w.server(0)
			w.when(func() bool { next := w.server(0); return next != m && next.running() && next.serving }, func() {
				w.after(5*time.Second, func() {
					if m := w.server(0); m.running() && !m.accepts() && w.api.group.durable.ActiveSite == "a" {
						w.fail("live", "a stranger keeps a shut")
					}
				})
			})
		})
	}},
	{name: "a stranger who pushes that there is no window", script: func(w *world) {
		// b misses what a purges, so it is cloned again, in a window.
		if w.api.group.durable.ActiveSite != "a" {
			return
		}
		mend := w.isolate(w.sites[1])
		w.after(5*time.Second, func() {
			if m := w.server(0); m.running() {
				m.vol.purged = m.vol.executed
			}
			mend()
		})
		inWindow := func() bool {
			p := w.podAt(w.sites[1])
			if p == nil || p.sidecar == nil || p.sidecar.dead {
				return false
			}
			_, open := p.sidecar.state.Newest().WindowFor("b", p.sidecar.wall())
			return open
		}
		w.when(inWindow, func() {
			w.reached("b is about to be cloned in a window that a stranger knows nothing of")
			closed := w.stats.named["fence WindowOver"]
			w.pushes(1, 20*time.Millisecond, 20*time.Second, func(st *wire.Statement) { st.Windows = nil })
			w.after(20*time.Second, func() {
				if w.stats.named["fence WindowOver"] > closed {
					w.fail("live", "a stranger ends the window of b")
				}
			})
		})
	}},
}

// pushes is a stranger who sends a site what was signed under the epoch that it knows, but for what change says, again and again.
func (w *world) pushes(site int, every, long time.Duration, change func(*wire.Statement)) {
	if long <= 0 || w.healed {
		return
	}
	if p := w.podAt(w.sites[site]); p != nil && p.sidecar != nil && !p.sidecar.dead && p.sidecar.serving {
		if st := p.sidecar.state.Newest(); st.Epoch > 0 {
			st.Nonce = ""
			change(&st)
			signed := w.sign(st)
			p.sidecar.do(func() { p.sidecar.spawn(func(t *task) { p.sidecar.put(t, signed) }) })
		}
	}
	w.after(every, func() { w.pushes(site, every, long-every, change) })
}
