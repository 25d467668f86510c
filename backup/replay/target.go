// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Start is a backup, as far as it matters for what can be reached from it.
type Start struct {
	Have gtid.Set
	// Epoch is the one that it was made in. Between StartedAt and FinishedAt its snapshot was taken.
	Epoch                 int64
	StartedAt, FinishedAt time.Time
}

// Road is how a server comes from a backup to a target.
type Road struct {
	// Target is exactly what the server has executed at the end.
	Target gtid.Set
	Logs   []Log
	// Bytes is how much of the archive is read, unpacked.
	Bytes int64
}

// Map is the archive of a group, as it was listed once.
type Map struct {
	archive *archive.Archive
	listing archive.Listing
	past    archive.Past
	ids     bucket.Identities
}

// Survey lists the archive.
func Survey(ctx context.Context, a *archive.Archive, ids bucket.Identities) (*Map, error) {
	l, err := a.List(ctx)
	if err != nil {
		return nil, err
	}
	return &Map{archive: a, listing: l, past: archive.History(l), ids: ids}, nil
}

// Past is the history that the archive tells of.
func (m *Map) Past() archive.Past { return m.past }

// Find finds the road to a target, by reading no more of the archive than where the target lies. Nothing is applied. Errors are refusals
// (archive.RefusalOf), or those of the storage.
func (m *Map) Find(ctx context.Context, from Start, t archive.Target) (Road, error) {
	if err := m.within(from, t); err != nil {
		return Road{}, err
	}
	route, err := archive.Plan(m.past, from.Have, t)
	if err != nil {
		return Road{}, m.explain(err, t)
	}
	if route, err = m.archive.Resolve(ctx, route, m.ids); err != nil {
		return Road{}, m.explain(err, t)
	}
	if !t.Time.IsZero() {
		if err := m.nothingLater(ctx, from, t.Time); err != nil {
			return Road{}, err
		}
	}
	return m.road(route.Steps, route.Reaches), nil
}

// Onto is the road to an exact set, which an earlier Find has found: the archive may have grown since.
func (m *Map) Onto(from Start, target gtid.Set) (Road, error) {
	past := m.past
	past.Unseen = nil // the set is known
	route, err := archive.Plan(past, from.Have, archive.Target{Latest: true})
	if err != nil {
		return Road{}, err
	}
	have := from.Have
	for i := range route.Steps {
		step := &route.Steps[i]
		step.Apply = step.Apply.Intersect(target)
		have = have.Union(step.Apply)
	}
	if !have.Equal(target) {
		return Road{}, &archive.Refusal{Kind: archive.InGap, Message: fmt.Sprintf("an earlier try was to reach %.200q, and the archive does not hold %.200q any more: "+
			"delete the group and its volumes, and make it again", target, target.Subtract(have))}
	}
	return m.road(route.Steps, target), nil
}

func (m *Map) road(steps []archive.Step, target gtid.Set) Road {
	r := Road{Target: target}
	for _, step := range steps {
		if step.Apply.IsEmpty() {
			continue
		}
		log := Log{Name: step.Name(), Run: m.run(step.Log), Has: step.Apply, Bytes: step.To - step.From, Open: m.open(step.Log)}
		if step.From > 0 {
			log.Begin = m.begin(step.Log)
		}
		r.Bytes += log.Bytes
		r.Logs = append(r.Logs, log)
	}
	return r
}

func (m *Map) run(l archive.Log) string {
	return fmt.Sprintf("%d-%s-%s/%s", l.Epoch, l.Site, l.ServerUUID, l.Log)
}

func (m *Map) open(l archive.Log) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) { return m.archive.Read(ctx, l, m.ids) }
}

