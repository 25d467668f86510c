// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// sample is what one run measured.
type sample struct {
	// Seconds is the pause of the unluckiest connection, MergedSeconds that of all of them together.
	Seconds       float64 `json:"seconds"`
	MergedSeconds float64 `json:"mergedSeconds"`
	// OperatorSeconds is what the operator says of a planned failover's pause.
	OperatorSeconds *float64 `json:"operatorSeconds,omitempty"`
	From            string   `json:"from"`
	To              string   `json:"to"`
	Kind            string   `json:"kind,omitempty"`
	Reason          string   `json:"reason,omitempty"`
	Evidence        []string `json:"evidence,omitempty"`
	// CommitsPerSecond went through the Service in the seconds before the fault.
	CommitsPerSecond float64 `json:"commitsPerSecond"`
	Acked            int     `json:"acked"`
	Lost             int     `json:"lost"`
	Reported         int     `json:"reported"`
	Overlaps         int     `json:"overlaps"`
	// ByServers are the overlaps by the servers' own timestamps.
	ByServers     int     `json:"overlapsByServers"`
	MarginSeconds float64 `json:"marginSeconds"`
	// StolenPercent is how much of the machine's time its host gave to others in this run, in percent: the noise.
	StolenPercent float64 `json:"stolenPercent"`
	// Run of bench-keyring: what has the same number in both groups was measured one after the other.
	Run int `json:"run,omitempty"`
}

// testimony is what all writers of a session saw.
type testimony struct {
	service, all []journal.Commit
	overlaps     []journal.Overlap
	changes      []journal.Change
	missing      []journal.Commit
	byServers    []serverOverlap
}

// serverOverlap is one by the servers' timestamps, with its moment on the machine's monotonic clock.
type serverOverlap struct {
	commits.Overlap
	at time.Duration
}

