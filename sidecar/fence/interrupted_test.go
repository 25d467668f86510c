// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestAnOpeningThatAnEarlierRunDidNotEndI1: its statement may still open that mysqld, so that it is read-only proves nothing,
// and only its end does.
func TestAnOpeningThatAnEarlierRunDidNotEndI1(t *testing.T) {
	other := readOnly
	other.Process = "8"
	unseen := readOnly
	unseen.Process = ""
	silent := Facts{Running: true, Process: "8"}
	for name, tc := range map[string]struct {
		marked string
		seen   Facts
		kill   bool
		fenced bool
	}{
		"it still runs, read-only":                    {"7", readOnly, true, false},
		"it still runs, writable":                     {"7", writable, true, false},
		"one of several still runs":                   {"6 7", readOnly, true, false},
		"which one it was is not known":               {"", readOnly, true, false},
		"which one runs cannot be seen":               {"7", unseen, true, false},
		"it was started anew, and is read-only":       {"7", other, false, true},
		"it was started anew, and does not answer":    {"7", silent, false, false},
		"it does not run, and nobody has the datadir": {"7", Facts{}, false, true},
	} {
		s := observe(Interrupted(newSite(), tc.marked), tc.seen)
		d := Decide(s, at(0))
		if got := d.Do == Fence && d.Kill; got != tc.kill {
			t.Errorf("I1: %s: ended %t, want %t (%+v)", name, got, tc.kill, d)
		}
		r := Report(s, at(0))
		if got := !r.MysqldRunning || r.Answered && r.SuperReadOnly || r.Fenced; got != tc.fenced {
			t.Errorf("I1: %s: passes for fenced %t, want %t (%+v)", name, got, tc.fenced, r)
		}
		if tc.kill {
			s = Fenced(Fencing(s), LastFence{Cause: wire.FenceStartup, Stage: wire.FenceKillServer}, true)
			if s.Unsure() || s.Exposed() {
				t.Errorf("I1: %s: its end is no proof", name)
			}
		}
	}
	if d := Decide(observe(Interrupted(newSite(), "7"), silent), at(0)); d.Do != Fence {
		t.Errorf("I4: what does not answer after a restart is left alone: %+v", d)
	}
}

// TestAMarkSaysNothingOfLaterOpeningsI1: the mark of an earlier run is forgotten once nothing runs.
func TestAMarkSaysNothingOfLaterOpeningsI1(t *testing.T) {
	unseen := readOnly
	unseen.Process = ""
	s := observe(observe(Interrupted(newSite(), "7"), Facts{}), unseen)
	s = Opened(Opening(s), Unsure)
	other := readOnly
	other.Process = "8"
	if s = observe(s, other); !s.Unsure() {
		t.Error("I1: an opening that was cut off passes for the one of the earlier run")
	}
}
