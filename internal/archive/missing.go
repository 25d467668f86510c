// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"path"
	"sync"
)

func (l LogManifest) dataKey() string { return path.Join(l.folder(), l.Object.Key) }

// present divides files into those whose data is in the storage with its length, and those whose data is gone. The listing of keys says so at
// no cost. The storage is asked only for what the listing lacks, and once: a file may have been written or removed while it was made.
func (a *Archive) present(ctx context.Context, f found, logs []Log) (there, gone []Log, err error) {
	var doubtful []Log
	a.mu.Lock()
	known := a.gone
	a.mu.Unlock()
	for _, log := range logs {
		item, listed := f.data[log.dataKey()]
		switch {
		case item.Bytes == log.Object.Bytes: // which is never 0
			there = append(there, log)
		case listed || known[log.dataKey()]:
			gone = append(gone, log)
		default:
			doubtful = append(doubtful, log)
		}
	}
	fates, err := a.fates(ctx, doubtful)
	if err != nil {
		return nil, nil, err
	}
	for i, log := range doubtful {
		switch fates[i] {
		case isThere:
			there = append(there, log)
		case isGone:
			gone = append(gone, log)
		case wasRemoved:
		}
	}
	known = map[string]bool{}
	for _, log := range gone {
		known[log.dataKey()] = true
	}
	a.mu.Lock()
	a.gone = known
	a.mu.Unlock()
	return there, gone, nil
}

// fate is what became of a file.
type fate int

const (
	wasRemoved fate = iota
	isThere
	isGone
)

// fates asks the storage for each file, some at a time.
func (a *Archive) fates(ctx context.Context, logs []Log) ([]fate, error) {
	out, errs := make([]fate, len(logs)), make([]error, len(logs))
	work := make(chan int)
	var askers sync.WaitGroup
	for range listReaders {
		askers.Go(func() {
			for i := range work {
				out[i], errs[i] = a.fate(ctx, logs[i])
			}
		})
	}
	for i := range logs {
		work <- i
	}
	close(work)
	askers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err // an object that cannot be asked for is not missing
		}
	}
	return out, nil
}

// fate asks for the data first: Remove begins with the manifest, so one that is still there afterwards was not removed by us.
func (a *Archive) fate(ctx context.Context, log Log) (fate, error) {
	there, err := a.b.HasObject(ctx, log.dataKey())
	told, manifestErr := a.b.HasObject(ctx, log.key())
	switch {
	case there:
		return isThere, nil
	case told:
		return isGone, errors.Join(err, manifestErr)
	}
	return wasRemoved, errors.Join(err, manifestErr)
}
