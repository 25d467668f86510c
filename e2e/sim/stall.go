// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// A data volume that stalls, as with fsfreeze or a storage that is gone: commits hang, replicas apply nothing, the sidecar keeps nothing,
// and a mysqld that was killed ends only when the volume goes on.

func (w *world) stall(v *volume) func() {
	if v.stalled {
		return nil
	}
	v.stalled, v.stalledAt, v.failSave = true, w.now, true
	w.trace("volume %s stalls", v.id)
	w.count("a volume stalls")
	thaw := func() {
		if v.stalled {
			v.stalled, v.failSave = false, false
			w.trace("volume %s goes on", v.id)
		}
	}
	w.ends = append(w.ends, thaw)
	return thaw
}

// endThawed ends a server that was killed as soon as its volume goes on.
func (w *world) endThawed(m *mysqld) {
	switch {
	case m.dead:
	case m.vol.stalled:
		w.after(20*time.Millisecond, func() { w.endThawed(m) })
	default:
		m.end()
	}
}

// stalls has a volume stall in every thirteenth run.
func (w *world) stalls() {
	if w.seed%13 != 7 || directed != "" {
		return
	}
	w.at(time.Duration(20+w.seed%50)*time.Second, func() {
		if thaw := w.stall(w.someSite().vol); thaw != nil {
			w.after(w.between(5*time.Second, 100*time.Second), thaw)
		}
	})
}

// probed is sidecar/probe: what writing as a client does came to at an open site, and writing to the volume at any other.
func (s *sidecar) probed() (*wire.WriteProbe, *wire.VolumeProbe) {
	v := s.pod.vol
	outcome, reason := wire.WriteDone, ""
	if v.stalled {
		outcome, reason = wire.WriteFails, wire.WriteDiskStalled
	}
	if s.state.Open() {
		return &wire.WriteProbe{Outcome: outcome, Reason: reason, ForMillis: (s.w.now - v.stalledAt).Milliseconds(), AgeMillis: 1000}, nil
	}
	p := &wire.VolumeProbe{Outcome: outcome, Reason: reason, AgeMillis: 5000}
	if v.stalled {
		p.ForMillis = (s.w.now - v.stalledAt).Milliseconds()
	}
	return nil, p
}

// stallScenarios: the volume of site a, which is open, takes no writes.
var stallScenarios = []scenario{
	{name: "stalled volume", script: func(w *world) {
		thaw := w.stall(w.sites[0].vol)
		w.reached("the volume of a stalls")
		w.after(w.policy.stall+w.policy.lease+40*time.Second, func() {
			if d := w.api.group.durable; d.ActiveSite == "a" || d.Transition != nil {
				w.fail("live", "nobody takes over from a site whose volume has stalled")
			}
			thaw()
		})
	}},
	{name: "stalled volume that goes on in the middle of the failover", script: func(w *world) {
		thaw := w.stall(w.sites[0].vol)
		w.when(w.epoch(2), func() {
			w.after(w.between(0, 20*time.Second), func() {
				w.reached("the volume of a goes on while it is replaced")
				thaw()
			})
		})
	}},
	{name: "stalled volume that only an order moves away from", shape: func(w *world) { w.policy.stall = 0 }, script: func(w *world) {
		if w.api.group.durable.ActiveSite != "a" {
			return // the role has moved before the script begins
		}
		thaw := w.stall(w.sites[0].vol)
		w.after(w.between(4*time.Second, 20*time.Second), func() { // once the operator has heard of the stall, the order stays until it is followed
			if w.api.group.durable.ActiveSite != "a" {
				thaw()
				return
			}
			w.reached("the volume of a stalls, and a person orders another site")
			w.api.change(func(o *object) { o.forceTo = w.sites[1].name })
			w.after(w.policy.lease+40*time.Second, func() {
				if d := w.api.group.durable; d.ActiveSite == "a" || d.Transition != nil {
					w.fail("live", "the order moves nothing, although the volume of the open site takes no writes")
				}
				thaw()
			})
		})
	}},
	{name: "stalled volume of a candidate", script: func(w *world) {
		if w.api.group.durable.ActiveSite != w.sites[0].name {
			return // the role has moved before the script begins
		}
		thaw := w.stall(w.sites[1].vol)
		w.after(20*time.Second, func() { // one slow write is not held against it, ten seconds are
			if w.api.group.durable.ActiveSite != w.sites[0].name {
				thaw()
				return
			}
			s := w.sites[0]
			s.noRestart = w.now + time.Hour
			w.ends = append(w.ends, func() { s.noRestart = 0 })
			w.restartActive()
			w.reached("the volume of b stalls, and mysqld of a does not come back")
			w.when(w.epoch(2), func() {
				if w.api.group.durable.ActiveSite == w.sites[1].name {
					w.fail("stall", "the role goes to a site that cannot write to its volume")
				}
			})
			w.after(w.policy.crashGrace+25*time.Second, func() {
				// It may still wait to be opened: b can have received what c lacks, and cannot apply it (I7).
				if w.api.group.durable.ActiveSite != w.sites[2].name {
					w.fail("live", "nobody takes over, although the volume of c is well")
				}
				thaw()
			})
		})
	}},
	{name: "stalled volumes on one storage", script: func(w *world) {
		for _, s := range w.sites {
			w.stall(s.vol)
		}
		began := w.api.group.durable.Epoch
		w.reached("all volumes stall")
		w.after(w.policy.stall+w.policy.lease+30*time.Second, func() {
			if w.api.group.durable.Epoch != began {
				w.fail("stall", "a failover begins, and no site could take over")
			}
		})
	}},
}
