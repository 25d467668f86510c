// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"
)

// TestMarksStandStillUnderLoad: a lag that comes and goes around a limit must not write labels with every poll.
func TestMarksStandStillUnderLoad(t *testing.T) {
	s, m := threeSites(), Memory{}
	s.Policy.MaxReadLag = 500 * time.Millisecond
	type mark struct{ readable, protected bool }
	var before [3]mark
	writes := 0
	poll := func(lagB, lagC float64) [3]mark {
		s.Now = s.Now.Add(s.Policy.PollInterval)
		s.Sites[1].MySQL.LagSeconds, s.Sites[2].MySQL.LagSeconds = &lagB, &lagC
		d := Decide(s, m)
		m = d.Memory
		var now [3]mark
		for i, v := range d.Views {
			now[i] = mark{v.Readable, v.Protected}
		}
		if now != before {
			writes++
		}
		before = now
		return now
	}
	if now := poll(0, 0); now != [3]mark{{false, true}, {true, false}, {true, false}} {
		t.Fatalf("in rest: %+v", now)
	}
	if now := poll(0, 2); now != [3]mark{{false, true}, {true, true}, {false, false}} {
		t.Errorf("c lags, so readers leave it and b is protected, at once: %+v", now)
	}
	writes = 0
	for i := range 50 {
		poll(0, float64(i%2)*2)
	}
	if writes != 0 {
		t.Errorf("labels were written %d times in 50 polls", writes)
	}
	for range 6 {
		poll(0, 0)
	}
	if before != [3]mark{{false, true}, {true, false}, {true, false}} {
		t.Errorf("in rest again: %+v", before)
	}
}

// TestASilentSiteKeepsWhatItAloneHas covers I10 (simulation, seed 3303): status must say that a site has diverged also while it
// does not answer, or an operator that restarts meanwhile takes it for whole.
func TestASilentSiteKeepsWhatItAloneHas(t *testing.T) {
	s, m := threeSites(), Memory{}
	s.Sites[2].MySQL.Executed = set("A:1-9,C:1-2")
	for range 2 {
		m = Decide(s, m).Memory
	}
	s.Sites[2].Sidecar, s.Sites[2].MySQL = Sidecar{}, MySQL{}
	if v := Decide(s, m).Views[2]; !v.Errant.Equal(set("C:1-2")) {
		t.Errorf("I10: a silent site is shown with %q, state %s", v.Errant, v.State)
	}
}
