// SPDX-License-Identifier: Apache-2.0

package fence

import "testing"

// TestWhatIsShutAndWhatIsNotI1: that a server has answered nobody since it started is proof only while nobody, this sidecar
// included, can have opened it.
func TestWhatIsShutAndWhatIsNotI1(t *testing.T) {
	gone := observe(openSite(), Facts{})
	unsure := gone
	unsure.unsure = true
	for name, tc := range map[string]struct {
		state State
		shut  bool
	}{
		"no process":                    {gone, true},
		"it was seen writable":          {observe(gone, writable), false},
		"it has answered":               {observe(gone, readOnly), false},
		"it is being opened":            {Opening(gone), false},
		"an opening of it was cut off":  {unsure, false},
		"nobody saw that none was open": {newSite(), false},
	} {
		if got := Report(tc.state, at(0)).Fenced; got != tc.shut {
			t.Errorf("I1: %s: shut %t, want %t", name, got, tc.shut)
		}
	}
}

// TestNobodyAsksToOpenWhatIsNotReadyI10: a replica that is named is detached first, and one that is cloned is left alone.
func TestNobodyAsksToOpenWhatIsNotReadyI10(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		ask    bool
	}{
		"it may be opened":   {func(*Facts) {}, true},
		"it replicates":      {func(f *Facts) { f.Replicates = true }, false},
		"it is being cloned": {func(f *Facts) { f.Cloning = true }, false},
		"it does not answer": {func(f *Facts) { f.Answered = false }, false},
	} {
		facts := readOnly
		tc.change(&facts)
		s := closedSite()
		s.seen = facts
		if got := Decide(s, at(0)).Do == Ask; got != tc.ask {
			t.Errorf("I10: %s: asks the operator to open it: %t", name, got)
		}
	}
}