// begin opens what has the format description of a segment: the first segment of its log, or, if that was removed, another log of its
// server.
func (m *Map) begin(l archive.Log) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		var other *archive.Log
		for i, o := range m.listing.Logs {
			switch {
			case o.From > 0 || o.ServerUUID != l.ServerUUID:
			case m.run(o) == m.run(l):
				return m.archive.Read(ctx, o, m.ids)
			case other == nil || o.Epoch <= l.Epoch:
				other = &m.listing.Logs[i]
			}
		}
		if other == nil {
			return nil, fmt.Errorf("%w: no format description of its server is archived", ErrDamaged)
		}
		return m.archive.Read(ctx, *other, m.ids)
	}
}

// within refuses a backup that cannot be shown to be in the past of the target.
func (m *Map) within(from Start, t archive.Target) error {
	unknown := from.Have.Subtract(m.past.Archived).Subtract(m.past.Base)
	if !t.Time.IsZero() {
		if t.Time.Before(from.StartedAt) || t.Time.Before(from.FinishedAt) && !unknown.IsEmpty() {
			return &archive.Refusal{Kind: archive.BackupTooNew, Message: fmt.Sprintf("the backup was made from %s to %s, and the target is %s: choose a backup that was made before",
				stamp(from.StartedAt), stamp(from.FinishedAt), stamp(t.Time))}
		}
	}
	for _, e := range m.past.Epochs {
		if e.Epoch.Epoch <= from.Epoch || !e.Known || e.Unknown {
			continue
		}
		opened, err := gtid.Parse(e.GTIDExecuted)
		if err != nil {
			continue // the archive has checked it
		}
		if beyond := unknown.Subtract(opened); !beyond.IsEmpty() {
			return &archive.Refusal{Kind: archive.BackupDiverged, Message: fmt.Sprintf("the backup holds %d transactions (%.200s) that epoch %d did not begin with: "+
				"a failover lost them; choose another backup", beyond.Count(), beyond, e.Epoch.Epoch)}
		}
	}
	return nil
}

// explain says of a lost transaction which failover lost it.
func (m *Map) explain(err error, t archive.Target) error {
	r := archive.RefusalOf(err)
	if r == nil || r.Kind != archive.WasLost {
		return err
	}
	text := t.GTID + t.BeforeGTID
	id, parsed := gtid.Parse(text)
	if parsed != nil {
		return err
	}
	for i, e := range m.past.Epochs {
		if !e.Lost.Contains(id) {
			continue
		}
		by := "a later one"
		if i+1 < len(m.past.Epochs) {
			by = fmt.Sprintf("the failover that began epoch %d", m.past.Epochs[i+1].Epoch.Epoch)
		}
		return &archive.Refusal{Kind: archive.WasLost, Message: fmt.Sprintf("%s was committed by site %s in epoch %d and lost by %s, so it is no part of the history: "+
			"`kubectl mfg backup lost` shows what was lost; choose another target", text, e.Site, e.Epoch.Epoch, by)}
	}
	return err
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// nothingLater refuses a backup that holds what was committed after a time. Only files that hold earlier and later transactions are read.
func (m *Map) nothingLater(ctx context.Context, from Start, t time.Time) error {
	for _, log := range m.past.Files {
		if !log.Last().After(t) || log.Set.Intersect(from.Have).Intersect(m.past.Archived).IsEmpty() {
			continue
		}
		var later archive.Transaction
		err := m.transactions(ctx, log, func(x archive.Transaction) error {
			if x.Committed.After(t) && x.GTID != "" && from.Have.Contains(x.ID) {
				later = x
				return archive.ErrDone
			}
			return nil
		})
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", log.Name(), err)
		case later.GTID != "":
			return &archive.Refusal{Kind: archive.BackupTooNew, Message: fmt.Sprintf("the backup holds %s, which was committed at %s, after the target %s: "+
				"choose one that was made before", later.GTID, stamp(later.Committed), stamp(t))}
		}
	}
	return nil
}

// transactions tells of those of a file, in order.
func (m *Map) transactions(ctx context.Context, l archive.Log, do func(archive.Transaction) error) error {
	in, err := m.archive.Read(ctx, l, m.ids)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it may not be read to its end
	return archive.Transactions(in, l, do)
}
