// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// TestWhatIsKnownOfEachRunI1I4I9: one poll of site b, of which status has the run old@n1/v, and what is known of its runs afterwards.
func TestWhatIsKnownOfEachRunI1I4I9(t *testing.T) {
	type change = func(s *facts.Snapshot, m *facts.Memory, b *facts.Site)
	all := func(changes ...change) change {
		return func(s *facts.Snapshot, m *facts.Memory, b *facts.Site) {
			for _, c := range changes {
				c(s, m, b)
			}
		}
	}
	pod := func(uid, node, volume string) change {
		return func(s *facts.Snapshot, _ *facts.Memory, _ *facts.Site) { factstest.PodOn(s, 1, uid, node, volume) }
	}
	known := func(edit func(*facts.Run)) change {
		return func(s *facts.Snapshot, _ *facts.Memory, _ *facts.Site) { edit(&s.Status.Runs["b"][0]) }
	}
	on1 := func(n facts.Node) change {
		return func(s *facts.Snapshot, _ *facts.Memory, _ *facts.Site) { s.Nodes["n1"] = n }
	}
	quiet := func(key string) change {
		return func(s *facts.Snapshot, m *facts.Memory, _ *facts.Site) {
			m.Runs.Quiet = map[string]time.Time{key: s.Now.Add(-RunsKept)}
		}
	}
	long := quiet("old n1")
	seen := func(edit func(*facts.SeenRun)) change {
		return func(_ *facts.Snapshot, _ *facts.Memory, b *facts.Site) { edit(&b.Pod.Runs[0]) }
	}
	unnamed := seen(func(p *facts.SeenRun) { p.Machine = "" })
	silent := func(_ *facts.Snapshot, _ *facts.Memory, b *facts.Site) { b.Sidecar.Answered = false }
	ended := func(s *facts.Snapshot, _ *facts.Memory, _ *facts.Site) { s.EndedPods = map[string]bool{"old": true} }
	forgotten := func(s *facts.Snapshot, _ *facts.Memory, _ *facts.Site) { s.Status.Runs = nil }
	active := func(s *facts.Snapshot, _ *facts.Memory, _ *facts.Site) { s.Status.ActiveSite = "b" }
	closed := known(func(r *facts.Run) { r.Closed = true })
	remembered := func(r facts.Run) change {
		return func(_ *facts.Snapshot, m *facts.Memory, _ *facts.Site) { m.Runs.Of = map[string][]facts.Run{"b": {r}} }
	}
	for name, tc := range map[string]struct {
		change change
		want   string
		ended  bool
	}{
		"nothing is known of its node":           {all(), "old@n1/v", false},
		"the same, for long":                     {long, "old@n1/v", false},
		"its node is Ready for long":             {all(on1(facts.Node{Machine: "n1", Ready: true}), long), "", true},
		"its pod is there, its node is Ready":    {all(pod("old", "n1", "v"), long), "old@n1/v 22s", false},
		"another pod is there, its node is so":   {all(pod("new", "n1", "w"), long), "new@n1/w 22s", true},
		"the machine of its node has no name":    {all(on1(facts.Node{}), long), "old@n1/v", false},
		"its own machine has no name":            {all(known(func(r *facts.Run) { r.Machine = "" }), on1(facts.Node{Machine: "n1"}), quiet("old ")), "old@n1:/v", false},
		"its kubelet told that it ended":         {ended, "", true},
		"the next has the lock":                  {pod("new", "n1", "v"), "new@n1/v 22s", false},
		"it ended, and the next has the lock":    {all(pod("new", "n1", "v"), ended), "new@n1/v 22s", false},
		"the next waits, and has no lock":        {all(pod("new", "n1", "v"), silent), "old@n1/v; new@n1/ 22s", false},
		"another waits for the lock":             {all(forgotten, pod("waits", "n1", ""), pod("new", "n1", "v")), "waits@n1/ 22s idle; new@n1/v 22s", false},
		"both pods are there, and began":         {all(pod("old", "n1", ""), pod("new", "n2", "w")), "old@n1/v 22s; new@n2/w 22s", false},
		"it answers before its kubelet tells it": {all(pod("old", "n1", "v"), seen(func(p *facts.SeenRun) { p.Started = false })), "old@n1/v 22s", false},
		"the same pod is on another machine":     {all(pod("old", "n1", "w"), seen(func(p *facts.SeenRun) { p.Machine = "n9" })), "old@n1/v elsewhere; old@n1:n9/w 22s", false},
		"its machine is not seen":                {all(pod("old", "n1", "v"), unnamed), "old@n1/v 22s", false},
		"its machine was not seen before":        {all(known(func(r *facts.Run) { r.Machine = "" }), pod("old", "n1", "v")), "old@n1/v 22s", false},
		"its lease was longer":                   {all(known(func(r *facts.Run) { r.Lease = time.Minute }), pod("old", "n1", "v")), "old@n1/v 1m0s", false},
		"it tells another volume":                {pod("old", "n1", "w"), "old@n1/w 22s", false},
		"it tells none":                          {pod("old", "n1", ""), "old@n1/v 22s", false},
		"what it told is of another poll":        {all(pod("old", "n1", "w"), silent), "old@n1/v 22s", false},
		"closed, a replica":                      {all(closed, pod("old", "n1", "v")), "old@n1/v 22s closed", false},
		"closed, the active site":                {all(closed, active, pod("old", "n1", "v")), "old@n1/v 22s", false},
		"closed, and its gate is to come": {all(closed, active, pod("old", "n1", "v"), func(s *facts.Snapshot, _ *facts.Memory, _ *facts.Site) {
			s.Status.Transition = &facts.Transition{Step: v1alpha1.TransitionFencing}
		}), "old@n1/v 22s closed", false},
		"it is remembered too":    {remembered(factstest.On("old", "n1")), "old@n1/v", false},
		"another is remembered":   {remembered(factstest.On("other", "n2")), "old@n1/v; other@n2/v", false},
		"on another machine, too": {remembered(factstest.On("old", "n2")), "old@n1/v; old@n2/v", false},
	} {
		s, m := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a", Runs: map[string][]facts.Run{"b": {factstest.On("old", "n1")}}}, facts.Site{Name: "a"}, facts.Site{Name: "b", Sidecar: facts.Sidecar{Answered: true}}), facts.Memory{}
		s.Nodes = map[string]facts.Node{}
		tc.change(&s, &m, &s.Sites[1])
		got, now := WithRuns(s, m)
		if text := factstest.TextOf(got.Sites[1].Runs); text != tc.want {
			t.Errorf("I1, I4, I9: %s: %q, want %q", name, text, tc.want)
		}
		if at, is := now.EndedAt["b"]; is != tc.ended || is && !at.Equal(s.Now) {
			t.Errorf("I4: %s: ended at %s, want that: %t", name, at, tc.ended)
		}
		if s.Sites[1].Runs != nil {
			t.Errorf("%s: what was seen is changed", name)
		}
	}
}

