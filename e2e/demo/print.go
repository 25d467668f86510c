// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/demo/tour"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// moment is a line of the timeline, counted from the fault.
type moment struct {
	At   time.Duration
	What string
}

// timeline puts what the writers saw and what the operator recorded into one order. Both clocks are this machine's.
func timeline(v stage.Verdict, t stage.Testimony, fault time.Duration) []moment {
	r := v.Records[0]
	start := t.Service.Wall(fault)
	since := func(at time.Time) time.Duration { return at.Sub(start) }
	moments := []moment{
		{0, "node " + v.From + " killed"},
		{v.Pause.LastAck - fault, "last write acknowledged through the Service, by " + v.From},
		{v.Pause.NextAck - fault, "Service moved: first write acknowledged through it, by " + v.To},
	}
	steps := map[string]string{
		"detected":   "operator saw the first silence of " + v.From,
		"decided":    fmt.Sprintf("operator decided to fail over (%s), epoch %d", r.Reason, r.Epoch),
		"gatePassed": "promotion gate passed: " + strings.Join(r.Evidence, "; "),
		"opened":     v.To + " seen open for writes by the operator",
	}
	for _, e := range r.Timeline {
		what, known := steps[e.Step]
		if !known {
			what = e.Step
		}
		moments = append(moments, moment{since(r.DetectedAt.Add(time.Duration(e.Millis) * time.Millisecond)), what})
	}
	if first, ok := firstCommit(t.Direct, v.To, fault); ok {
		moments = append(moments, moment{first - fault, "first commit on " + v.To + ", written directly"})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.At, b.At) })
	return moments
}

func firstCommit(journals []journal.Journal, site string, after time.Duration) (time.Duration, bool) {
	var first time.Duration
	for _, c := range journal.Commits(journals...) {
		if c.Site == site && c.Ack > after && (first == 0 || c.Ack < first) {
			first = c.Ack
		}
	}
	return first, first > 0
}

func printTimeline(out io.Writer, moments []moment) {
	fmt.Fprintln(out, "\nTimeline, in seconds since the fault:")
	for _, m := range moments {
		fmt.Fprintf(out, "  %+8.2f  %s\n", m.At.Seconds(), m.What)
	}
}

// explainLoss says why the operator may count more transactions than rows are missing.
func explainLoss(out io.Writer, v stage.Verdict, lost int64) {
	if unpromised := lost - int64(len(v.Missing)); unpromised > 0 {
		fmt.Fprintf(out, "\n%d transactions were committed on %s in its last moment and reached nobody, not even their writer.\n",
			unpromised, v.From)
	}
	if lost > 0 {
		fmt.Fprintf(out, "Replication is asynchronous, so that can happen (docs/guarantees.md). What %s holds alone is kept there, fenced;\n"+
			"status.failovers[0].lostSet names it.\n", v.From)
	}
}

// summary is the closing line.
func summary(v stage.Verdict, lost int64) string {
	record := ""
	if len(v.Missing) > 0 {
		record = fmt.Sprintf(" (status.failovers says %d)", lost)
	}
	return fmt.Sprintf("demo: failover %s -> %s in %.1f s, %d writes acknowledged, %d of them missing%s, never two writers",
		v.From, v.To, v.Pause.Length().Seconds(), v.Acked, len(v.Missing), record)
}

func printNext(out io.Writer, g *stage.Group, active, former string, lost int64) {
	fmt.Fprintf(out, "\nThe cluster stays up. To go on:\n\n  export KUBECONFIG=%s PATH=%s:%s:$PATH\n",
		g.Lab.Kubeconfig(), g.Lab.Tools(), filepath.Join(g.Repo, "bin"))
	for _, step := range tour.Steps(g.Namespace, g.Name, active, former, lost) {
		fmt.Fprintf(out, "\n  # %s\n  %s\n", step.What, step.Command)
	}
	fmt.Fprint(out, `
  # watch all of it on a full screen, in another terminal
  kubectl mfg dashboard -n `+g.Namespace+`

  # cut a site off, and see what is not done, and why
  bin/lab net cut `+active+` hub

  # again, the other way round; or end the cluster and remove all traces
  make demo
  bin/lab down

`)
}
