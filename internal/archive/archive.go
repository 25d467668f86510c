// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

// Bounds of a listing.
const (
	filesMax    = 200000
	epochsMax   = 20000
	listReaders = 8
	// bytesMax is how long all manifests together may be in a program without a limit of its memory.
	bytesMax = 512 << 20
)

// bytesMost is how long all manifests together may be in a program with this limit of its memory: a listing takes two to three times as
// much, and the cache holds most of it, so a quarter leaves room. Anyone who can write to the storage can make manifests long, and so can servers with very many UUIDs.
func bytesMost(limit int64) int64 { return min(bytesMax, limit/4) }

// Archive is the archive of one group.
type Archive struct {
	b *bucket.Bucket
	// read caches manifests, which we never write over.
	mu   sync.Mutex
	read map[string]known
	// bytesMost is how long all manifests together may be.
	bytesMost int64
	// gone are objects that are known to be missing.
	gone map[string]bool
	// proven is the sealed log that was last read to its end instead of a segment.
	proven bucket.Object
}

// Open opens the archive of a group. It asks the storage nothing.
func Open(ctx context.Context, c bucket.Config) (*Archive, error) {
	return OpenWith(ctx, c, bucket.Patience{})
}

// OpenWith is Open with other pauses while the storage is unreachable.
func OpenWith(ctx context.Context, c bucket.Config, p bucket.Patience) (*Archive, error) {
	b, err := bucket.OpenWith(ctx, c, p)
	if err != nil {
		return nil, err
	}
	return &Archive{b: b, read: map[string]known{}, bytesMost: bytesMost(debug.SetMemoryLimit(-1))}, nil
}

// Close closes the connection to the storage.
func (a *Archive) Close() error { return a.b.Close() }

// Location names the place for people.
func (a *Archive) Location() string { return a.b.Location() }

// Claim makes the place the group's, unless it is another group's: bucket.Foreign. Call it before the first write.
func (a *Archive) Claim(ctx context.Context, uid string, now time.Time) error {
	return a.b.Claim(ctx, uid, now)
}

// IsForeign is true if the place has become another group's than the one with the UID.
func (a *Archive) IsForeign(ctx context.Context, uid string) (bool, error) {
	return a.b.IsForeign(ctx, uid)
}

// readAll reads manifests and epochs, some at a time.
func (a *Archive) readAll(ctx context.Context, f found) ([]Log, []Epoch, []Unreadable, error) {
	keys := slices.Clone(f.epochs)
	for _, m := range f.manifests {
		keys = append(keys, m.Key)
	}
	logs, epochs, errs := make([]*Log, len(keys)), make([]*Epoch, len(keys)), make([]error, len(keys))
	work := make(chan int)
	var readers sync.WaitGroup
	for range listReaders {
		readers.Go(func() {
			for i := range work {
				if i < len(f.epochs) {
					epochs[i], errs[i] = a.epoch(ctx, keys[i])
				} else {
					logs[i], errs[i] = a.listed(ctx, f.manifests[i-len(f.epochs)])
				}
			}
		})
	}
	for i := range keys {
		work <- i
	}
	close(work)
	readers.Wait()
	var ls []Log
	var es []Epoch
	var bad []Unreadable
	for i, key := range keys {
		switch kind := bucket.KindOf(errs[i]); {
		case errs[i] == nil && epochs[i] != nil:
			es = append(es, *epochs[i])
		case errs[i] == nil:
			ls = append(ls, *logs[i])
		case kind == bucket.NotFound: // removed meanwhile
		case kind == bucket.Damaged || kind == bucket.TooNew:
			bad = append(bad, Unreadable{Key: key, Err: errs[i]})
		default:
			return nil, nil, nil, errs[i] // an object that cannot be asked for is not missing
		}
	}
	a.forget(f.manifests)
	return ls, es, bad, nil
}

// forget drops manifests that no longer exist from the cache.
func (a *Archive) forget(there []bucket.Item) {
	keep := map[string]bool{}
	for _, m := range there {
		keep[m.Key] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.read {
		if !keep[key] {
			delete(a.read, key)
		}
	}
}

func (a *Archive) epoch(ctx context.Context, key string) (*Epoch, error) {
	e, err := small(ctx, a, key, parseEpoch)
	if err == nil && e.key() != key {
		err = a.b.Damage(key, errors.New("it is that of another epoch"))
	}
	return &e, err
}

// known is a manifest that was read or written, and how it was listed then.
type known struct {
	log  Log
	mark mark
}

// mark is how the storage lists an object: with another one, it is another object. The zero value is that of one that was not listed yet.
type mark struct {
	bytes, at int64
	sum       string
}

func markOf(i bucket.Item) mark { return mark{bytes: i.Bytes, at: i.ModTime.UnixNano(), sum: i.Sum} }

// listed is manifest for one that was listed just now. If it is listed otherwise than when it was read, somebody else wrote over it: it is read again.
func (a *Archive) listed(ctx context.Context, i bucket.Item) (*Log, error) {
	if l, same := a.recall(i); same {
		return &l, nil
	}
	return a.fetch(ctx, i.Key, markOf(i))
}

// recall is the manifest in the cache if it is the one that is listed. One that was not listed yet is, if it is as long as what we would write.
func (a *Archive) recall(i bucket.Item) (l Log, same bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, cached := a.read[i.Key]
	switch {
	case !cached:
		return Log{}, false
	case k.mark == (mark{}) && k.log.length() == i.Bytes:
		a.read[i.Key] = known{k.log, markOf(i)}
	case k.mark != markOf(i):
		delete(a.read, i.Key)
		return Log{}, false
	}
	return k.log, true
}

// length is how long the manifest is as we write it.
func (l LogManifest) length() int64 {
	raw, err := json.Marshal(l)
	if err != nil {
		return 0 // no object is as short: it is read again
	}
	return int64(len(raw))
}

// manifest reads a manifest.
func (a *Archive) manifest(ctx context.Context, key string) (*Log, error) {
	a.mu.Lock()
	k, ok := a.read[key]
	a.mu.Unlock()
	if ok {
		return &k.log, nil
	}
	return a.fetch(ctx, key, mark{})
}

// fetch reads a manifest from the storage, and refuses one of another place: an object can be copied.
func (a *Archive) fetch(ctx context.Context, key string, m mark) (*Log, error) {
	l, err := small(ctx, a, key, parseLog)
	if err == nil && l.key() != key {
		err = a.b.Damage(key, errors.New("it is that of another file"))
	}
	if err != nil {
		return nil, err
	}
	a.remember(l, m)
	return &l, nil
}

func (a *Archive) remember(l Log, m mark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read[l.key()] = known{l, m}
}

// small reads a small object.
func small[T any](ctx context.Context, a *Archive, key string, parse func([]byte) (T, error)) (T, error) {
	var none T
	raw, err := a.b.GetObject(ctx, key, ManifestMax)
	if err != nil {
		return none, err
	}
	v, err := parse(raw)
	if err != nil {
		return none, a.b.Damage(key, err)
	}
	return v, nil
}
