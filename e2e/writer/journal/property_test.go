// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// history draws turns of sites that are apart in time, and the commits of each turn.
func history(t *rapid.T) (commits []Commit, order []string) {
	sites := []string{"a", "b", "c"}
	now := time.Duration(0)
	for turn := range rapid.IntRange(1, 5).Draw(t, "turns") {
		site := sites[(turn+rapid.IntRange(0, 2).Draw(t, "site"))%len(sites)]
		order = append(order, site)
		end := now
		for range rapid.IntRange(0, 6).Draw(t, "commits") {
			start := now + time.Duration(rapid.IntRange(0, 50).Draw(t, "start"))
			ack := start + time.Duration(rapid.IntRange(0, 30).Draw(t, "takes"))
			end = max(end, ack)
			commits = append(commits, Commit{Server: Server{Site: site}, Start: start, Ack: ack})
		}
		now = end + time.Duration(rapid.IntRange(1, 100).Draw(t, "margin"))
	}
	return commits, order
}

// atOnce is the slow obvious check: two commits of different sites whose spans meet.
func atOnce(commits []Commit) bool {
	for _, x := range commits {
		for _, y := range commits {
			if x.Site != y.Site && x.Start <= y.Ack && y.Start <= x.Ack {
				return true
			}
		}
	}
	return false
}

func TestTurnsThatAreApartDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commits, order := history(t)
		shuffled := rapid.Permutation(commits).Draw(t, "shuffled")
		if got := Overlaps(shuffled, order); len(got) != 0 {
			t.Fatalf("overlaps %v in %v", got, commits)
		}
		if margin, ok := FenceMargin(shuffled); ok && margin < 1 {
			t.Fatalf("margin %v though every turn is apart", margin)
		}
	})
}

func TestCommitsAtTheSameTimeAreAlwaysSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var commits []Commit
		for range rapid.IntRange(0, 12).Draw(t, "commits") {
			start := time.Duration(rapid.IntRange(0, 100).Draw(t, "start"))
			commits = append(commits, Commit{
				Server: Server{Site: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "site")},
				Start:  start, Ack: start + time.Duration(rapid.IntRange(0, 40).Draw(t, "takes")),
			})
		}
		if atOnce(commits) && len(Overlaps(commits, nil)) == 0 {
			t.Fatalf("no overlap found in %v", commits)
		}
	})
}

func TestStrangerInsideATurnIsAlwaysSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commits, order := history(t)
		if len(commits) == 0 {
			t.Skip("nobody wrote")
		}
		within := rapid.SampledFrom(commits).Draw(t, "within")
		commits = append(commits, Commit{Server: Server{Site: "stranger"}, Start: within.Start, Ack: within.Ack})
		if len(Overlaps(commits, order)) == 0 {
			t.Fatalf("the stranger's commit was not seen in %v", commits)
		}
	})
}

func TestPeriodsKeepEveryCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commits, _ := history(t)
		n := 0
		for i, p := range Periods(commits) {
			n += p.Commits
			if p.FirstStart > p.FirstAck || p.FirstAck > p.LastAck || p.LastStart > p.LastAck {
				t.Fatalf("period %+v is out of order", p)
			}
			if i > 0 && Periods(commits)[i-1].Site == p.Site {
				t.Fatalf("two periods of %s in a row", p.Site)
			}
		}
		if n != len(commits) {
			t.Fatalf("%d commits in periods, %d given", n, len(commits))
		}
	})
}
