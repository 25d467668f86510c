// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// found is what a listing of keys found.
type found struct {
	epochs            []string
	manifests         []bucket.Item
	bytes             int64                  // that are read of all of these
	data              map[string]bucket.Item // by key
	replaced          Replaced
	heartbeat, pruned bool
}

// List reads all manifests, but for those that it has read and that are listed as they were then, and looks whether the data that they name is
// there. A manifest that cannot be read is in Unreadable, and the file that it describes is missing. Segments that a sealed log has replaced are
// only counted, however many there are: credentials may not delete.
func (a *Archive) List(ctx context.Context) (Listing, error) {
	l, spoiled, err := a.list(ctx, nil)
	if err == nil && len(spoiled) > 0 {
		l, _, err = a.list(ctx, spoiled) // their segments are needed after all
	}
	return l, err
}

// list is List. Of the logs in whole, segments count although there is the sealed log. spoiled are sealed logs that have replaced segments, and
// cannot be read or are missing.
func (a *Archive) list(ctx context.Context, whole map[string]bool) (l Listing, spoiled map[string]bool, err error) {
	f, err := a.find(ctx, whole)
	if err != nil {
		return Listing{}, nil, err
	}
	logs, epochs, bad, err := a.readAll(ctx, f)
	if err != nil {
		return Listing{}, nil, err
	}
	there, gone, err := a.present(ctx, f, logs)
	if err != nil {
		return Listing{}, nil, err
	}
	l = NewListing(epochs, there).withMissing(gone)
	l.Unreadable = bad
	l.Replaced = l.Replaced.With(f.replaced)
	named := map[string]bool{}
	for _, log := range logs {
		named[log.dataKey()] = true
	}
	l.Bytes = f.replaced.Bytes
	for key, item := range f.data {
		l.Bytes += item.Bytes
		if !named[key] {
			l.Orphans += item.Bytes
		}
	}
	return l, f.replaced.by(l), a.small(ctx, f, &l)
}

// small reads the heartbeat, and what was pruned.
func (a *Archive) small(ctx context.Context, f found, l *Listing) error {
	if f.heartbeat {
		h, err := small(ctx, a, heartbeatKey, parseHeartbeat)
		if err != nil {
			l.Unreadable = append(l.Unreadable, Unreadable{Key: heartbeatKey, Err: err})
		} else {
			l.Heartbeat = &h
		}
	}
	if f.pruned {
		p, err := small(ctx, a, prunedKey, parsePruned)
		if err != nil {
			return err // without it, what was pruned would look like a gap
		}
		l.Pruned = &p
	}
	return nil
}

func (a *Archive) find(ctx context.Context, whole map[string]bool) (found, error) {
	f := found{data: map[string]bucket.Item{}}
	logs := sorter{f: &f, whole: whole}
	err := a.b.EachObject(ctx, "archive", func(i bucket.Item) error {
		switch {
		case i.Key == heartbeatKey:
			f.heartbeat = true
		case i.Key == prunedKey:
			f.pruned = true
		case strings.HasPrefix(i.Key, epochsFolder+"/") && strings.HasSuffix(i.Key, manifestEnd):
			f.epochs = append(f.epochs, i.Key)
			f.bytes += min(i.Bytes, ManifestMax)
		case strings.HasPrefix(i.Key, binlogsFolder+"/"):
			logs.take(i)
		}
		return a.bounded(f)
	})
	if err != nil {
		return f, err
	}
	logs.flush()
	return f, a.bounded(f)
}

// bounded refuses what would not fit into memory.
func (a *Archive) bounded(f found) error {
	switch {
	case len(f.manifests) > filesMax || len(f.epochs) > epochsMax:
		return fmt.Errorf("list %s: there are more files in the archive than can be looked at: keep fewer backups, so that it is pruned", a.Location())
	case f.bytes > a.bytesMost:
		return fmt.Errorf("list %s: the manifests in the archive have more than %d bytes together, and there is no memory for more: give this program more memory, "+
			"and keep fewer backups, so that the archive is pruned", a.Location(), a.bytesMost)
	}
	return nil
}

// sorter takes the objects of logs in the order of their keys, and holds those of one log at a time. What it does not get together counts as needed.
type sorter struct {
	f     *found
	whole map[string]bool
	log   string
	held  []piece
}

// piece is one object of a file.
type piece struct {
	bucket.Item
	file     string
	manifest bool
}

func (s *sorter) take(i bucket.Item) {
	file, log := fileOf(i.Key)
	if log != s.log {
		s.flush()
		s.log = log
	}
	s.held = append(s.held, piece{i, file, strings.HasSuffix(i.Key, manifestEnd)})
}

// flush puts away the objects of one log. Its segments are replaced if its sealed log is there.
func (s *sorter) flush() {
	told, data := map[string]bool{}, map[string][]bucket.Item{} // by file
	for _, p := range s.held {
		if p.manifest {
			told[p.file] = true
		} else {
			data[p.file] = append(data[p.file], p.Item)
		}
	}
	sealed := told[s.log] && len(data[s.log]) > 0 && !s.whole[s.log]
	for _, p := range s.held {
		switch replaced := sealed && p.file != s.log && told[p.file]; {
		case replaced && p.manifest:
			s.f.replaced.add(s.log, p.Key, data[p.file])
		case replaced: // added with its manifest
		case p.manifest:
			s.f.manifests = append(s.f.manifests, p.Item)
			s.f.bytes += min(p.Bytes, ManifestMax)
		default:
			s.f.data[p.Key] = p.Item
		}
	}
	s.held = s.held[:0]
}

// fileOf is the file that an object of a folder belongs to, as LogManifest.file with its folder, and the log that this is all or a part of.
func fileOf(key string) (file, log string) {
	if manifest, ok := manifestOf(key); ok {
		key = manifest
	}
	file = strings.TrimSuffix(key, manifestEnd)
	dot := strings.LastIndexByte(file, '.')
	if dot > 0 && len(file)-dot-1 == fromDigits && strings.Trim(file[dot+1:], "0123456789") == "" {
		return file, file[:dot]
	}
	return file, file
}

// fromDigits is how many digits there are in the name of a segment; a log has fewer.
const fromDigits = 12
