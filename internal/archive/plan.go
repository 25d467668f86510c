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
	// Time: everything before the first transaction of the history that was committed later than Time.
	Time time.Time
	// GTID is the last transaction to apply; BeforeGTID is the first one not to apply.
	GTID, BeforeGTID string
	// BeforeFailover is an epoch: the target is what its site had when it was opened, so without what that failover lost.
	BeforeFailover int64
	// Latest: all that the archive holds.
	Latest bool
}

// Step is one file to apply.
type Step struct {
	Log
	// Apply are the transactions of it to apply, Leave those that must not be applied: they are lost, or beyond the target. The server has
	// all others already.
	Apply, Leave gtid.Set
}

// Stop ends the last step early. The zero value does not.
type Stop struct {
	// GTID is where to stop: after it if After is true, before it otherwise.
	GTID  string
	After bool
	// Time stops before the first transaction of the steps, among those to apply, that was committed later. Before a route is applied,
	// call Archive.Resolve, which replaces Time by a GTID: only then are Apply and Reaches exact.
	Time time.Time
}

// Route is how a server reaches a target: the steps in order, and where to end.
type Route struct {
	Steps []Step
	Stop  Stop
	// Reaches is the set that the server has at the end; with a Stop, the largest set that it may have.
	Reaches gtid.Set
}

// RefusalKind says why a target cannot be reached.
type RefusalKind string

// The kinds.
const (
	// BadTarget: not exactly one target, or not a valid GTID.
	BadTarget RefusalKind = "BadTarget"
	// InGap: the archive lacks transactions that lead to the target.
	InGap RefusalKind = "InGap"
	// BeyondLatest: the target is later than anything that the archive knows.
	BeyondLatest RefusalKind = "BeyondLatest"
	// NotInHistory: the archive does not hold the transaction, or knows no such epoch.
	NotInHistory RefusalKind = "NotInHistory"
	// WasLost: the transaction was lost by a failover, and belongs to no recovery.
	WasLost RefusalKind = "WasLost"
	// BackupTooNew: the backup holds more than the target.
	BackupTooNew RefusalKind = "BackupTooNew"
	// BackupDiverged: the backup holds transactions that a failover lost.
	BackupDiverged RefusalKind = "BackupDiverged"
)

// Refusal says to people why there is no route.
type Refusal struct {
	Kind    RefusalKind
	Message string
	// Gap is the gap, if that is the reason.
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
	want gtid.Set // the most that the route may apply
	id   gtid.Set // the transaction of the target, if it is one
	t    Target
}

// Plan says which files bring a server that has some transactions to a target, in which order, and where to stop. It applies nothing that a
// failover lost (I26), and refuses a target after a gap.
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

// check refuses a target that this archive cannot reach, and sets pl.want.
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
		if u := pl.past.Unseen; u != nil {
			return refuse(InGap, "%s cannot be read, so the latest point of the archive is not known: choose a time, a GTID or a failover, or mend the object (%v)", u.Key, u.Err)
		}
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

// route repeatedly takes the first file that brings anything and whose predecessors are there.
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
			return r, nil // all of it is later, and so are the files that follow
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

// all refuses a route that took every file although an earlier transaction is neither on the server nor in the archive. For BeforeFailover,
// checkFailover has looked already, and what is later than a time does not matter to it.
func (pl *planner) all() error {
	if pl.t.BeforeFailover != 0 || pl.onlyLater() {
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

// brings is what is still wanted from a file, which is nothing once the file was applied. It leaves out what the file's own epoch lost, even
// if someone applied that again later: its place in the order is there.
func (pl *planner) brings(log Log) gtid.Set {
	return pl.past.epoch(log.Epoch).within(log.Set).Intersect(pl.want).Subtract(pl.done)
}

// before is the part of the history that a server must have before a file is applied.
func (pl *planner) before(log Log) gtid.Set { return pl.past.epoch(log.Epoch).within(log.Previous) }

// ends is true if the target is in the file just added, or cannot be in a later one.
func (pl *planner) ends(r *Route, log Log) bool {
	switch {
	case !pl.id.IsEmpty() && pl.done.Contains(pl.id):
		r.Stop = Stop{GTID: pl.id.String(), After: pl.t.GTID != ""}
		return true
	case !pl.t.Time.IsZero() && log.Last().After(pl.t.Time):
		r.Stop = Stop{Time: pl.t.Time}
		// Its later transactions may be among those that stay out.
		return pl.past.Archived.Contains(log.Set)
	}
	return false
}

// onlyLater is true if everything that is left was committed after the target: then a gap that begins at the target or after it does not
// matter. What was before the archive, or is in a gap that begins before the target, may have been committed by then.
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
