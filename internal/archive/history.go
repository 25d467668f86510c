// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Past is what the archive says about the history of the group.
type Past struct {
	// Epochs are all epochs with an object or files in the archive, the oldest first.
	Epochs []EpochPast
	// Files are those that hold anything of the history, in the order of Listing.Logs.
	Files []Log
	// Archived are the transactions of the history that the archive holds, Lost those that it holds and that no later epoch knew.
	Archived, Lost gtid.Set
	// Base is what is before the archive, from Pruned or else from the first file: every recovery begins with a backup that holds it.
	Base gtid.Set
	// Gaps are sorted, the oldest first.
	Gaps []Gap
	// Earliest is the first commit of the history in the archive, Latest the latest point that can be recovered if there is no gap:
	// everything that was committed until then is archived. Both are zero if there is nothing.
	Earliest, Latest time.Time
	// Unseen is an object that cannot be read, behind which nothing shows what it held: there is no telling how far the history goes.
	Unseen *Unreadable
}

// EpochPast is one epoch.
type EpochPast struct {
	Epoch
	// Known is true if the archive has an object of it; otherwise only its number, site and server are known, and its set is not.
	Known bool
	// Archived is what its folders hold, Kept the part of it that belongs to the history, Lost the part that no later epoch knew.
	Archived, Kept, Lost gtid.Set
	// First and Last are the earliest and latest commits in its folders; zero without files.
	First, Last time.Time
	// SeenAt is the time until which its site is archived: every earlier commit there is in the archive. It is zero without files.
	SeenAt time.Time
	Files  int
	Bytes  int64

	// previous is what its servers had executed before its files, or in one whose data is missing; gone is true if there is one.
	previous gtid.Set
	gone     bool
	// allowed is what every later epoch knows; any is true if no later epoch says anything.
	allowed gtid.Set
	any     bool
}

// Gap is a part of the history that the archive lacks.
type Gap struct {
	GTIDs gtid.Set
	// After is the last archived commit before it, Before the first archived one after it. Either may be zero.
	After, Before time.Time
	// Epoch and Site are those of the file that shows that the transactions existed.
	Epoch int64
	Site  string
}

