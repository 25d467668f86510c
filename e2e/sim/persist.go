// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// load is persist.go's load: what is durable, through the API reader, when the loop starts or does not know what stands.
func (l *loop) load(t *task) bool {
	if l.loaded {
		return true
	}
	var live object
	if !l.r.w.api.call(t, func() { live = l.r.w.api.group }) {
		return false
	}
	for site := range live.kept {
		if !l.cache.kept[site] {
			return false // the cache does not show it yet
		}
	}
	if l.durable.Epoch > 0 && !sameStep(live.durable, l.durable) && !sameStep(live.durable, l.tried) {
		l.started = l.r.wall()
	}
	l.durable, l.loaded = live.durable, true
	for site, set := range live.errant {
		if l.memory.Of(site).Diverged.IsEmpty() {
			l.memory = l.memory.With(site, func(is *failover.SiteMemory) { is.Diverged = set })
		}
	}
	return true
}

// sameStep is persist.go's sameStep.
func sameStep(a, b failover.Durable) bool {
	step := func(d failover.Durable) v1alpha1.TransitionStep {
		if d.Transition == nil {
			return ""
		}
		return d.Transition.Step
	}
	return a.Epoch == b.Epoch && a.ActiveSite == b.ActiveSite && step(a) == step(b)
}

// persist is persist.go's persist.
func (l *loop) persist(t *task, d failover.Decision) error {
	l.tried = d.Status
	var err error
	deadline := l.r.w.now + l.r.host.clock.real(apiTimeout)
	for range persistTries {
		if err = l.persistOnce(t, d, deadline); !errors.Is(err, errConflict) {
			break
		}
	}
	if err != nil {
		l.loaded = l.onlyNotes(d) && !errors.Is(err, errOvertaken)
		return err
	}
	l.durable = d.Status
	return nil
}

const persistTries = 3

// onlyNotes is persist.go's onlyNotes.
func (l *loop) onlyNotes(d failover.Decision) bool {
	return d.Status.Epoch == l.durable.Epoch && d.Status.ActiveSite == l.durable.ActiveSite && d.Status.Transition == l.durable.Transition
}

func (l *loop) persistOnce(t *task, d failover.Decision, deadline time.Duration) error {
	api := l.r.w.api
	left := func() time.Duration { return max(0, l.r.host.clock.local(deadline-l.r.w.now)) }
	if l.version != 0 && l.cache.version == l.version {
		if err := l.apply(t, write{l.version, d.Status, d.Views, left()}); !errors.Is(err, errConflict) {
			return err
		}
	}
	var live object
	if !api.callWithin(t, left(), func() { live = api.group }) {
		return errTimeout
	}
	if site := d.Status.ActiveSite; !l.isOurs(live.durable) || live.kept[site] && !l.cache.kept[site] {
		return errOvertaken
	}
	return l.apply(t, write{live.version, d.Status, d.Views, left()})
}

func (l *loop) isOurs(s failover.Durable) bool {
	same := (s.Transition == nil) == (l.durable.Transition == nil)
	if same && s.Transition != nil {
		same = s.Transition.Step == l.durable.Transition.Step
	}
	return same && s.Epoch == l.durable.Epoch && s.ActiveSite == l.durable.ActiveSite
}

// write is one apply of the loop's part of the status, over the object of one version.
type write struct {
	version int64
	durable failover.Durable
	views   []failover.View
	within  time.Duration
}

// apply writes the loop's part of the status; with the version in it, a write in between makes it fail.
func (l *loop) apply(t *task, q write) error {
	api := l.r.w.api
	l.version = 0
	var conflict bool
	var written int64
	ok := api.callWithin(t, q.within, func() {
		if conflict = api.group.version != q.version; conflict {
			return
		}
		api.change(func(o *object) {
			o.durable, o.errant = q.durable, errantOf(q.views)
			o.durable.Records = slices.Clone(q.durable.Records)
		})
		written = api.group.version
	})
	switch {
	case !ok:
		return errTimeout
	case conflict:
		l.r.w.count("api conflict")
		return errConflict
	}
	l.version = written
	return nil
}
