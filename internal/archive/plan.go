// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Target is a point in the history. Exactly one field is set.
type Target struct {
	// Time: everything up to the first transaction of the history that was committed after it, which stays out.
	Time time.Time
	// GTID is one transaction, the last to be applied; BeforeGTID is one, the first that is not.
	GTID, BeforeGTID string
	// BeforeFailover is an epoch: what its site had when it was opened, so without what that failover lost.
	BeforeFailover int64
	// Latest: all that the archive holds.
	Latest bool
}

// Step is one file to apply.
type Step struct {
	Log
	// Apply are the transactions of it that are to be applied, Leave those that must not be: lost, or beyond the target. What is in
	// neither is there already.
	Apply, Leave gtid.Set
}

// Stop ends the last step before its end. The zero value does not.
type Stop struct {
	// GTID is where to stop: behind it if After is true, before it otherwise.
	GTID  string
	After bool
	// Time stops before the first transaction of the steps, among those to apply, that was committed later. Archive.Resolve makes a GTID
	// of it, which whoever applies a route calls first: Apply and Reaches are exact only then.
	Time time.Time
}

// Route is how a server comes to a target: the steps in order, and where to end.
type Route struct {
	Steps []Step
	Stop  Stop
	// Reaches is what the server has at the end; with a Stop, the most that it may have.
	Reaches gtid.Set
}

// RefusalKind is why a target cannot be reached.
type RefusalKind string

// The kinds.
const (
	// BadTarget: not exactly one target, or no GTID.
	BadTarget RefusalKind = "BadTarget"
	// InGap: what leads to the target is not in the archive.
	InGap RefusalKind = "InGap"
	// BeyondLatest: the target is later than anything that the archive knows.
	BeyondLatest RefusalKind = "BeyondLatest"
	// NotInHistory: the archive does not hold the transaction, or knows no such epoch.
	NotInHistory RefusalKind = "NotInHistory"
	// WasLost: the transaction was lost by a failover, and belongs to no recovery.
	WasLost RefusalKind = "WasLost"
	// BackupTooNew: the backup holds more than the target.
	BackupTooNew RefusalKind = "BackupTooNew"
	// BackupDiverged: the backup holds what a failover lost.
	BackupDiverged RefusalKind = "BackupDiverged"
)

// Refusal is why there is no route, for people.
type Refusal struct {
	Kind    RefusalKind
	Message string
	// Gap is what is missing, if that is why.
	Gap *Gap
}

func (r *Refusal) Error() string { return r.Message }

