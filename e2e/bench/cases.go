// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// benchCase is one way to lose the active site.
type benchCase struct {
	stage.Fault
	// prepare is done before each run, under load; nil does nothing.
	prepare func(ctx context.Context, g *stage.Group, site string) error
	// runs is how many its targets are for, and batch how many of them share one set of writers: those that lose nothing
	// leave the group whole and need no fresh start.
	runs, batch int
	// recover waits until the fault is overcome; nil waits as stage does.
	recover func(ctx context.Context, g *stage.Group, before *v1alpha1.MysqlFailoverGroup) error
	// targets are what the pause must not exceed, in seconds.
	targets func(spec v1alpha1.MysqlFailoverGroupSpec) []target
	// lossless cases must not lose one acknowledged row.
	lossless bool
}

// target is a limit of one figure.
type target struct {
	Figure string  `json:"figure"`
	Limit  float64 `json:"limit"`
	Got    float64 `json:"got"`
	Met    bool    `json:"met"`
}

// Names of the figures that have limits.
const (
	figureP50  = "p50Seconds"
	figureP99  = "p99Seconds"
	figureMax  = "maxSeconds"
	figureLost = "ackedLost"
)

func limits(all ...target) func(v1alpha1.MysqlFailoverGroupSpec) []target {
	return func(v1alpha1.MysqlFailoverGroupSpec) []target { return slices.Clone(all) }
}

// Defaults of the spec that targets are written in.
const (
	defaultLease = 20 * time.Second
	defaultGrace = 5 * time.Second
)

// afterLease is the target of whatever has no fence proof: the lease, and five seconds.
func afterLease(spec v1alpha1.MysqlFailoverGroupSpec) []target {
	return []target{{Figure: figureMax, Limit: (leaseOf(spec) + 5*time.Second).Seconds()}}
}

func leaseOf(spec v1alpha1.MysqlFailoverGroupSpec) time.Duration {
	return cmp.Or(spec.Sidecar.LeaseTimeout.Duration, defaultLease)
}

// afterGrace is the target of a mysqld that stays away: the grace for a restart in place, and two seconds.
func afterGrace(spec v1alpha1.MysqlFailoverGroupSpec) []target {
	grace := spec.Failover.CrashGrace.Duration
	if grace <= 0 {
		grace = defaultGrace
	}
	return []target{{Figure: figureMax, Limit: (grace + 2*time.Second).Seconds()}}
}

// cases are all of them, in the order in which they run: what leaves the group whole comes first.
func cases() []benchCase {
	shared := map[string]stage.Fault{}
	for _, f := range stage.Faults() {
		shared[f.Name] = f
	}
	return []benchCase{
		{
			Fault: stage.Fault{Name: "planned", Moves: true, MayMove: true, Break: requestMove}, recover: awaitMove,
			runs: 50, batch: 10, lossless: true,
			targets: limits(target{Figure: figureP50, Limit: 0.3}, target{Figure: figureP99, Limit: 1}),
		},
		{
			Fault: stage.Fault{Name: "pod-delete", MayMove: true, Break: deletePod},
			runs:  20, batch: 5, lossless: true, targets: limits(target{Figure: figureP99, Limit: 1.5}),
		},
		{
			Fault: stage.Fault{Name: "drain", Moves: true, MayMove: true, Break: drainNode, Repair: uncordonNode},
			runs:  20, batch: 5, lossless: true, targets: limits(target{Figure: figureP99, Limit: 1.5}),
		},
		{
			Fault: shared["mysqld-kill"],
			runs:  20, batch: 5, lossless: true, targets: limits(target{Figure: figureP50, Limit: 4}),
		},
		{
			Fault: stage.Fault{Name: "mysqld-dead", Moves: true, MayMove: true, Break: ruinMysqld, Repair: mendMysqld},
			runs:  20, batch: 1, targets: afterGrace,
		},
		{Fault: shared["pod-force-delete"], runs: 20, batch: 1, targets: limits(target{Figure: figureP50, Limit: 8})},
		{Fault: shared["node-kill"], runs: 10, batch: 1, targets: afterLease},
		{Fault: shared["node-cut"], runs: 10, batch: 1, targets: afterLease},
		{
			Fault: stage.Fault{Name: "operator-node", Moves: true, MayMove: true, Break: killNode, Repair: endStandby}, prepare: leadFrom,
			runs: 20, batch: 1, targets: afterStandby,
		},
	}
}

func caseNames() []string {
	var names []string
	for _, c := range cases() {
		names = append(names, c.Name)
	}
	return names
}

// casesNamed picks cases from a list with commas; all for none.
func casesNamed(list string) ([]benchCase, error) {
	if list == "" {
		return cases(), nil
	}
	var picked []benchCase
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		all := cases()
		i := slices.IndexFunc(all, func(c benchCase) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("case %q is none of %s", name, strings.Join(caseNames(), ", "))
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}
