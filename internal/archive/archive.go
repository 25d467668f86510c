// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
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
)

// Archive is the archive of one group.
type Archive struct {
	b *bucket.Bucket
	// read caches manifests, which are never overwritten.
	mu   sync.Mutex
	read map[string]Log
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
	return &Archive{b: b, read: map[string]Log{}}, nil
}

// Close closes the connection to the storage.
func (a *Archive) Close() error { return a.b.Close() }

// Location names the place for people.
func (a *Archive) Location() string { return a.b.Location() }

// Claim makes the place the group's, unless it is another group's: bucket.Foreign. Call it before the first write.
func (a *Archive) Claim(ctx context.Context, uid string, now time.Time) error {
	return a.b.Claim(ctx, uid, now)
}

// readAll reads manifests and epochs, some at a time.
func (a *Archive) readAll(ctx context.Context, f found) ([]Log, []Epoch, []Unreadable, error) {
	keys := slices.Concat(f.epochs, f.manifests)
	logs, epochs, errs := make([]*Log, len(keys)), make([]*Epoch, len(keys)), make([]error, len(keys))
	work := make(chan int)
	var readers sync.WaitGroup
	for range listReaders {
		readers.Go(func() {
			for i := range work {
				if i < len(f.epochs) {
					epochs[i], errs[i] = a.epoch(ctx, keys[i])
				} else {
					logs[i], errs[i] = a.manifest(ctx, keys[i])
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
func (a *Archive) forget(there []string) {
	keep := map[string]bool{}
	for _, key := range there {
		keep[key] = true
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

// manifest reads a manifest, and refuses one of another place: an object can be copied.
func (a *Archive) manifest(ctx context.Context, key string) (*Log, error) {
	a.mu.Lock()
	known, ok := a.read[key]
	a.mu.Unlock()
	if ok {
		return &known, nil
	}
	l, err := small(ctx, a, key, parseLog)
	if err == nil && l.key() != key {
		err = a.b.Damage(key, errors.New("it is that of another file"))
	}
	if err != nil {
		return nil, err
	}
	a.remember(l)
	return &l, nil
}

func (a *Archive) remember(l Log) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read[l.key()] = l
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
