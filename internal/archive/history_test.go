// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// act does one random thing in the world.
func act(t *rapid.T, w *world) {
	n := w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(t, "site")]
	many := rapid.IntRange(1, 6).Draw(t, "many")
	switch rapid.SampledFrom([]string{"write", "write", "write", "replicate", "replicate", "rotate", "archive", "archiveAll", "planned", "emergency", "purge", "reclone",
		"backup", "prune", "same"}).Draw(t, "what") {
	case "write":
		for range many {
			w.write()
		}
	case "replicate":
		w.replicate(n, many)
	case "rotate":
		n.rotate()
	case "archive":
		w.archive(many % 3)
	case "archiveAll":
		w.archiveAll()
	case "planned":
		if n != w.active {
			w.planned(n)
		}
	case "emergency":
		if n != w.active {
			w.emergency(n)
		}
	case "purge":
		w.purge(many)
	case "reclone":
		if n != w.active {
			n.clone(w.active)
		}
	case "backup":
		w.backup()
	case "prune":
		w.prune(many % 2)
	case "same":
		w.promote(w.active, KindPlanned)
	}
}

// I26, I27: whatever happens to a group, what the archive takes for the history is the history, and every target is reached exactly or refused
// with a reason that is true.
func TestTheArchiveKnowsTheHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 3).Draw(t, "sites"), rapid.Bool().Draw(t, "tags"))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			act(t, w)
		}
		checkHistory(t, w)
		w.archiveAll()
		checkHistory(t, w)
		checkComplete(t, w)
	})
}

func checkHistory(t *rapid.T, w *world) {
	p := History(w.listing())
	truth := setOf(w.truth)
	if wrong := p.Archived.Subtract(truth); !wrong.IsEmpty() {
		t.Fatalf("I26: %s is taken for the history, which is %s", wrong, truth)
	}
	if wrong := p.Lost.Intersect(truth); !wrong.IsEmpty() {
		t.Fatalf("%s is taken for lost, and is not", wrong)
	}
	seen := gtid.Set{}
	for _, g := range p.Gaps {
		if g.GTIDs.IsEmpty() || !g.GTIDs.Intersect(p.Archived.Union(seen)).IsEmpty() || !truth.Contains(g.GTIDs) {
			t.Fatalf("the gap %s is none; archived is %s", g, p.Archived)
		}
		seen = seen.Union(g.GTIDs)
	}
	have := append([]backupOf{{}}, w.backups...)
	for _, b := range have {
		if b.n > len(w.truth) || !setOf(w.truth[:b.n]).Equal(b.set) {
			checkDiverged(t, p, b)
			continue
		}
		checkTarget(t, w, p, b, Target{Latest: true}, -1)
		for i := b.n; i < len(w.truth); i += 1 + len(w.truth)/16 { // some of them
			checkTarget(t, w, p, b, Target{GTID: w.truth[i].id}, i+1)
			checkTarget(t, w, p, b, Target{BeforeGTID: w.truth[i].id}, i)
			checkTarget(t, w, p, b, Target{Time: micro(w.truth[i].at)}, i+1)
			checkTarget(t, w, p, b, Target{Time: micro(w.truth[i].at - 1)}, i)
		}
		for _, e := range w.epochs {
			opened := gtid.MustParse(e.GTIDExecuted)
			i := int(opened.Count())
			if i >= b.n && truth.Contains(opened) && setOf(w.truth[:i]).Equal(opened) {
				checkTarget(t, w, p, b, Target{BeforeFailover: e.Epoch}, i)
			}
		}
	}
}

// checkDiverged: a backup of what was lost leads nowhere, as soon as the archive shows that.
func checkDiverged(t *rapid.T, p Past, b backupOf) {
	_, err := Plan(p, b.set, Target{Latest: true})
	if !b.set.Intersect(p.Lost).IsEmpty() && (RefusalOf(err) == nil || RefusalOf(err).Kind != BackupDiverged) {
		t.Fatalf("a backup with lost transactions: %v", err)
	}
}

