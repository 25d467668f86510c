// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"context"
	"slices"
	"sync"
)

// maxClones bounds the clones of all groups together: each loads two sites and the network between them.
const maxClones = 8

// mostOf is how many clones a namespace may have at a time while the others have so many: three quarters of what those leave, and one
// at the least. So no namespace can have them all: who waits in another one never waits for its clones to end, however long they take.
func mostOf(others int) int { return max(1, (maxClones-others)*3/4) }

// share says who clones, and who waits for it. It is a plain value.
type share struct {
	// held counts the clones of each namespace.
	held map[string]int
	// waiting are the namespaces of those who wait, first come first.
	waiting []string
}

// next is the one of those who wait whose turn it is: the first of the namespace that has the fewest clones. It is -1 if nobody may begin.
func (s share) next() int {
	all := 0
	for _, n := range s.held {
		all += n
	}
	best := -1
	for i, namespace := range s.waiting {
		mine := s.held[namespace]
		if all < maxClones && mine < mostOf(all-mine) && (best < 0 || mine < s.held[s.waiting[best]]) {
			best = i
		}
	}
	return best
}

// slots hands out the clones of all groups. The zero value is ready to use.
type slots struct {
	mu    sync.Mutex
	share share
	// granted has a channel for each of share.waiting, which is closed when it is its turn.
	granted []chan struct{}
}

// take waits for a slot. The function that it returns gives the slot back.
func (s *slots) take(ctx context.Context, namespace string) (func(), error) {
	granted := make(chan struct{})
	s.mu.Lock()
	s.share.waiting, s.granted = append(s.share.waiting, namespace), append(s.granted, granted)
	s.hand()
	s.mu.Unlock()
	select {
	case <-granted:
		return func() { s.giveBack(namespace) }, nil
	case <-ctx.Done():
		if !s.leave(granted) {
			s.giveBack(namespace) // it was granted at the same moment
		}
		return nil, ctx.Err()
	}
}

// hand gives slots to those whose turn it is. The caller holds the lock.
func (s *slots) hand() {
	for i := s.share.next(); i >= 0; i = s.share.next() {
		if s.share.held == nil {
			s.share.held = map[string]int{}
		}
		s.share.held[s.share.waiting[i]]++
		close(s.granted[i])
		s.drop(i)
	}
}

func (s *slots) drop(i int) {
	s.share.waiting, s.granted = slices.Delete(s.share.waiting, i, i+1), slices.Delete(s.granted, i, i+1)
}

// leave ends a wait; false if it had ended already.
func (s *slots) leave(granted chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.granted, granted)
	if i >= 0 {
		s.drop(i)
	}
	return i >= 0
}

func (s *slots) giveBack(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.share.held[namespace]--; s.share.held[namespace] == 0 {
		delete(s.share.held, namespace)
	}
	s.hand()
}
