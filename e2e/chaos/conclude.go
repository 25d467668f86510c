// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// afterHealing is how long writers go on once all faults are taken back: when a site comes back is when it could write.
const afterHealing = 3 * time.Second

// conclude makes the checks that are the same for all scenarios, once all faults are taken back.
func conclude(ctx context.Context, sc Scenario, s *Scene, c crew, got *result) error {
	v, testimony, err := c.hear(ctx, got)
	if err != nil {
		return err
	}
	v = exceptUnderWay(sc, s, v)
	if !s.alone.IsZero() {
		got.AcceptedSeconds = rounded(acceptedFor(testimony.Logs, v, s).Seconds())
	}
	return errors.Join(v.CheckWriters(), checkRole(sc, v, s), checkLoss(ctx, sc, s, v, testimony, c.compare), checkDR(v, s), checkAlone(v, testimony, s))
}

// exceptUnderWay leaves out of the verdict what a site that stood still may do when it goes on. More commits than it had connections
// mean that it took new ones, and stay. The result counts both all the same.
func exceptUnderWay(sc Scenario, s *Scene, v stage.Verdict) stage.Verdict {
	few := func(site string, count int) bool { return site == s.Active && count <= sc.UnderWay }
	v.ByServers = slices.DeleteFunc(slices.Clone(v.ByServers), func(o commits.Overlap) bool { return few(o.Site, o.Count) })
	v.Overlaps = slices.DeleteFunc(slices.Clone(v.Overlaps), func(o journal.Overlap) bool {
		return few(o.Later.Site, o.Later.Commits) || few(o.Earlier.Site, o.Earlier.Commits)
	})
	return v
}

// hear waits for the group to be whole or held, ends the writers and draws the verdict over what they saw.
func (s *Scene) hear(ctx context.Context, got *result) (stage.Verdict, stage.Testimony, error) {
	var v stage.Verdict
	if err := s.AwaitOperator(ctx, recovery); err != nil {
		return v, stage.Testimony{}, err
	}
	if err := s.MustWrite(ctx); err != nil {
		return v, stage.Testimony{}, err
	}
	s.Say("  expect: the group is whole again, or held for a stated reason")
	if _, err := s.Await(ctx, healLimit, "the group to be whole or held", settledLoss(s.W.Before.Status.Epoch)); err != nil {
		return v, stage.Testimony{}, err
	}
	if err := pause(ctx, afterHealing); err != nil {
		return v, stage.Testimony{}, err
	}
	testimony, err := s.W.Stop(ctx)
	if err != nil {
		return v, testimony, fmt.Errorf("writers: %w", err)
	}
	group, err := s.Await(ctx, patience, "the group to be whole or held", wholeOrHeld)
	if err != nil {
		return v, testimony, err
	}
	if v, err = s.W.Judge(ctx, testimony, s.began); err != nil {
		return v, testimony, fmt.Errorf("judge: %w", err)
	}
	got.take(v, group)
	return v, testimony, nil
}

// settledLoss waits for sites in their places and for the losses of this scenario's failovers to be known exactly.
func settledLoss(since int64) func(*v1alpha1.MysqlFailoverGroup) error {
	return func(group *v1alpha1.MysqlFailoverGroup) error {
		if err := wholeOrHeld(group); err != nil {
			return err
		}
		for _, r := range group.Status.Failovers {
			if r.Epoch > since && r.From != "" && r.From != r.To && !r.LossExact {
				return fmt.Errorf("the loss of %s -> %s under epoch %d is not exact yet; %s", r.From, r.To, r.Epoch, stage.Describe(group))
			}
			if r.Epoch > since && r.LostTransactions > 0 && r.LostRowsState == "" {
				return fmt.Errorf("the lost rows of %s -> %s under epoch %d are not counted yet", r.From, r.To, r.Epoch)
			}
		}
		return nil
	}
}

// wholeOrHeld is what a group must come to by itself: every site ready, or held with its errant transactions named.
func wholeOrHeld(group *v1alpha1.MysqlFailoverGroup) error {
	if len(diverged(group)) > 0 {
		return settled(group)
	}
	return whole(group)
}

func checkRole(sc Scenario, v stage.Verdict, s *Scene) error {
	var others []string
	for _, r := range v.Records {
		if r.To != s.Active {
			others = append(others, r.To)
		}
	}
	switch {
	case sc.Role == mayMove:
	case sc.Role == stays && (v.To != s.Active || len(others) > 0):
		return fmt.Errorf("the role was to stay with %s and is with %s; in between it was with %v", s.Active, v.To, others)
	case (sc.Role == moves || sc.Role == movesOnce) && len(others) == 0:
		return fmt.Errorf("the role was to leave %s and did not", s.Active)
	case sc.Role == movesOnce && len(movedRecords(v)) != 1:
		return fmt.Errorf("the role was to move once: %+v", movedRecords(v))
	}
	return nil
}

