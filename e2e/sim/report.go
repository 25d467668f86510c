// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// report is monitor/report.go, as far as it writes what a later pass reads, or takes the loop's time.
func (l *loop) report(t *task, s failover.Snapshot, d failover.Decision, failed error) {
	w := l.r.w
	w.countDecision(d)
	if text := fmt.Sprint(d.Topology, " ", d.Verdict, " ", d.Reason, " ", d.Status.Epoch); w.verbose && text != w.said {
		w.said = text
		w.trace("%s decides %s: %s %v (failed: %v)", l.r.o.name, text, d.Message, d.Effects, failed)
	}
	if d.Urgent() {
		return
	}
	if !d.Unheard(s) {
		l.writeLabels(t, d)
	}
	l.clearOrder(t, d)
	l.answerPlanned(t, d)
	l.writeStatus(t, d)
}

func (l *loop) writeLabels(t *task, d failover.Decision) {
	var b strings.Builder
	for _, v := range d.Views {
		fmt.Fprint(&b, v.Role, v.Healthy, " ")
	}
	if text := b.String(); text != l.labels && l.r.w.api.call(t, func() {}) {
		l.labels = text
	}
}

// clearOrder takes a person's order off once a site is open.
func (l *loop) clearOrder(t *task, d failover.Decision) {
	if l.cache.forceTo == "" || d.Topology != failover.TopologyHealthy || d.OrderWaits {
		return
	}
	api := l.r.w.api
	api.call(t, func() { api.change(func(o *object) { o.forceTo = "" }) })
}

// answerPlanned takes the annotations of a planned failover off the group once its outcome is durable.
func (l *loop) answerPlanned(t *task, d failover.Decision) {
	p := d.Status.Planned
	asked, abort := l.cache.plannedTo != "", l.cache.abort
	over := p != nil && p.Over() && !p.Answered
	if !l.loaded || !over && (!abort || p != nil && !p.Over()) || over && !asked && !abort {
		return
	}
	if over {
		l.r.w.count("planned " + string(p.Phase) + " " + string(p.Reason))
	}
	api := l.r.w.api
	api.call(t, func() { api.change(func(o *object) { o.plannedTo, o.abort = "", false }) })
}

// writeStatus writes the loop's part of the status if it says something else than last time.
func (l *loop) writeStatus(t *task, d failover.Decision) {
	if !l.loaded {
		return
	}
	var b strings.Builder
	for _, v := range d.Views {
		fmt.Fprint(&b, v.State, v.Errant, " ")
	}
	text := b.String() + fmt.Sprint(d.Reason, l.durable.Epoch, l.durable.ActiveSite, l.durable.Transition != nil, len(l.durable.Records), l.durable.Planned != nil)
	if text == l.said && (l.r.mono()-l.written < cacheDelay || says(l.cache, l.durable, d.Views)) {
		return
	}
	api := l.r.w.api
	var live object
	if !api.call(t, func() { live = api.group }) {
		return
	}
	if !l.isOurs(live.durable) {
		l.loaded = false
		return
	}
	if l.apply(t, write{live.version, l.durable, d.Views, apiTimeout}) == nil {
		l.said, l.written = text, l.r.mono()
	}
}

// cacheDelay is of monitor/report.go: until then what was written counts as what stands.
const cacheDelay = 10 * time.Second

// says is Says in monitor/groupstatus/equal.go: a leader that was deposed may have written last.
func says(standing object, meant failover.Durable, views []failover.View) bool {
	phase := func(d failover.Durable) v1alpha1.PlannedPhase {
		if d.Planned == nil {
			return ""
		}
		return d.Planned.Phase
	}
	return sameStep(standing.durable, meant) && phase(standing.durable) == phase(meant) && slices.EqualFunc(standing.durable.Records, meant.Records,
		func(x, y v1alpha1.FailoverRecord) bool { return x.Epoch == y.Epoch && x.LossExact == y.LossExact }) &&
		maps.EqualFunc(standing.errant, errantOf(views), gtid.Set.Equal) &&
		maps.EqualFunc(standing.durable.Runs, meant.Runs, slices.Equal[[]failover.Run])
}

// errantOf is what status says of sites that have diverged.
func errantOf(views []failover.View) map[string]gtid.Set {
	out := map[string]gtid.Set{}
	for _, v := range views {
		if !v.Errant.IsEmpty() {
			out[v.Name] = v.Errant
		}
	}
	return out
}
