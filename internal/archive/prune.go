// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// Cutoff is the oldest backup that is retained. The zero value means none, and prunes nothing.
type Cutoff struct {
	Backup string
	At     time.Time
	Set    gtid.Set
}

// Holds is what all of these backups of the group hold, by their manifests. A manifest that cannot be read is an error: nothing may be pruned then.
func (a *Archive) Holds(ctx context.Context, backups []string) (gtid.Set, error) {
	var all gtid.Set
	for i, name := range backups {
		m, err := a.b.ReadManifest(ctx, name)
		if err != nil {
			return gtid.Set{}, err
		}
		held, err := gtid.Parse(m.GTIDExecuted)
		if err != nil {
			return gtid.Set{}, fmt.Errorf("read what backup %s holds: %w", name, err)
		}
		if i == 0 {
			all = held
		}
		all = all.Intersect(held)
	}
	return all, nil
}

// Prunable are the files that no retained backup needs (I27): the oldest retained backup has all that they hold of the history, and any lost
// transactions in them were committed before it was made. Files that name what a backup needs are kept, even if they hold nothing, and so is
// the beginning of a log if any other part of it is. All of the log that the archiver writes is kept.
func Prunable(l Listing, c Cutoff) []Log {
	if c.Set.IsEmpty() {
		return nil // the safe answer: without a backup everything may be needed
	}
	p := History(l)
	newest := int64(-1)
	for _, e := range p.Epochs {
		newest = max(newest, e.Epoch.Epoch)
	}
	newestOf := map[string]string{} // the newest log of each folder
	for _, log := range l.Logs {
		newestOf[log.folder()] = log.whole()
	}
	var out []Log
	all := l.told()
	for _, log := range all {
		beyond := log.Set.Subtract(c.Set).Subtract(p.Lost)
		if log.Gone { // nobody can say of it that it is lost: it is not archived
			beyond = p.epoch(log.Epoch).within(beyond)
		}
		switch {
		case !beyond.IsEmpty():
			// I27: it belongs to the history, and the backup does not hold it.
		case !c.Set.Contains(p.epoch(log.Epoch).within(log.Previous)):
			// What was before it is needed, and so is the record that it existed.
		case !log.Last().Before(c.At):
		case newestOf[log.folder()] == log.whole() && log.Epoch == newest:
			// The archiver continues from it. It goes on behind an unbroken row of segments, and uploads once more what comes after a hole.
		default:
			out = append(out, log)
		}
	}
	return withoutBeginnings(all, out)
}

// withoutBeginnings keeps the first segment of each log that keeps another segment (I27): only the first one has the format description, and
// without that the others cannot be read.
func withoutBeginnings(all, gone []Log) []Log {
	goes, needed := map[string]bool{}, map[string]bool{}
	for _, log := range gone {
		goes[log.key()] = true
	}
	for _, log := range all {
		if log.From > 0 && !goes[log.key()] {
			needed[log.whole()] = true
		}
	}
	return slices.DeleteFunc(gone, func(log Log) bool { return log.From == 0 && needed[log.whole()] })
}

// NextPruned is what the archive need not have once everything before a cutoff is removed, or was never archived.
func NextPruned(l Listing, c Cutoff) Pruned {
	p := History(l)
	s := l.prunedSet().Union(c.Set)
	out := Pruned{Version: FormatVersion, At: c.At.UTC(), Backup: c.Backup, Cutoff: c.At.UTC()}
	if n := len(p.Epochs); n > 0 {
		newest := &p.Epochs[n-1]
		out.Epoch = newest.Epoch.Epoch
		// A backup from before a failover may hold transactions that the failover lost: they do not belong to the history.
		// What the server of the newest epoch has numbered itself does, also before any of it is archived.
		if knows, says := newest.knows(); says {
			s = s.Intersect(knows.Union(newest.previous).Union(newest.Archived).Union(c.Set.OfServer(newest.ServerUUID)))
		}
	}
	out.GTIDExecuted = s.String()
	return out
}

