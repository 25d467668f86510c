// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"testing"
	"time"
)

func TestProbesMayNotBeBlindLongerThanAPodTakes(t *testing.T) {
	zero := time.Unix(1_000_000, 0)
	at := func(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }
	away := errors.New("no answer")
	tests := map[string]struct {
		do   func(*sight) error
		hole bool
	}{
		"a look that fails": {do: func(s *sight) error { return s.look(at(1), at(2.9), away) }},
		"none for longer":   {do: func(s *sight) error { return s.look(at(1), at(3.1), away) }, hole: true},
		"one that succeeds in between": {do: func(s *sight) error {
			return errors.Join(s.look(at(1), at(2), nil), s.look(at(2), at(4.9), away))
		}},
		"no API server for a minute": {do: func(s *sight) error {
			s.stopped()
			return s.look(at(1), at(60), away)
		}},
		"a first answer that comes late": {do: func(s *sight) error {
			s.stopped()
			s.started(at(60))
			return errors.Join(s.look(at(60), at(89), away), s.look(at(89), at(91), nil))
		}},
		"no first answer": {do: func(s *sight) error {
			s.stopped()
			s.started(at(60))
			return s.look(at(60), at(91), away)
		}, hole: true},
		"none after the first answer": {do: func(s *sight) error {
			s.stopped()
			s.started(at(60))
			return errors.Join(s.look(at(60), at(65), nil), s.look(at(65), at(69), away))
		}, hole: true},
		"an answer of before the stop is not the first one": {do: func(s *sight) error {
			s.stopped()
			s.started(at(60))
			return errors.Join(s.look(at(59), at(61), nil), s.look(at(61), at(80), away))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := test.do(&sight{last: zero}); (err != nil) != test.hole {
				t.Errorf("got %v, want a hole: %t", err, test.hole)
			}
		})
	}
}
