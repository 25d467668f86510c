// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock"
)

// boardLog is how many changes a reader may miss: with a thousand groups that all change at every poll of 2 s, about
// 8 s. It bounds the memory of all readers together.
const boardLog = 4096

// Board holds the newest state of every group and a log of the last changes. Writers append and never wait for a
// reader; a reader that falls behind the log gets an error. It is safe for concurrent use.
type Board struct {
	mu     sync.Mutex
	groups map[string]*wire.GroupStatus // by "namespace/group"; the pointed-to values never change
	looked map[string]time.Time         // when each was published last, changed or not
	log    [boardLog]boardChange        // ring: change n is at n % boardLog
	next   uint64                       // number of the next change
	wake   chan struct{}                // closed at the next change; nil while no reader waits
}

type boardChange struct {
	name   string
	status *wire.GroupStatus // nil: the group is gone
}

// NewBoard makes an empty board.
func NewBoard() *Board {
	return &Board{groups: map[string]*wire.GroupStatus{}, looked: map[string]time.Time{}}
}

// Publish replaces the state of a group. Readers get it only if more than the time of observation differs. The cost
// does not depend on the number of groups or readers, and the call waits for nothing.
func (b *Board) Publish(g wire.GroupStatus) {
	g = cloneStatus(g)
	name := g.Namespace + "/" + g.Group
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.groups[name]
	b.groups[name], b.looked[name] = &g, time.Now()
	if known && sameStatus(*before, g) {
		return
	}
	b.append(boardChange{name: name, status: &g})
}

// Remove forgets a group. Call it after the last Publish of that group: a later one brings it back.
func (b *Board) Remove(namespace, group string) {
	name := namespace + "/" + group
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.groups[name]; !known {
		return
	}
	delete(b.groups, name)
	delete(b.looked, name)
	b.append(boardChange{name: name})
}

// append expects the lock to be held.
func (b *Board) append(c boardChange) {
	b.log[b.next%boardLog] = c
	b.next++
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// Snapshot returns all groups, sorted by namespace and name.
func (b *Board) Snapshot() []wire.GroupStatus {
	groups, _ := b.snapshot()
	return groups
}

// Ages says how many seconds ago each group was published, to the tenth. The time of observation in a status has no monotonic clock.
func (b *Board) Ages(now time.Time) map[string]float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]float64, len(b.looked))
	for name, at := range b.looked {
		out[name] = math.Round(10*max(0, clock.Elapsed(at, now)).Seconds()) / 10
	}
	return out
}

// Subscribe returns all groups and a feed that continues from there. A feed costs nothing while it is not read.
func (b *Board) Subscribe() ([]wire.GroupStatus, Feed) {
	groups, next := b.snapshot()
	return groups, &boardFeed{board: b, cursor: next}
}

func (b *Board) snapshot() ([]wire.GroupStatus, uint64) {
	b.mu.Lock()
	states, next := slices.Collect(maps.Values(b.groups)), b.next
	b.mu.Unlock()
	return sortedStatuses(states), next
}

// since returns the changes from a cursor on and the next cursor. If there are none, it returns a channel that closes
// at the next one.
func (b *Board) since(cursor uint64) ([]boardChange, uint64, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next-cursor > boardLog {
		return nil, cursor, nil, ErrBehind
	}
	if cursor == b.next {
		if b.wake == nil {
			b.wake = make(chan struct{})
		}
		return nil, cursor, b.wake, nil
	}
	changes := make([]boardChange, 0, b.next-cursor)
	for n := cursor; n < b.next; n++ {
		changes = append(changes, b.log[n%boardLog])
	}
	return changes, b.next, nil, nil
}

// boardFeed is one reader's place in the log.
type boardFeed struct {
	board  *Board
	cursor uint64
}

// Next waits for changes and returns the newest state of each group that changed.
func (f *boardFeed) Next(ctx context.Context) (Changes, error) {
	for {
		changes, cursor, wake, err := f.board.since(f.cursor)
		if err != nil {
			return Changes{}, err
		}
		if len(changes) > 0 {
			f.cursor = cursor
			return newest(changes), nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return Changes{}, ctx.Err()
		}
	}
}

// newest keeps the last change of each group.
func newest(changes []boardChange) Changes {
	last := make(map[string]*wire.GroupStatus, len(changes))
	for _, c := range changes {
		last[c.name] = c.status
	}
	var out Changes
	var states []*wire.GroupStatus
	for name, status := range last {
		if status == nil {
			out.Gone = append(out.Gone, name)
		} else {
			states = append(states, status)
		}
	}
	slices.Sort(out.Gone)
	out.Groups = sortedStatuses(states)
	return out
}

func sortedStatuses(states []*wire.GroupStatus) []wire.GroupStatus {
	slices.SortFunc(states, func(a, b *wire.GroupStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group))
	})
	out := make([]wire.GroupStatus, 0, len(states))
	for _, s := range states {
		out = append(out, *s)
	}
	return out
}

// cloneStatus cuts every tie to the caller's memory.
func cloneStatus(g wire.GroupStatus) wire.GroupStatus {
	sites := make([]wire.SiteStatus, 0, len(g.Sites)) // not nil: readers get [], not null
	for _, s := range g.Sites {
		s.LagSeconds = clonePointer(s.LagSeconds)
		s.Behind = clonePointer(s.Behind)
		s.Volume = clonePointer(s.Volume)
		sites = append(sites, s)
	}
	g.Sites = sites
	if g.Forecast != nil {
		f := *g.Forecast
		f.LostTransactions, f.LostSeconds = clonePointer(f.LostTransactions), clonePointer(f.LostSeconds)
		g.Forecast = &f
	}
	g.Cache = cloneCache(g.Cache)
	return g
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// sameStatus is true if nothing differs but the time of observation.
func sameStatus(a, b wire.GroupStatus) bool {
	if !slices.EqualFunc(a.Sites, b.Sites, sameSite) || !sameForecast(a.Forecast, b.Forecast) || !sameCache(a.Cache, b.Cache) {
		return false
	}
	return a.Namespace == b.Namespace && a.Group == b.Group && a.ActiveSite == b.ActiveSite && a.Epoch == b.Epoch &&
		a.Hold == b.Hold && a.Topology == b.Topology && a.Verdict == b.Verdict && a.Reason == b.Reason &&
		a.Message == b.Message
}

func sameSite(a, b wire.SiteStatus) bool {
	if !samePointer(a.LagSeconds, b.LagSeconds) || !samePointer(a.Behind, b.Behind) || !samePointer(a.Volume, b.Volume) {
		return false
	}
	a.LagSeconds, a.Behind, a.Volume, a.LastSeen = nil, nil, nil, time.Time{}
	b.LagSeconds, b.Behind, b.Volume, b.LastSeen = nil, nil, nil, time.Time{}
	return a == b
}

func sameForecast(a, b *wire.Forecast) bool {
	if a == nil || b == nil {
		return a == b
	}
	if !samePointer(a.LostTransactions, b.LostTransactions) || !samePointer(a.LostSeconds, b.LostSeconds) {
		return false
	}
	x, y := *a, *b
	x.LostTransactions, x.LostSeconds, y.LostTransactions, y.LostSeconds = nil, nil, nil, nil
	return x == y
}

func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
