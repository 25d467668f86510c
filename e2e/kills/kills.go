// SPDX-License-Identifier: Apache-2.0

// Package kills is what is killed at which step while a site's keyring is unsealed, and what came of it. The runs
// themselves are in e2e/suites (build tag kills); this holds their list, their results, and the table of both.
package kills

import (
	"slices"
	"strings"
)

// Case is one run: something is killed at a step of some work.
type Case struct {
	Work string `json:"work"`
	Step string `json:"step"`
	Kill string `json:"kill"`
}

// The work that unseals a site.
const (
	Rotation  = "Rotation"
	Clone     = "Clone"
	Bootstrap = "Bootstrap"
)

// The steps, as status shows them.
const (
	StepPending  = "Pending"
	StepUnsealed = "Unsealed"
	StepRotating = "rotating"
	// StepRotated: both master keys are new, and nothing of them is in escrow, which is withheld until something was killed.
	StepRotated  = "rotated"
	StepCloning  = "cloning"
	StepEscrowed = "Escrowed"
	StepSealing  = "sealing"
)

// What is killed.
const (
	Mysqld   = "mysqld"
	Sidecar  = "sidecar"
	Pod      = "pod"
	Node     = "node"
	Operator = "operator"
)

// Name is that of a run: KILLS is matched with it.
func (c Case) Name() string { return c.Work + "/" + c.Step + "/" + c.Kill }

// Cases are all runs, in their order.
func Cases() []Case {
	var all []Case
	for _, w := range []struct {
		work  string
		steps []string
	}{
		{Rotation, []string{StepPending, StepUnsealed, StepRotating, StepRotated, StepEscrowed, StepSealing}},
		{Clone, []string{StepPending, StepUnsealed, StepCloning, StepEscrowed, StepSealing}},
		{Bootstrap, []string{StepUnsealed, StepEscrowed, StepSealing}},
	} {
		for _, step := range w.steps {
			for _, kill := range []string{Mysqld, Sidecar, Pod, Node, Operator} {
				all = append(all, Case{w.work, step, kill})
			}
		}
	}
	return all
}

// Names are the names of runs, by commas.
func Names(cases []Case) string {
	var names []string
	for _, c := range cases {
		names = append(names, c.Name())
	}
	return strings.Join(names, ", ")
}

// Missing are the runs of a complete table without a result.
func (r Results) Missing() []Case {
	return slices.DeleteFunc(Cases(), func(c Case) bool { _, there := r.of(c); return there })
}

func (r Results) of(c Case) (Result, bool) {
	i := slices.IndexFunc(r.Runs, func(got Result) bool { return got.Case == c })
	if i < 0 {
		return Result{}, false
	}
	return r.Runs[i], true
}
