// SPDX-License-Identifier: Apache-2.0

package stage

import "time"

const (
	// blind is how long the list of pods may be unknown: longer, and a pod could have come and gone without a witness.
	blind = 3 * time.Second
	// blindAfterStart is the same for the first look at an API server that was started again: it has to answer all kubelets at once, and
	// no mysqld starts, commits and ends in that time.
	blindAfterStart = 30 * time.Second
)

// sight says whether the probes knew at all times which pods there are.
type sight struct {
	// last is the last time at which the list of pods was known to be complete.
	last time.Time
	// noAPI: no API server runs, so there are no new pods. late: one was started again and has not answered yet.
	noAPI, late bool
}

// look notes a look at the list of pods, and returns its error if the list was unknown for too long.
func (s *sight) look(began, ended time.Time, err error) error {
	switch {
	case err == nil && !began.Before(s.last):
		s.last, s.late = ended, false
	case err == nil || s.noAPI:
		// An answer of before the stop says nothing about what follows it.
	case ended.Sub(s.last) > s.limit():
		return err
	}
	return nil
}

func (s *sight) limit() time.Duration {
	if s.late {
		return blindAfterStart
	}
	return blind
}

// stopped: the API server is about to be stopped.
func (s *sight) stopped() { s.noAPI = true }

// started: an API server runs again.
func (s *sight) started(now time.Time) { s.last, s.noAPI, s.late = now, false, true }
