// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/commits"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Verdict is what follows from the testimony and the group's own records.
type Verdict struct {
	// From and To are the active sites before and after; equal when the role did not move.
	From, To string
	// Pause is how long the clients of the Service got nothing acknowledged.
	Pause journal.Pause
	// Acked counts the acknowledged rows of all writers, Missing are those that the active site lacks now.
	Acked   int
	Missing []journal.Commit
	// Held is all that the active site has executed now: its binary logs lack what a clone brought.
	Held gtid.Set
	// Overlaps are moments at which two sites may have accepted commits.
	Overlaps []journal.Overlap
	// ByServers are the same by the servers' own timestamps, and Holes what is missing in their binary logs.
	ByServers []commits.Overlap
	Holes     []string
	// Margin is the shortest time for which nobody accepted anything when the accepting site changed.
	Margin  time.Duration
	Changes []journal.Change
	// Records are the group's failovers since the start, oldest first, and Lost what they say was lost.
	Records []v1alpha1.FailoverRecord
	Lost    int64
}

// Turns is the sequence of active sites from the start on, by the group's own records.
func Turns(before, after *v1alpha1.MysqlFailoverGroup) ([]string, []v1alpha1.FailoverRecord) {
	turns := []string{before.Status.ActiveSite}
	var records []v1alpha1.FailoverRecord
	all := after.Status.Failovers
	for i := len(all) - 1; i >= 0; i-- { // oldest first
		if all[i].Epoch > before.Status.Epoch {
			turns = append(turns, all[i].To)
			records = append(records, all[i])
		}
	}
	return turns, records
}

// epochs are the same turns with the moment at which each epoch was persisted: before that its site may not commit.
func epochs(before *v1alpha1.MysqlFailoverGroup, records []v1alpha1.FailoverRecord) []commits.Turn {
	turns := []commits.Turn{{Site: before.Status.ActiveSite, Epoch: before.Status.Epoch}}
	for _, r := range records {
		turns = append(turns, commits.Turn{Site: r.To, Epoch: r.Epoch, Began: r.StartedAt.Time})
	}
	return turns
}

// recall adds what was remembered to a group's failovers, newest first, where they do not hold it any more.
func recall(records, remembered []v1alpha1.FailoverRecord) []v1alpha1.FailoverRecord {
	all := slices.Clone(records)
	for _, r := range remembered {
		if !slices.ContainsFunc(all, func(known v1alpha1.FailoverRecord) bool { return known.Epoch == r.Epoch }) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.FailoverRecord) int { return cmp.Compare(b.Epoch, a.Epoch) })
	return all
}

// Judge draws the verdict. It asks the active site for its rows, and nothing of it depends on what the operator says,
// but the turns in which sites were allowed to write.
func (w *Witnesses) Judge(ctx context.Context, t Testimony, fault time.Duration) (Verdict, error) {
	after, err := w.Group.Get(ctx)
	if err != nil {
		return Verdict{}, err
	}
	after.Status.Failovers = recall(after.Status.Failovers, w.remembered)
	rows, err := w.Group.Rows(ctx, after.Status.ActiveSite)
	if err != nil {
		return Verdict{}, err
	}
	v, err := judge(w.Before, after, t, rows, fault)
	if err == nil {
		v.Held, err = w.Group.Executed(ctx, after.Status.ActiveSite)
	}
	if err == nil && v.CheckWriters() == nil {
		return v, w.logs.Remove()
	}
	w.Group.Say("the binary logs of all sites are kept in %s", w.logs.Dir())
	return v, err
}

// judge draws the verdict from what was before and after, from what the witnesses saw, and from the rows that are there.
func judge(before, after *v1alpha1.MysqlFailoverGroup, t Testimony, rows map[journal.Key]bool, fault time.Duration) (Verdict, error) {
	v := Verdict{From: before.Status.ActiveSite, To: after.Status.ActiveSite}
	turns, records := Turns(before, after)
	v.Records = records
	for _, r := range records {
		v.Lost += r.LostTransactions
	}
	acked := journal.Commits(t.All()...)
	v.Acked = len(acked)
	v.Overlaps = journal.Overlaps(acked, turns)
	v.Changes = journal.FenceMargins(acked)
	v.Margin, _ = journal.FenceMargin(acked)
	v.Missing = journal.Missing(journal.Commits(t.Rows()...), rows)
	if t.Unread == "" {
		v.ByServers = commits.Overlaps(t.Logs, epochs(before, records))
		v.Holes = commits.Holes(t.Logs, bySite(acked))
	}
	var ok bool
	if v.Pause, ok = journal.LongestPause(t.Service.Commits, fault); !ok {
		return v, errors.New("no row went through the Service after the fault")
	}
	return v, nil
}

// bySite counts commits.
func bySite(acked []journal.Commit) map[string]int {
	count := map[string]int{}
	for _, c := range acked {
		count[c.Site]++
	}
	return count
}

// CheckWriters is the two-writer check, by both judges: an error if it fails, or if it proved nothing.
func (v Verdict) CheckWriters() error {
	if len(v.ByServers) > 0 {
		return fmt.Errorf("two sites committed at the same time by the servers' own timestamps: %v", v.ByServers)
	}
	if len(v.Holes) > 0 {
		return fmt.Errorf("the binary logs are not whole, so they prove nothing: %v", v.Holes)
	}
	if len(v.Overlaps) > 0 {
		return fmt.Errorf("two sites accepted commits at the same time: %v", v.Overlaps)
	}
	if v.From != v.To && len(v.Changes) == 0 {
		return fmt.Errorf("the role moved from %s to %s, but no writer saw commits on both: nothing is proven", v.From, v.To)
	}
	return nil
}

// AwaitExactLoss waits until the newest failover's loss is known for certain, which takes the old active site's return.
func (g *Group) AwaitExactLoss(ctx context.Context, limit time.Duration) (v1alpha1.FailoverRecord, error) {
	group, err := g.Await(ctx, limit, "the loss to be known exactly", func(group *v1alpha1.MysqlFailoverGroup) error {
		if len(group.Status.Failovers) == 0 {
			return errors.New("no failover is recorded")
		}
		if r := group.Status.Failovers[0]; !r.LossExact {
			return fmt.Errorf("failover %s -> %s says %d, not exact yet; %s", r.From, r.To, r.LostTransactions, Describe(group))
		}
		return nil
	})
	if err != nil {
		return v1alpha1.FailoverRecord{}, err
	}
	return group.Status.Failovers[0], nil
}

// CheckLoss compares the group's record of a failover with the data: what the old active site has and the new one
// lacks, and with what the writers know to be missing. A record may count more than is missing: rows that were
// committed on the old site and never acknowledged are lost too, but nobody was promised them.
func (g *Group) CheckLoss(ctx context.Context, r v1alpha1.FailoverRecord, missing []journal.Commit) error {
	oldRows, err := g.Rows(ctx, r.From)
	if err != nil {
		return err
	}
	newRows, err := g.Rows(ctx, r.To)
	if err != nil {
		return err
	}
	var lost int64
	for key := range oldRows {
		if !newRows[key] {
			lost++
		}
	}
	for _, c := range missing {
		if !oldRows[c.Key] {
			return fmt.Errorf("row %v was acknowledged and is on neither site", c.Key)
		}
	}
	if lost != r.LostTransactions {
		return fmt.Errorf("status.failovers says %d transactions were lost, but %s holds %d rows that %s lacks",
			r.LostTransactions, r.From, lost, r.To)
	}
	return nil
}