// String describes the gap for people.
func (g Gap) String() string {
	text := fmt.Sprintf("%d transactions (%s)", g.GTIDs.Count(), clip(g.GTIDs.String()))
	if !g.After.IsZero() {
		text += " after " + stamp(g.After)
	}
	if !g.Before.IsZero() {
		text += " before " + stamp(g.Before)
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// clip keeps a message readable.
func clip(text string) string {
	const most = 400
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// History reads a listing. It decides what belongs to the history of the group (I26), what is lost and what is missing.
func History(l Listing) Past {
	p := Past{Epochs: epochsOf(l), Unseen: unseenEnd(l)}
	judge(&p)
	all := l.told()
	for _, log := range l.Logs {
		if !log.Set.Intersect(p.Archived).IsEmpty() {
			p.Files = append(p.Files, log)
		}
	}
	switch {
	case l.Pruned != nil:
		// Transactions that neither the oldest retained backup nor a file holds are missing.
		p.Base = p.epoch(l.Pruned.Epoch).within(l.prunedSet())
	case len(all) > 0:
		p.Base = p.epoch(all[0].Epoch).within(all[0].Previous)
	}
	p.Gaps = gapsOf(p, all)
	p.Earliest, p.Latest = span(p, l)
	return p
}

// epochsOf returns a row for each epoch that has an object or a file, with what its folders hold.
func epochsOf(l Listing) []EpochPast {
	rows := map[int64]*EpochPast{}
	for _, e := range l.Epochs {
		rows[e.Epoch] = &EpochPast{Epoch: e, Known: true}
	}
	for _, log := range l.told() {
		r := rows[log.Epoch]
		if r == nil {
			r = &EpochPast{Epoch: Epoch{Epoch: log.Epoch, Site: log.Site, ServerUUID: log.ServerUUID, Unknown: true}}
			rows[log.Epoch] = r
		}
		r.add(log)
	}
	out := make([]EpochPast, 0, len(rows))
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b EpochPast) int { return int(min(1, max(-1, a.Epoch.Epoch-b.Epoch.Epoch))) })
	return out
}

func (r *EpochPast) add(log Log) {
	if r.ServerUUID == "" {
		r.ServerUUID = log.ServerUUID
	}
	r.previous = r.previous.Union(log.Previous)
	if log.Gone { // what it held is not archived, but its server had executed it
		r.gone, r.previous = true, r.previous.Union(log.Set)
		return
	}
	r.Archived = r.Archived.Union(log.Set)
	r.Files++
	r.Bytes += log.Object.Bytes
	if first := log.First(); !first.IsZero() && (r.First.IsZero() || first.Before(r.First)) {
		r.First = first
	}
	if last := log.Last(); last.After(r.Last) {
		r.Last = last
	}
	if log.SeenAt.After(r.SeenAt) {
		r.SeenAt = log.SeenAt
	}
}

// judge decides for each epoch what belongs to the history, from the newest back: I26.
func judge(p *Past) {
	allowed, unbound := gtid.Set{}, true
	for i := len(p.Epochs) - 1; i >= 0; i-- {
		e := &p.Epochs[i]
		e.allowed, e.any = allowed, unbound
		e.Kept = e.within(e.Archived)
		p.Archived = p.Archived.Union(e.Kept)
		knows, says := e.knows()
		if i > 0 && sameServer(p.Epochs[i-1], *e) {
			// Nothing was lost between them, and the operator may have seen the set a moment before the epoch began.
			knows = knows.Union(p.Epochs[i-1].Archived).Union(p.Epochs[i-1].previous)
		}
		switch {
		case !says:
		case unbound:
			allowed, unbound = knows, false
		default:
			allowed = allowed.Intersect(knows)
		}
	}
	for i := range p.Epochs {
		e := &p.Epochs[i]
		e.Lost = e.Archived.Subtract(p.Archived)
		p.Lost = p.Lost.Union(e.Lost)
	}
}

// sameServer is true for two consecutive epochs of one server.
func sameServer(before, after EpochPast) bool {
	return before.ServerUUID != "" && before.ServerUUID == after.ServerUUID && before.Epoch.Epoch+1 == after.Epoch.Epoch
}

// within is the part of a set that every later epoch knows.
func (r *EpochPast) within(s gtid.Set) gtid.Set {
	if r.any {
		return s
	}
	return s.Intersect(r.allowed)
}

// knows is the set of an epoch: what its site had when it was opened or, if that is not known, what its server's own logs hold or name. What
// was applied there later belongs to that epoch. says is false if nothing is known about it.
func (r *EpochPast) knows() (s gtid.Set, says bool) {
	if r.Known && !r.Unknown {
		opened, err := gtid.Parse(r.GTIDExecuted)
		if err == nil { // always: the set was checked when it was read
			return opened, true
		}
	}
	return r.previous.Union(r.Archived), r.Files > 0 || r.gone
}

// epoch is the row of an epoch, which exists for every file. For another epoch it is a row with what the later epochs know.
func (p Past) epoch(n int64) *EpochPast {
	for i := range p.Epochs {
		switch e := &p.Epochs[i]; {
		case e.Epoch.Epoch == n:
			return e
		case e.Epoch.Epoch > n:
			r := &EpochPast{allowed: e.allowed, any: e.any}
			if knows, says := e.knows(); says {
				r.allowed, r.any = r.within(knows), false
			}
			return r
		}
	}
	return &EpochPast{any: true}
}

// span is the time from the first to the last moment in the archive, without regard to gaps.
func span(p Past, l Listing) (earliest, latest time.Time) {
	for _, log := range p.Files {
		if first := log.First(); !first.IsZero() && (earliest.IsZero() || first.Before(earliest)) {
			earliest = first
		}
	}
	newest := int64(-1)
	for i, e := range p.Epochs {
		if e.Files > 0 {
			latest = e.SeenAt
			// Another site was opened meanwhile: these files do not have what was committed there since.
			if i+1 < len(p.Epochs) && !p.Epochs[i+1].PromotedAt.IsZero() && p.Epochs[i+1].PromotedAt.Before(latest) {
				latest = p.Epochs[i+1].PromotedAt
			}
		}
		newest = max(newest, e.Epoch.Epoch)
	}
	if h := l.Heartbeat; h != nil && h.Epoch >= newest && h.At.After(latest) {
		executed, err := gtid.Parse(h.GTIDExecuted)
		// If the server had executed more than the archive holds, that was archived later or not at all: then the heartbeat proves nothing.
		if err == nil && allKnown(p).Contains(executed) {
			latest = h.At
		}
	}
	return earliest, latest
}

// allKnown is what is archived, was before the archive, or is known to be missing.
func allKnown(p Past) gtid.Set {
	s := p.Archived.Union(p.Base)
	for _, g := range p.Gaps {
		s = s.Union(g.GTIDs)
	}
	return s
}
