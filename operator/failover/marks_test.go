// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestMarksStandStillUnderLoad: a lag that comes and goes around a limit must not write labels with every poll.
func TestMarksStandStillUnderLoad(t *testing.T) {
	s, m := factstest.ThreeSites(), Memory{}
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
	s, m := factstest.ThreeSites(), Memory{}
	s.Sites[2].MySQL.Executed = factstest.Set("A:1-9,C:1-2")
	for range 2 {
		m = Decide(s, m).Memory
	}
	s.Sites[2].Sidecar, s.Sites[2].MySQL = Sidecar{}, MySQL{}
	if v := Decide(s, m).Views[2]; !v.Errant.Equal(factstest.Set("C:1-2")) {
		t.Errorf("I10: a silent site is shown with %q, state %s", v.Errant, v.State)
	}
}

// TestOneCandidateIsKeptFromEviction: whoever drains the nodes of all candidates at the same moment must leave one of them.
func TestOneCandidateIsKeptFromEviction(t *testing.T) {
	const drained = "its node is drained"
	for name, tc := range map[string]struct {
		leaving   map[string]string
		behind    string
		protected string
		told      string
	}{
		"nobody goes":                    {nil, "", "", ""},
		"one goes, so the other stays":   {map[string]string{"b": drained}, "", "c", ""},
		"both go, so one of them stays":  {map[string]string{"b": drained, "c": drained}, "", "b", "b"},
		"the only one that caught up":    {map[string]string{"b": drained}, "c", "b", "b"},
		"an update does not ask anybody": {map[string]string{"b": LeavingForUpdate}, "c", "b", ""},
	} {
		s := factstest.ThreeSites()
		far, near := 100.0, 0.0
		for i := range s.Sites[1:] {
			site := &s.Sites[i+1]
			site.Leaving, site.MySQL.LagSeconds = tc.leaving[site.Name], &near
			if site.Name == tc.behind {
				site.MySQL.LagSeconds = &far
			}
		}
		for _, v := range Decide(s, Memory{}).Views[1:] {
			if want := v.Name == tc.protected; v.Protected != want {
				t.Errorf("%s: %s is protected: %t", name, v.Name, v.Protected)
			}
			if want := v.Name == tc.told; strings.Contains(v.Message, "eviction is refused") != want {
				t.Errorf("%s: %s says %q", name, v.Name, v.Message)
			}
		}
	}
}

// TestTheSameCandidateIsKeptUnderLoad: the ranking of two that are drained changes with every poll, and both would be kept.
func TestTheSameCandidateIsKeptUnderLoad(t *testing.T) {
	s, m := factstest.ThreeSites(), Memory{}
	near := 0.0
	for i := range s.Sites[1:] {
		s.Sites[i+1].Leaving, s.Sites[i+1].MySQL.LagSeconds = "its node is drained", &near
	}
	for i := range 20 {
		s.Now = s.Now.Add(s.Policy.PollInterval)
		s.Sites[0].MySQL.Executed = factstest.Set(fmt.Sprintf("A:1-%d", 20+2*i))
		s.Sites[1].MySQL.Executed, s.Sites[2].MySQL.Executed = factstest.Set(fmt.Sprintf("A:1-%d", 19+i%2+2*i-1)), factstest.Set(fmt.Sprintf("A:1-%d", 19+(i+1)%2+2*i-1))
		d := Decide(s, m)
		m = d.Memory
		if b, c := d.Views[1].Protected, d.Views[2].Protected; !b || c {
			t.Fatalf("poll %d: b is kept %t, c is kept %t", i, b, c)
		}
	}
}

// TestOneThatMovedItsRoleAwayHidesNobody: it may go, and another drained at the same moment must not go with it.
func TestOneThatMovedItsRoleAwayHidesNobody(t *testing.T) {
	s, near := factstest.ThreeSites(), 0.0
	s.Sites[0].Leaving, s.Sites[1].Leaving, s.Sites[1].MySQL.LagSeconds = "", "its node is drained", &near
	s.Sites[2].Leaving, s.Sites[2].MySQL.LagSeconds = "its node is drained", &near
	s.Status.Planned = &Planned{From: "b", To: "a", Cause: v1alpha1.ReasonSiteLeaving, Phase: v1alpha1.PlannedSucceeded, FinishedAt: s.Now, Answered: true}
	m := Memory{Sites: map[string]*SiteMemory{"b": {LeavingSince: s.Now.Add(-time.Minute)}, "c": {LeavingSince: s.Now.Add(-time.Minute)}}}
	d := Decide(s, m)
	if b, c := d.Views[1].Protected, d.Views[2].Protected; b || !c {
		t.Errorf("b, which gave its role away, is kept: %t; c is kept: %t", b, c)
	}
}

// TestARemovedSiteIsKeptInSightWhileItMayBeAskedI4: its object may have been deleted by force. While the pod of another site was
// started with it as a peer, what it says counts there.
func TestARemovedSiteIsKeptInSightWhileItMayBeAskedI4(t *testing.T) {
	for _, tc := range []struct{ listed, pod, gone bool }{{false, false, true}, {true, false, false}, {false, true, false}} {
		s := factstest.ThreeSites()
		s.Sites[2].Removed, s.Sites[2].Listed, s.Sites[2].Pod.Exists = true, tc.listed, tc.pod
		if v := Decide(s, Memory{}).Views[2]; v.Gone != tc.gone {
			t.Errorf("I4: listed %t, pod %t: gone %t", tc.listed, tc.pod, v.Gone)
		}
	}
}