// TestItIsQuietInAnUnbrokenRowI4I9: polls are counted from the first of those that saw it so.
func TestItIsQuietInAnUnbrokenRowI4I9(t *testing.T) {
	s := factstest.World(facts.Durable{Runs: map[string][]facts.Run{"b": {factstest.On("old", "n1")}}}, facts.Site{Name: "b"})
	m := facts.Memory{}
	for i, poll := range []struct {
		ready bool
		after time.Duration
		want  string
	}{{true, 0, "old@n1/v"}, {true, RunsKept - 1, "old@n1/v"}, {false, time.Second, "old@n1/v"}, {true, time.Second, "old@n1/v"},
		{true, RunsKept - 1, "old@n1/v"}, {true, 1, ""}} {
		s.Now, s.Nodes = s.Now.Add(poll.after), map[string]facts.Node{"n1": {Machine: "n1", Ready: poll.ready}}
		got, now := WithRuns(s, m)
		if m.Runs = now; factstest.TextOf(got.Sites[0].Runs) != poll.want {
			t.Errorf("I4, I9: poll %d: %q, want %q", i, factstest.TextOf(got.Sites[0].Runs), poll.want)
		}
	}
}

// TestWhichRunsAreDurableI9: what is seen of a run is not kept with it, and one that never began is not kept at all.
func TestWhichRunsAreDurableI9(t *testing.T) {
	stopped, waits, ended := factstest.On("stopped", "n1"), factstest.On("waits", "n1"), factstest.On("ended", "n1")
	stopped.Idle, stopped.Elsewhere, stopped.Closed = true, true, true
	waits.Idle, waits.Volume = true, ""
	ended.Ended = true
	starts := factstest.On("starts", "n1")
	starts.Volume = ""
	got := facts.Runs{Of: map[string][]facts.Run{"b": {stopped, waits, ended, starts}, "c": nil}}.Kept()
	if text := factstest.TextOf(got["b"]); text != "stopped@n1/v closed; starts@n1/" || len(got) != 1 {
		t.Errorf("I9: %q of %v", text, slices.Collect(maps.Keys(got)))
	}
}

// TestWhichLeaseIsTheLongestI4: of runs that may accept commits.
func TestWhichLeaseIsTheLongestI4(t *testing.T) {
	run := func(lease time.Duration, closed, idle bool) facts.Run {
		return facts.Run{Lease: lease, Closed: closed, Idle: idle}
	}
	site := facts.Site{Runs: []facts.Run{run(3*time.Second, false, false), run(9*time.Second, true, false), run(8*time.Second, false, true), run(2*time.Second, false, false)}}
	if got := gate.Runs(site.Runs).LongestLease(); got != 3*time.Second {
		t.Errorf("I4: %s", got)
	}
}
