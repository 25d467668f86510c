// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"
)

const (
	// sayAgain is the least time between two lines of one kind.
	sayAgain = time.Minute
	// maxSaid bounds how many kinds it remembers: beyond it all others are one kind.
	maxSaid = 1000
)

// quiet bounds how much strangers can write into the log. The zero value is ready.
type quiet struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	at time.Time
	// unsaid counts the lines left out since.
	unsaid int
}

// again is true if a line of a kind may be logged now, and tells how many were left out since the last one.
func (s *quiet) again(kind string, now time.Time) (unsaid int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = map[string]*line{}
	}
	l := s.lines[kind]
	if l == nil && len(s.lines) >= maxSaid {
		kind = ""
		l = s.lines[kind]
	}
	if l == nil {
		s.lines[kind] = &line{at: now}
		return 0, true
	}
	if now.Sub(l.at) < sayAgain {
		l.unsaid++
		return 0, false
	}
	unsaid, l.at, l.unsaid = l.unsaid, now, 0
	return unsaid, true
}
