// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Bounds of a timeline: what is beyond them is left out, the oldest first, and said so.
const (
	epochsMax   = 500
	gapsMax     = 200
	backupsMax  = 500
	problemsMax = 20
	setMax      = 64 << 10
	shortSetMax = 2 << 10
)

// timeline tells what can be recovered, and whether a target can.
func (q *question) timeline(ctx context.Context, c bucket.Config, ask wire.AskTimeline) error {
	b, err := bucket.Open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	entries, err := b.List(ctx)
	if err != nil {
		return err
	}
	t := q.describe()
	for _, e := range newest(entries, backupsMax) {
		t.Backups = append(t.Backups, q.backup(e))
	}
	if err := q.out.line(wire.InspectLine{Timeline: t}); err != nil || ask.Target == nil {
		return err
	}
	check := q.check(ctx, entries, ask)
	return q.out.line(wire.InspectLine{Check: &check})
}

func newest(all []bucket.Entry, most int) []bucket.Entry { return all[:min(len(all), most)] }

func (q *question) describe() *wire.ArchiveTimeline {
	p := q.past
	t := &wire.ArchiveTimeline{Location: q.archive.Location(), Earliest: p.Earliest, Latest: p.Latest, Epochs: []wire.ArchiveEpoch{}, Gaps: []wire.ArchiveGap{},
		Backups: []wire.ArchiveBackup{}, Files: len(q.listing.Logs), Bytes: q.listing.Bytes, Archived: short(p.Archived, setMax)}
	for _, e := range p.Epochs[max(0, len(p.Epochs)-epochsMax):] {
		t.Epochs = append(t.Epochs, wire.ArchiveEpoch{Epoch: e.Epoch.Epoch, Site: e.Site, Kind: e.Kind, PromotedAt: e.PromotedAt, First: e.First, Last: e.Last, SeenAt: e.SeenAt,
			Transactions: e.Kept.Count(), Lost: e.Lost.Count(), LostGTIDs: short(e.Lost, shortSetMax), Files: e.Files, Bytes: e.Bytes})
	}
	for _, g := range p.Gaps[max(0, len(p.Gaps)-gapsMax):] {
		t.Gaps = append(t.Gaps, gapOf(g))
	}
	problems := problemsOf(q.listing)
	t.Problems = problems[:min(len(problems), problemsMax)]
	if h := q.listing.Heartbeat; h != nil {
		t.Heart = &wire.ArchiveHeartbeat{Site: h.Site, Epoch: h.Epoch, At: h.At}
	}
	q.out.full = len(p.Epochs) > epochsMax || len(p.Gaps) > gapsMax || len(problems) > problemsMax
	return t
}

// problemsOf are the objects that cannot be used.
func problemsOf(l archive.Listing) []string {
	var out []string
	for _, u := range l.Unreadable {
		out = append(out, u.Err.Error())
	}
	for _, m := range l.Missing {
		out = append(out, m.Name()+": its data is not in the storage, or was cut")
	}
	return out
}

// short is a set, or nothing if it is longer than may be told.
func short(s gtid.Set, most int) string {
	if text := s.String(); len(text) <= most {
		return text
	}
	return ""
}

func gapOf(g archive.Gap) wire.ArchiveGap {
	return wire.ArchiveGap{GTIDs: short(g.GTIDs, shortSetMax), Transactions: g.GTIDs.Count(), After: g.After, Before: g.Before, Epoch: g.Epoch, Site: g.Site}
}

// backup says whether the archive leads on from a backup.
func (q *question) backup(e bucket.Entry) wire.ArchiveBackup {
	b := wire.ArchiveBackup{Name: e.Name}
	if e.Err != nil {
		b.Why = e.Err.Error()
		return b
	}
	m := e.Manifest
	b.Profile, b.Method, b.Site, b.Epoch, b.FinishedAt, b.Bytes = m.Profile, m.Method, m.Site, m.Epoch, m.FinishedAt, m.StoredBytes()
	have, err := gtid.Parse(m.GTIDExecuted)
	if err == nil {
		_, err = archive.Plan(q.past, have, archive.Target{Latest: true})
	}
	if b.Reaches = err == nil; !b.Reaches {
		b.Why = err.Error()
	}
	return b
}

// check finds the newest backup from which the archive leads to a target, or says why there is none.
func (q *question) check(ctx context.Context, entries []bucket.Entry, ask wire.AskTimeline) wire.TargetCheck {
	target := archive.Target{Time: ask.Target.Time, GTID: ask.Target.GTID, BeforeGTID: ask.Target.BeforeGTID, BeforeFailover: ask.Target.BeforeFailover, Latest: ask.Target.Latest}
	var refused *wire.TargetCheck
	for _, e := range entries {
		if e.Manifest == nil || ask.Backup != "" && e.Name != ask.Backup {
			continue
		}
		have, err := gtid.Parse(e.Manifest.GTIDExecuted)
		if err != nil {
			continue
		}
		route, err := archive.Plan(q.past, have, target)
		if err == nil {
			c := wire.TargetCheck{Backup: e.Name, Files: len(route.Steps)}
			for _, s := range route.Steps {
				c.Bytes += s.Object.Bytes
			}
			return c
		}
		if ctx.Err() != nil {
			break
		}
		c := refusal(err)
		c.Backup = e.Name
		// That a backup is too new says nothing if an older one is refused for another reason.
		if refused == nil || refused.Refusal == string(archive.BackupTooNew) {
			refused = &c
		}
	}
	switch {
	case refused != nil:
		return *refused
	case ask.Backup != "":
		return wire.TargetCheck{Refusal: "NoBackup", Message: "there is no backup " + ask.Backup + " in " + q.archive.Location()}
	}
	return wire.TargetCheck{Refusal: "NoBackup", Message: "there is no backup in " + q.archive.Location() + " to begin with: a restore to a point in time begins with one"}
}

func refusal(err error) wire.TargetCheck {
	r := archive.RefusalOf(err)
	if r == nil {
		return wire.TargetCheck{Refusal: reasonFailed, Message: err.Error()}
	}
	c := wire.TargetCheck{Refusal: string(r.Kind), Message: r.Message}
	if r.Gap != nil {
		g := gapOf(*r.Gap)
		c.Gap = &g
	}
	return c
}