// checkComplete: once all is archived, what is neither there nor before the archive is a gap, and nothing else is; the latest is now.
func checkComplete(t *rapid.T, w *world) {
	p := History(w.listing())
	missing := setOf(w.truth).Subtract(p.Archived).Subtract(p.Base)
	var gaps gtid.Set
	for _, g := range p.Gaps {
		gaps = gaps.Union(g.GTIDs)
	}
	if !gaps.Equal(missing) {
		t.Fatalf("gaps %s, missing %s", gaps, missing)
	}
	if len(w.truth) > 0 && !p.Latest.Equal(w.beat.At) {
		t.Fatalf("latest %s, the heartbeat is of %s", p.Latest, w.beat.At)
	}
	// I27: every retained backup comes to now, unless there is a gap behind it.
	for _, b := range w.backups {
		if b.n > len(w.truth) || !setOf(w.truth[:b.n]).Equal(b.set) || !b.set.Contains(missing.Subtract(b.set)) {
			continue
		}
		if b.at.Before(w.cutoff().At) {
			continue
		}
		r, err := Plan(p, b.set, Target{Latest: true})
		if err != nil || !r.Reaches.Equal(setOf(w.truth).Union(b.set)) {
			t.Fatalf("I27: a retained backup with %s does not come to now: %v: %v", b.set, r, err)
		}
	}
}

// checkTarget follows a route and compares; upTo is how much of the truth it has to lead to, -1 for as much as there is.
func checkTarget(t *rapid.T, w *world, p Past, b backupOf, target Target, upTo int) {
	r, err := Plan(p, b.set, target)
	if err != nil {
		checkRefused(t, w, p, b, target, upTo, err)
		return
	}
	got := slices.Clone(w.truth[:b.n])
	done := b.set
	for i, step := range r.Steps {
		if !done.Contains(p.epoch(step.Epoch).within(step.Previous)) {
			t.Fatalf("%+v: %s comes before what it follows", target, step.Name())
		}
		for _, x := range w.content[step.key()] {
			if !step.Apply.Contains(x.set()) {
				continue
			}
			if i == len(r.Steps)-1 && r.Stop.GTID == x.id && !r.Stop.After || !r.Stop.Time.IsZero() && micro(x.at).After(r.Stop.Time) {
				goto ended
			}
			got, done = append(got, x), done.Union(x.set())
			if i == len(r.Steps)-1 && r.Stop.GTID == x.id {
				goto ended
			}
		}
	}
ended:
	if upTo < 0 {
		upTo = len(got)
	}
	if !r.Reaches.Contains(done) || !slices.Equal(got, w.truth[:upTo]) {
		t.Fatalf("%+v from %s: came to %s, want %s\nroute %+v", target, b.set, setOf(got), setOf(w.truth[:upTo]), r)
	}
}

// checkRefused: a refusal has to be true.
func checkRefused(t *rapid.T, w *world, p Past, b backupOf, target Target, upTo int, err error) {
	r := RefusalOf(err)
	if r == nil {
		t.Fatalf("%+v: %v", target, err)
	}
	if upTo < 0 {
		upTo = len(w.truth)
	}
	needed := setOf(w.truth[b.n:max(b.n, upTo)])
	switch r.Kind {
	case InGap, NotInHistory:
		// Something on the way is not archived; a target right before a transaction needs that one to be found.
		if !target.Time.IsZero() || target.BeforeGTID != "" {
			needed = setOf(w.truth[b.n:min(len(w.truth), max(b.n, upTo)+1)])
		}
		if p.Archived.Contains(needed) {
			t.Fatalf("%+v from %s is refused and all is there: %v", target, b.set, err)
		}
	case BeyondLatest:
		if !target.Time.After(p.Latest) {
			t.Fatalf("%+v: %v", target, err)
		}
	default:
		t.Fatalf("%+v from %s: %v", target, b.set, err)
	}
}