// judgeLogs is the second judge. Logs that are not whole prove nothing, which is an error; those of encrypted sites cannot be read.
func (s *session) judgeLogs(acked []journal.Commit) ([]serverOverlap, error) {
	all, unread, err := s.logs.End()
	if err != nil || unread != "" {
		return nil, err
	}
	count := map[string]int{}
	for _, c := range acked {
		count[c.Site]++
	}
	if holes := commits.Holes(all, count); len(holes) > 0 {
		return nil, fmt.Errorf("the binary logs in %s are not whole, so they prove nothing: %v", s.logs.Dir(), holes)
	}
	var found []serverOverlap
	for _, o := range commits.Overlaps(all, s.epochs) {
		found = append(found, serverOverlap{Overlap: o, at: load.Now() - time.Since(o.First.At)})
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, s.logs.Remove()
}

// finish ends the writers and draws the verdict over every run: the samples, and an error where the group was proven
// wrong. With an error beside it a sample still counts: it is what was measured.
func (s *session) finish(ctx context.Context) ([]sample, error) {
	if err := s.stopWriter(ctx); err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	direct, _, err := s.probes.Stop()
	s.probes = nil
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	after, err := s.Get(ctx)
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	// A run that failed has no mark, but the role may have moved in it.
	s.news(after)
	t := testimony{service: journal.Commits(s.served...), all: journal.Commits(append(direct, s.served...)...)}
	t.overlaps, t.changes = journal.Overlaps(t.all, s.turns), journal.FenceMargins(t.all)
	rows, err := s.Rows(ctx, after.Status.ActiveSite)
	if err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	t.missing = journal.Missing(t.all, rows)
	if t.byServers, err = s.judgeLogs(t.all); err != nil {
		return nil, err
	}
	samples, err := t.samples(s.marks)
	return samples, errors.Join(err, checkLoss(s.marks, t.missing, func(r v1alpha1.FailoverRecord) error {
		return s.CheckLoss(ctx, r, t.missing)
	}))
}

// samples cuts what the writers saw into the runs. Each run reaches from the end of the one before it to its own; the
// last one to the end of all.
func (t testimony) samples(marks []mark) ([]sample, error) {
	var all []sample
	var errs []error
	from := time.Duration(math.MinInt64)
	for i, m := range marks {
		until := m.end
		if i == len(marks)-1 {
			until = time.Duration(math.MaxInt64)
		}
		got, err := t.sample(m, from, until)
		if err != nil {
			errs = append(errs, fmt.Errorf("run %d: %w", i+1, err))
		}
		all = append(all, got)
		from = until
	}
	return all, errors.Join(errs...)
}

func (t testimony) sample(m mark, from, until time.Duration) (sample, error) {
	s := sample{From: m.site, To: m.site, CommitsPerSecond: round(rateBefore(t.service, m.at)), StolenPercent: m.stolen}
	var errs []error
	pause, whole := journal.LongestClientPause(current(t.service, m.at), m.at, m.end)
	if !whole {
		errs = append(errs, errors.New("a connection of the Service's writer never got through again"))
	}
	s.Seconds = round(pause.Length().Seconds())
	merged, ok := journal.LongestPause(before(t.service, m.end), m.at)
	if !ok {
		errs = append(errs, errors.New("no row went through the Service after the fault"))
	}
	s.MergedSeconds = round(merged.Length().Seconds())
	if m.pauseMillis != nil {
		seconds := float64(*m.pauseMillis) / 1000
		s.OperatorSeconds = &seconds
	}
	within := func(at time.Duration) bool { return at > from && at <= until }
	for _, c := range t.all {
		s.Acked += count(within(c.Ack))
	}
	for _, c := range t.missing {
		s.Lost += count(within(c.Ack))
	}
	for _, o := range t.overlaps {
		if within(o.Later.FirstStart) {
			s.Overlaps++
			errs = append(errs, fmt.Errorf("two sites accepted commits at the same time: %s", o))
		}
	}
	for _, o := range t.byServers {
		if within(o.at) {
			s.ByServers++
			errs = append(errs, fmt.Errorf("two sites committed at the same time by the servers' own timestamps: %s", o.Overlap))
		}
	}
	s.take(m)
	errs = append(errs, t.margin(&s, m, within))
	return s, errors.Join(errs...)
}

// take takes over the group's own records of a run.
func (s *sample) take(m mark) {
	for _, r := range m.records {
		s.Reported += int(r.LostTransactions)
		s.To, s.Kind, s.Reason, s.Evidence = r.To, string(r.Kind), string(r.Reason), r.Evidence
	}
}

// margin finds the shortest time for which nobody accepted anything when the site changed. Where the role stayed it is
// the time for which that one site accepted nothing.
func (t testimony) margin(s *sample, m mark, within func(time.Duration) bool) error {
	least := time.Duration(math.MaxInt64)
	for _, c := range t.changes {
		if within(c.At) {
			least = min(least, c.Margin)
		}
	}
	if least < math.MaxInt64 {
		s.MarginSeconds = round(least.Seconds())
		return nil
	}
	if m.moved {
		return fmt.Errorf("the role moved from %s to %s, but no writer saw commits on both: nothing is proven", m.site, s.To)
	}
	if pause, ok := journal.LongestPause(before(t.all, m.end), m.at); ok {
		s.MarginSeconds = round(pause.Length().Seconds())
	}
	return nil
}

// checkLoss compares the group's records with the data. Only the last run of a session can have lost something.
func checkLoss(marks []mark, missing []journal.Commit, compare func(v1alpha1.FailoverRecord) error) error {
	var last *v1alpha1.FailoverRecord
	for _, m := range marks {
		for i := range m.records {
			if r := m.records[i]; r.From != "" && r.From != r.To {
				last = &r
			}
		}
	}
	switch {
	case last != nil:
		return compare(*last)
	case len(missing) > 0:
		return fmt.Errorf("%d acknowledged rows are missing though nothing failed over", len(missing))
	}
	return nil
}

// current keeps the commits of the writer that was behind the Service at a moment, the last one if two of them were.
func current(commits []journal.Commit, at time.Duration) []journal.Commit {
	var newest journal.Commit
	for _, c := range commits {
		if c.Ack <= at && c.Ack > newest.Ack {
			newest = c
		}
	}
	var own []journal.Commit
	for _, c := range commits {
		if c.Writer == newest.Writer {
			own = append(own, c)
		}
	}
	return own
}

func before(commits []journal.Commit, end time.Duration) []journal.Commit {
	var early []journal.Commit
	for _, c := range commits {
		if c.Ack <= end {
			early = append(early, c)
		}
	}
	return early
}

// rateWindow is the time before a fault in which the load is measured. Every run leaves at least that much.
const rateWindow = 2 * time.Second

func rateBefore(commits []journal.Commit, at time.Duration) float64 {
	n := 0
	for _, c := range commits {
		n += count(c.Ack > at-rateWindow && c.Ack <= at)
	}
	return float64(n) / rateWindow.Seconds()
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
