// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mysql-mfg/mfg/operator/failover"
)

// stats is what happened in a run, so that one can see that the runs are not empty.
type stats struct {
	runs, events, commits, openings, promotions, lost, faults int64
	named                                                     map[string]int64
}

func (w *world) count(name string) {
	if w.stats.named == nil {
		w.stats.named = map[string]int64{}
	}
	w.stats.named[name]++
}

func (w *world) countDecision(d failover.Decision) {
	w.count("decision " + string(d.Verdict) + " " + string(d.Reason))
}

func (w *world) countEffect(e failover.Effect) { w.count(fmt.Sprintf("effect %T", e)) }

func (s *stats) add(o stats) {
	s.runs += o.runs
	s.events += o.events
	s.commits += o.commits
	s.openings += o.openings
	s.promotions += o.promotions
	s.lost += o.lost
	s.faults += o.faults
	if s.named == nil {
		s.named = map[string]int64{}
	}
	for name, n := range o.named {
		s.named[name] += n
	}
}

func (s *stats) names() []string { return slices.Sorted(maps.Keys(s.named)) }
