// SPDX-License-Identifier: Apache-2.0

// Package backups is what is killed at which step of a backup, of its removal and of a restore, and what came of it. The runs themselves are in
// e2e/suites (build tag kills); this holds their list, the choice of some of them, their results, and the table of both.
package backups

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Case is one run: something is killed at a step of some work.
type Case struct {
	Work   string `json:"work"`
	Method string `json:"method"`
	Step   string `json:"step"`
	Kill   string `json:"kill"`
}

// The work.
const (
	Backup  = "Backup"
	Removal = "Removal"
	Restore = "Restore"
)

// The methods, as the API has them.
const (
	Logical  = "Logical"
	Physical = "Physical"
)

// The steps.
const (
	// StepPending: ordered, and nothing of it runs.
	StepPending = "Pending"
	// StepStarting: the pod is there, and its program does not run yet.
	StepStarting = "Starting"
	// StepRunning: the program runs; of a backup, some of its bytes are on their way into the storage.
	StepRunning = "Running"
	// StepStored: the manifest is in the storage, and nobody has heard of it.
	StepStored = "Stored"
	// StepLoaded: the first site has its data, and nothing is open.
	StepLoaded = "Loaded"
)

// What is killed.
const (
	// Program is that of the backup, the restore or the removal; Pod is its pod, of a restore that of the site.
	Program = "program"
	Pod     = "pod"
	// Mysqld, Site and Node are of the site that is copied, or restored: its mysqld, its pod, its node.
	Mysqld   = "mysqld"
	Site     = "site"
	Node     = "node"
	Operator = "operator"
	Storage  = "storage"
)

// Name is that of a run: KILLS is matched with it.
func (c Case) Name() string { return strings.Join([]string{c.Work, c.Method, c.Step, c.Kill}, "/") }

// kills are what can be killed at each step of each kind of work. What does not run at a step cannot be.
var kills = []struct {
	work  string
	step  string
	kills []string
}{
	{Backup, StepPending, []string{Operator, Storage, Mysqld, Site, Node}},
	{Backup, StepStarting, []string{Pod, Operator, Storage, Mysqld, Site, Node}},
	{Backup, StepRunning, []string{Program, Pod, Operator, Storage, Mysqld, Site, Node}},
	{Backup, StepStored, []string{Pod, Operator, Storage, Site, Node}},
	{Removal, StepPending, []string{Operator, Storage}},
	{Removal, StepRunning, []string{Program, Pod, Operator, Storage}},
	{Restore, StepPending, []string{Operator, Storage}},
	{Restore, StepRunning, []string{Program, Pod, Node, Operator, Storage}},
	{Restore, StepLoaded, []string{Pod, Node, Operator}},
}

// Cases are all that can be made, in their order.
func Cases() []Case {
	var all []Case
	for _, method := range []string{Logical, Physical} {
		for _, k := range kills {
			for _, kill := range k.kills {
				all = append(all, Case{k.work, method, k.step, kill})
			}
		}
	}
	return all
}

// Choose picks so many of them by a seed, the same ones each time: every step of every kind of work by both methods in turn, with something
// else to kill each time, so that forty runs leave no step out. More than there are begin again.
func Choose(all []Case, runs int, seed uint64) []Case {
	random := rand.New(rand.NewPCG(seed, seed))
	type turn struct{ work, method, step string }
	var turns []turn
	of := map[turn][]Case{}
	for _, c := range all {
		at := turn{c.Work, c.Method, c.Step}
		if of[at] == nil {
			turns = append(turns, at)
		}
		of[at] = append(of[at], c)
	}
	random.Shuffle(len(turns), func(i, k int) { turns[i], turns[k] = turns[k], turns[i] })
	for _, at := range turns {
		cases := of[at]
		random.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
	}
	var chosen []Case
	for round := 0; len(all) > 0 && len(chosen) < runs; round++ {
		for _, at := range turns {
			if round < len(of[at]) {
				chosen = append(chosen, of[at][round])
			}
		}
		if round >= len(all) {
			break
		}
	}
	chosen = chosen[:min(len(chosen), runs)]
	// Those of one kind of work one after the other: they share what they are made on.
	slices.SortStableFunc(chosen, func(a, b Case) int { return strings.Compare(a.Work, b.Work) })
	return chosen
}

// Names are the names of runs, by commas.
func Names(cases []Case) string {
	var names []string
	for _, c := range cases {
		names = append(names, c.Name())
	}
	return strings.Join(names, ", ")
}
