// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestWhenOthersMayHaveAnswered covers I4 and I9: what is known of the leader before shortens the wait, and never to before it was silent.
func TestWhenOthersMayHaveAnswered(t *testing.T) {
	began := factstest.Start
	for name, tc := range map[string]struct{ former, want time.Time }{
		"not known":                 {time.Time{}, began},
		"before this one began":     {began.Add(-12 * time.Second), began.Add(-12 * time.Second)},
		"later than this one leads": {began.Add(time.Second), began},
	} {
		s := Snapshot{LeaderSince: began, FormerUntil: tc.former}
		if got := s.OthersUntil(); !got.Equal(tc.want) {
			t.Errorf("I4, %s: %s, want %s", name, got, tc.want)
		}
		w := witness(s, Memory{}, Site{Name: "a"})
		if !w.Answered.Equal(tc.want) || !w.Permitted.Equal(tc.want) {
			t.Errorf("I4, %s: the gate is told of %s and %s, want %s", name, w.Answered, w.Permitted, tc.want)
		}
		s.Answered, s.Permitted = map[string]time.Time{"a": began.Add(3 * time.Second)}, map[string]time.Time{"a": began.Add(2 * time.Second)}
		if w = witness(s, Memory{}, Site{Name: "a"}); !w.Answered.Equal(s.Answered["a"]) || !w.Permitted.Equal(s.Permitted["a"]) {
			t.Errorf("I4, %s: its own answers do not count: %s and %s", name, w.Answered, w.Permitted)
		}
	}
}
