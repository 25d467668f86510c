// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// judge draws the verdict over all parts.
func (f *keyringFigures) judge() {
	f.Against = slices.Concat(f.FailedParts, f.lacking(), f.foreign())
	f.WithinTarget = len(f.Against) == 0
}

// lacking is which parts are missing, or not within their targets.
func (f *keyringFigures) lacking() []string {
	var all []string
	against := func(is bool, text string) {
		if is {
			all = append(all, text)
		}
	}
	against(f.BringUp == nil, partRound+": no bring-up was measured")
	against(f.BringUp != nil && !f.BringUp.Target.Met, partRound+": sealed too late")
	against(f.Rotation == nil, partRound+": no rotation was measured")
	against(f.Throughput == nil, partThroughput+": not measured")
	if f.Throughput != nil {
		for _, text := range f.Throughput.against() {
			against(true, partThroughput+": "+text)
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(f.Failovers, func(c failoverComparison) bool { return c.Case == name })
	}
	against(!has(partPlanned), partPlanned+": not measured")
	against(!has(partForceDelete) && !has(partMysqldDead), "no emergency was measured")
	for _, c := range f.Failovers {
		against(!c.WithinTarget, c.Case+": "+c.said())
	}
	return all
}

// foreign is which parts are of another commit than the last run: together they say nothing of one program.
func (f *keyringFigures) foreign() []string {
	var all []string
	of := func(part string, o origin) {
		if o.Commit != f.Commit {
			all = append(all, fmt.Sprintf("%s: of commit %q, the last run of %q", part, o.Commit, f.Commit))
		}
	}
	if f.BringUp != nil {
		of(partRound+", bring-up", f.BringUp.origin)
	}
	if f.Rotation != nil {
		of(partRound+", rotation", f.Rotation.origin)
	}
	if f.Throughput != nil {
		of(partThroughput, f.Throughput.origin)
	}
	for _, c := range f.Failovers {
		of(c.Case, c.origin)
	}
	return all
}

// against is what takes the throughput, which has no limit, out of what counts as measured.
func (f *throughputFigures) against() []string {
	all := unproven(f.PlainTable, f.EncryptedTable)
	runs := map[string]int{}
	for _, s := range f.Samples {
		runs[s.Group]++
	}
	if min(runs[armPlain], runs[armEncrypted]) < leastRuns {
		all = append(all, fmt.Sprintf("%d and %d runs, and at least %d each are needed", runs[armPlain], runs[armEncrypted], leastRuns))
	}
	return all
}

// said is the verdict, and why if it is not for the pauses.
func (c *failoverComparison) said() string {
	if len(c.Against) > 0 {
		return string(c.Verdict) + ": " + strings.Join(c.Against, "; ")
	}
	if c.Verdict == verdictOpen {
		return fmt.Sprintf("%s (as seen: %s)", c.Verdict, said(c.Target.Met))
	}
	return string(c.Verdict)
}

// print prints the tables with the verdicts.
func (f *keyringFigures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nWHAT\tMEASURED\tTARGET\tVERDICT")
	if b := f.BringUp; b != nil {
		fmt.Fprintf(w, "apply until every site is sealed\t%.1f s\t%.0f s\t%s\n", b.AppliedToSealedSeconds, b.Target.Limit, said(b.Target.Met))
	}
	if r := f.Rotation; r != nil {
		fmt.Fprintf(w, "rotation of %s\t%.1f s: unsealed at %.1f, rotated %.1f, in escrow %.1f, sealed %.1f\t\t\n", r.Site,
			r.OrderedToAnsweredSeconds, r.UnsealedSeconds, r.RotatedSeconds, r.EscrowedSeconds, r.SealedSeconds)
	}
	if t := f.Throughput; t != nil {
		fmt.Fprintf(w, "rows a second, %d connections\t%.0f plain, %.0f encrypted, ratio %.2f; stolen %.1f %% and %.1f %%\t\t\n", t.Connections,
			t.PlainRowsPerSecond, t.EncryptedRowsPerSecond, t.EncryptedToPlainRatio, t.PlainStolenPercent, t.EncryptedStolenPercent)
	}
	for _, c := range f.Failovers {
		c.print(w)
	}
	_ = w.Flush()
	for _, text := range f.Against {
		fmt.Fprintf(out, "not within: %s\n", text)
	}
}

func (c *failoverComparison) print(w io.Writer) {
	at := "no interval"
	if c.Interval != nil {
		at = fmt.Sprintf("95 %%: %.3f to %.3f", c.Interval.Low, c.Interval.High)
	}
	operator := ""
	if c.Case == partPlanned {
		operator = fmt.Sprintf("; operator's %.3f s and %.3f s, ratio %.3f",
			c.Plain.OperatorP50Seconds, c.Encrypted.OperatorP50Seconds, c.OperatorRatio)
	}
	fmt.Fprintf(w, "pause, %s (medians of %d and %d)\tclients' %.3f s plain, %.3f s encrypted, ratio %.3f%s; stolen %.1f %% and %.1f %%\t"+
		"%.3f (%s) of %.2f\t%s\n", c.Case, c.Plain.Runs, c.Encrypted.Runs, c.Plain.P50Seconds, c.Encrypted.P50Seconds, c.Ratio, operator,
		c.Plain.StolenPercent, c.Encrypted.StolenPercent, c.Target.Got, at, c.Target.Limit, c.said())
}

func said(met bool) verdict {
	if met {
		return verdictWithin
	}
	return verdictMissed
}