// checkLoss compares what the writers were promised with what is there and what the group says was lost. A record may
// count more than is missing: rows that were committed and never acknowledged are lost, too, but nobody was promised
// them. It may not count more than there were of those.
func checkLoss(ctx context.Context, sc Scenario, s *Scene, v stage.Verdict, t stage.Testimony, compare comparison) error {
	missing, unknown := int64(len(v.Missing)), int64(len(journal.Unknowns(t.All()...)))
	switch {
	case sc.Lossless && missing > 0:
		return fmt.Errorf("%d acknowledged rows are missing, and none may be", missing)
	case missing > v.Lost:
		return fmt.Errorf("%d acknowledged rows are missing, and status.failovers says that %d were lost", missing, v.Lost)
	case sc.Mixed:
		// Of what was lost only a part were rows of the writers that are counted.
		return nil
	case v.Lost > missing+unknown+s.foreign:
		return fmt.Errorf("status.failovers says that %d transactions were lost, but only %d rows are missing and %d have an unknown outcome",
			v.Lost, missing, unknown)
	}
	for _, r := range v.Records {
		if err := checkRows(r); err != nil {
			return err
		}
	}
	// With a single failover the rows on both sides of it can be compared, too.
	if moved := movedRecords(v); len(moved) == 1 && moved[0].To == v.To && s.foreign == 0 {
		return compare(ctx, moved[0], v.Missing)
	}
	return nil
}

// checkRows compares the rows that the group counted in the lost transactions with their number: the writers put one row
// into each transaction.
func checkRows(r v1alpha1.FailoverRecord) error {
	if r.LostTransactions == 0 {
		return nil
	}
	var rows int64
	for _, table := range r.LostRows {
		rows += table.Inserted
	}
	if r.LostRowsState != v1alpha1.LostRowsCounted || rows != r.LostTransactions {
		return fmt.Errorf("%d transactions of %s were lost, with one row in each; status.failovers counts %d rows (%s)",
			r.LostTransactions, r.From, rows, r.LostRowsState)
	}
	return nil
}

func movedRecords(v stage.Verdict) []v1alpha1.FailoverRecord {
	var moved []v1alpha1.FailoverRecord
	for _, r := range v.Records {
		if r.From != "" && r.From != r.To {
			moved = append(moved, r)
		}
	}
	return moved
}

// checkDR: I6.
func checkDR(v stage.Verdict, s *Scene) error {
	for _, r := range v.Records {
		if s.DR != "" && r.To == s.DR {
			return fmt.Errorf("%s is dr-only and was promoted", s.DR)
		}
	}
	return nil
}

// checkAlone: I4. A site that was left alone commits nothing of its own once its lease has run out, by its own timestamps, unless
// the role comes back to it.
func checkAlone(v stage.Verdict, t stage.Testimony, s *Scene) error {
	if s.alone.IsZero() {
		return nil
	}
	if t.Unread != "" {
		return fmt.Errorf("nothing is proven of the end of a lease by logs that were not read: %s", t.Unread)
	}
	end := s.alone.Add(shutAfter())
	for _, c := range commits.Since(t.Logs, end) {
		again := slices.ContainsFunc(v.Records, func(r v1alpha1.FailoverRecord) bool { return r.To == c.Site && !c.At.Before(r.StartedAt.Time) })
		if c.Site == s.Active && c.Own() && !again {
			return fmt.Errorf("%s committed %s %s after the last answer of anybody, %s after the last moment at which it may",
				c.Site, c.GTID, c.At.Sub(s.alone), c.At.Sub(end))
		}
	}
	return nil
}

// acceptedFor is how long after the first fault the site that was active committed something of its own for the last time, before
// it was active again: by its own timestamps.
func acceptedFor(logs []commits.Transaction, v stage.Verdict, s *Scene) time.Duration {
	from := time.Now().Add(s.began - load.Now())
	var last time.Duration
	for _, c := range logs {
		again := slices.ContainsFunc(v.Records, func(r v1alpha1.FailoverRecord) bool { return r.To == c.Site && !c.At.Before(r.StartedAt.Time) })
		if c.Site == s.Active && c.Own() && !again {
			last = max(last, c.At.Sub(from))
		}
	}
	return last
}

// take notes what the verdict says.
func (r *result) take(v stage.Verdict, group *v1alpha1.MysqlFailoverGroup) {
	r.PauseSeconds = rounded(v.Pause.Length().Seconds())
	r.Acknowledged, r.Lost, r.Reported, r.Overlaps = v.Acked, len(v.Missing), v.Lost, len(v.Overlaps)
	r.ByServers = len(v.ByServers)
	var turns []string
	for _, record := range movedRecords(v) {
		turns = append(turns, fmt.Sprintf("%s -> %s (%s)", record.From, record.To, record.Kind))
	}
	r.Failover = strings.Join(turns, ", ")
	for _, site := range group.Status.Sites {
		if site.State == v1alpha1.SiteDiverged {
			r.Held = append(r.Held, site.Name)
		}
	}
}