// PutPruned replaces the object that says what the archive need not have.
func (a *Archive) PutPruned(ctx context.Context, p Pruned) error {
	if err := p.check(); err != nil {
		return err
	}
	return a.putSmall(ctx, prunedKey, p, false)
}

// Prune removes files that no retained backup needs, and segments that sealed logs replaced. It returns how many files it removed. If the
// credentials may not delete, the error is bucket.NoDeleteRight, which does no harm.
func (a *Archive) Prune(ctx context.Context, l Listing, c Cutoff) (removed int, err error) {
	remove := func(logs []Log) error {
		for _, log := range logs {
			if err := a.Remove(ctx, log); err != nil {
				return err
			}
			removed++
		}
		return nil
	}
	for _, key := range l.Replaced.keys {
		if err := a.b.RemoveObject(ctx, key); err != nil {
			return removed, err
		}
		if strings.HasSuffix(key, manifestEnd) {
			removed++
		}
	}
	old := Prunable(l, c)
	if len(old) == 0 {
		return removed, nil
	}
	// This comes first: without it, what is removed would look like a gap.
	if err := a.PutPruned(ctx, NextPruned(l, c)); err != nil {
		return removed, err
	}
	if err := remove(old); err != nil {
		return removed, err
	}
	return removed, a.pruneEpochs(ctx, l, old)
}

// pruneEpochs removes epochs before the oldest one that still has a file: they say nothing about any file.
func (a *Archive) pruneEpochs(ctx context.Context, l Listing, gone []Log) error {
	away := map[string]bool{}
	for _, log := range gone {
		away[log.key()] = true
	}
	oldest := int64(-1)
	for _, log := range l.told() {
		if !away[log.key()] {
			oldest = log.Epoch // sorted by epoch
			break
		}
	}
	for i, e := range l.Epochs {
		// The newest stays in any case.
		if e.Epoch >= oldest || i == len(l.Epochs)-1 {
			break
		}
		if err := a.b.RemoveObject(ctx, e.key()); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes data that no manifest names and that is older than before: killed uploads leave it. before must be earlier than the
// beginning of any upload that may still run.
func (a *Archive) Sweep(ctx context.Context, before time.Time) (int, error) {
	f, err := a.find(ctx, nil)
	if err != nil {
		return 0, err
	}
	logs, _, bad, err := a.readAll(ctx, f)
	if err != nil {
		return 0, err
	}
	named := map[string]bool{}
	for _, log := range logs {
		named[path.Join(log.folder(), log.Object.Key)] = true
	}
	blind := map[string]bool{} // folders with an unreadable manifest: it is not known what belongs to them, so all of it stays
	for _, u := range bad {
		blind[path.Dir(u.Key)] = true
	}
	swept := 0
	for key, item := range f.data {
		if named[key] || blind[path.Dir(key)] || !item.ModTime.Before(before) || !strings.HasPrefix(key, binlogsFolder+"/") {
			continue
		}
		// Its manifest may have been written since the listing.
		if manifest, ok := manifestOf(key); ok {
			there, err := a.manifest(ctx, manifest)
			if err != nil && bucket.KindOf(err) != bucket.NotFound || err == nil && path.Base(key) == there.Object.Key {
				continue
			}
		}
		if err := a.b.RemoveObject(ctx, key); err != nil {
			return swept, err
		}
		swept++
	}
	uploads, err := a.b.ForgetUploads(ctx, binlogsFolder, before)
	return swept + uploads, err
}

// manifestOf is the key of the manifest that would name the data with the given key.
func manifestOf(key string) (string, bool) {
	i := strings.LastIndexByte(key, '-')
	if i < 0 || len(key)-i-1 != 16 {
		return "", false
	}
	return key[:i] + manifestEnd, true
}
