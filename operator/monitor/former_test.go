// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestWhatIsKnownOfTheFormerLeaderEndsWithAThaw covers I4: while this process stood still another one may have led, and answered.
func TestWhatIsKnownOfTheFormerLeaderEndsWithAThaw(t *testing.T) {
	l := testLoop(t, &sidecars{}, nil)
	l.m.Client = &apiServer{}
	group := &v1alpha1.MysqlFailoverGroup{}
	if s := l.gather(t.Context(), group); !s.FormerUntil.IsZero() {
		t.Errorf("nobody says until when, and it is %s", s.FormerUntil)
	}
	former := time.Now().Add(-time.Minute)
	l.m.Former = func(g *v1alpha1.MysqlFailoverGroup, started time.Time) time.Time {
		if g != group || !started.Equal(l.started) {
			t.Errorf("asked for another group, or for a loop that began at %s", started)
		}
		return former
	}
	if s := l.gather(t.Context(), group); !s.FormerUntil.Equal(former) {
		t.Errorf("until %s, want %s", s.FormerUntil, former)
	}
	l.m.pulse.Beat(time.Now().Add(-time.Hour))
	l.m.pulse.Beat(time.Now())
	if s := l.gather(t.Context(), group); !s.FormerUntil.IsZero() || !s.LeaderSince.After(l.started) {
		t.Errorf("I4: after a thaw it counts from %s and %s", s.FormerUntil, s.LeaderSince)
	}
}