func refuse(kind RefusalKind, format string, args ...any) error {
	return &Refusal{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// RefusalOf is the refusal in an error, or nil.
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

// planner finds a route.
type planner struct {
	past Past
	have gtid.Set // what the server begins with
	done gtid.Set // that, and what the steps apply
	want gtid.Set // what is to be applied at most
	id   gtid.Set // the transaction of the target, if it is one
	t    Target
}

// Plan says which files lead a server that has some transactions to a target, in which order, and where to stop. It applies nothing that a
// failover lost (I26), and refuses a target behind a gap.
func Plan(p Past, have gtid.Set, t Target) (Route, error) {
	pl := &planner{past: p, have: have, done: have, t: t}
	if diverged := have.Intersect(p.Lost); !diverged.IsEmpty() {
		return Route{}, refuse(BackupDiverged, "the backup holds %d transactions that a failover lost (%s): choose one that was made before them, or of the later site",
			diverged.Count(), clip(diverged.String()))
	}
	if err := pl.check(); err != nil {
		return Route{}, err
	}
	return pl.route()
}

// check refuses what is no target of this archive, and sets what is wanted.
func (pl *planner) check() error {
	pl.want = pl.past.Archived.Subtract(pl.have)
	set := 0
	for _, is := range []bool{!pl.t.Time.IsZero(), pl.t.GTID != "", pl.t.BeforeGTID != "", pl.t.BeforeFailover != 0, pl.t.Latest} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return refuse(BadTarget, "%d targets are given: choose exactly one of a time, a GTID, before a GTID, before a failover, and the latest point", set)
	case !pl.t.Time.IsZero():
		return pl.checkTime()
	case pl.t.BeforeFailover != 0:
		return pl.checkFailover()
	case pl.t.Latest:
		return nil
	}
	return pl.checkGTID(pl.t.GTID + pl.t.BeforeGTID)
}

func (pl *planner) checkTime() error {
	t := pl.t.Time
	if t.After(pl.past.Latest) {
		return refuse(BeyondLatest, "%s is later than what the archive can recover: its latest point is %s", stamp(t), stamp(pl.past.Latest))
	}
	for _, g := range pl.past.Gaps {
		if !pl.have.Contains(g.GTIDs) && t.After(g.After) && t.Before(g.Before) {
			return inGap(g, "%s lies in a gap of the archive: %s are missing; choose a time outside of it", stamp(t), g)
		}
	}
	for _, log := range pl.past.Files {
		if first := log.First(); first.After(t) && !log.Set.Intersect(pl.have).IsEmpty() {
			return refuse(BackupTooNew, "the backup holds transactions later than %s: choose one that was made before", stamp(t))
		}
	}
	return nil
}

func (pl *planner) checkFailover() error {
	for _, e := range pl.past.Epochs {
		if e.Epoch.Epoch != pl.t.BeforeFailover {
			continue
		}
		if e.Unknown {
			return refuse(NotInHistory, "the archive does not know what epoch %d began with: choose a time or a GTID", pl.t.BeforeFailover)
		}
		opened, err := gtid.Parse(e.GTIDExecuted)
		if err != nil {
			return refuse(NotInHistory, "the set that epoch %d began with cannot be read", pl.t.BeforeFailover)
		}
		if beyond := pl.have.Subtract(opened); !beyond.IsEmpty() {
			return refuse(BackupTooNew, "the backup holds %d transactions that epoch %d did not begin with (%s): choose one that was made before", beyond.Count(),
				pl.t.BeforeFailover, clip(beyond.String()))
		}
		pl.want = pl.want.Intersect(opened)
		if missing := opened.Subtract(pl.have).Subtract(pl.want); !missing.IsEmpty() {
			return pl.missing(missing)
		}
		return nil
	}
	return refuse(NotInHistory, "the archive knows no epoch %d", pl.t.BeforeFailover)
}

func (pl *planner) checkGTID(text string) error {
	id, err := gtid.Parse(text)
	if err != nil || id.Count() != 1 {
		return refuse(BadTarget, "%.80q is not the GTID of one transaction", text)
	}
	pl.id = id
	switch {
	case pl.past.Lost.Contains(id):
		return refuse(WasLost, "%s was lost by a failover, so no recovery reaches it: `kubectl mfg backup lost` can write it out", text)
	case pl.have.Contains(id):
		return refuse(BackupTooNew, "the backup holds %s already: choose one that was made before", text)
	case pl.past.Archived.Contains(id):
		return nil
	}
	for _, g := range pl.past.Gaps {
		if g.GTIDs.Contains(id) {
			return inGap(g, "%s lies in a gap of the archive: %s are missing; choose another target", text, g)
		}
	}
	return refuse(NotInHistory, "the archive does not hold %s", text)
}

// route takes, again and again, the first file that brings anything and whose predecessors are there.
func (pl *planner) route() (Route, error) {
	var r Route
	for !pl.want.Subtract(pl.done).IsEmpty() {
		i := pl.next()
		if i < 0 && pl.onlyLater() {
			r.Reaches = pl.done
			return r, nil
		}
		if i < 0 {
			return Route{}, pl.stuck()
		}
		log := pl.past.Files[i]
		if t := pl.t.Time; !t.IsZero() && log.First().After(t) {
			r.Reaches = pl.done
			return r, nil // all of it is later, and so is what follows
		}
		apply := pl.brings(log)
		pl.done = pl.done.Union(apply)
		r.Steps = append(r.Steps, Step{Log: log, Apply: apply, Leave: log.Set.Subtract(pl.done)})
		if pl.ends(&r, log) {
			r.Reaches = pl.done
			return r, nil
		}
	}
	r.Reaches = pl.done
	return r, pl.all()
}

// all refuses a route that took everything, and something of what was before is neither there nor in the archive. Of a failover it is known
// already.
func (pl *planner) all() error {
	if pl.t.BeforeFailover != 0 {
		return nil
	}
	if missing := allKnown(pl.past).Subtract(pl.done); !missing.IsEmpty() {
		return pl.missing(missing)
	}
	return nil
}

// next is the first file that brings anything and can be applied now; -1 if there is none.
func (pl *planner) next() int {
	return slices.IndexFunc(pl.past.Files, func(log Log) bool {
		return !pl.brings(log).IsEmpty() && pl.done.Contains(pl.before(log))
	})
}

// brings is what a file has that is wanted now, which is nothing of one that was applied. What its own epoch lost is not taken from it, even if
// somebody applied it again later: it has its place in the order there.
func (pl *planner) brings(log Log) gtid.Set {
	return pl.past.epoch(log.Epoch).within(log.Set).Intersect(pl.want).Subtract(pl.done)
}

// before is what of the history must be there before a file is applied.
func (pl *planner) before(log Log) gtid.Set { return pl.past.epoch(log.Epoch).within(log.Previous) }

// ends is true if the target is in the file just added, or cannot be in a later one.
func (pl *planner) ends(r *Route, log Log) bool {
	switch {
	case !pl.id.IsEmpty() && pl.done.Contains(pl.id):
		r.Stop = Stop{GTID: pl.id.String(), After: pl.t.GTID != ""}
		return true
	case !pl.t.Time.IsZero() && log.Last().After(pl.t.Time):
		r.Stop = Stop{Time: pl.t.Time}
		// The later ones of its transactions may be among those that stay out.
		return pl.past.Archived.Contains(log.Set)
	}
	return false
}

// onlyLater is true if what is left was all committed after the target: a gap is no matter then that begins with the target, or after it. What
// was before the archive, and what a gap lacks that begins before the target, may have been committed until then.
func (pl *planner) onlyLater() bool {
	if pl.t.Time.IsZero() || !pl.done.Contains(pl.past.Base) {
		return false
	}
	for _, g := range pl.past.Gaps {
		if g.After.Before(pl.t.Time) && !pl.done.Contains(g.GTIDs) {
			return false
		}
	}
	return !slices.ContainsFunc(pl.past.Files, func(log Log) bool { return !pl.brings(log).IsEmpty() && !log.First().After(pl.t.Time) })
}

// stuck says what is missing.
func (pl *planner) stuck() error {
	for _, log := range pl.past.Files {
		if !pl.brings(log).IsEmpty() {
			return pl.missing(pl.before(log).Subtract(pl.done))
		}
	}
	return refuse(InGap, "the archive does not hold all that leads to the target")
}

func (pl *planner) missing(s gtid.Set) error {
	for _, g := range pl.past.Gaps {
		if !g.GTIDs.Intersect(s).IsEmpty() {
			return inGap(g, "the target lies behind a gap of the archive: %s are missing; choose a target before it, or a backup that was made after it", g)
		}
	}
	if !s.Intersect(pl.past.Base).IsEmpty() {
		return refuse(InGap, "%d transactions between the backup and the beginning of the archive are missing (%s): choose a later backup", s.Count(), clip(s.String()))
	}
	return refuse(InGap, "%d transactions that lead to the target are not archived (%s)", s.Count(), clip(s.String()))
}

func inGap(g Gap, format string, args ...any) error {
	return &Refusal{Kind: InGap, Message: fmt.Sprintf(format, args...), Gap: &g}
}
