// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/gate"
)

// textOf writes runs as "pod@node:machine/volume lease flags"; the machine is left out where it has the name of the node.
func textOf(all []Run) string {
	var out []string
	for _, r := range all {
		text := r.UID + "@" + r.Node
		if r.Machine != r.Node {
			text += ":" + r.Machine
		}
		text += "/" + r.Volume
		if r.Lease > 0 {
			text += " " + r.Lease.String()
		}
		for _, flag := range []struct {
			name string
			is   bool
		}{{"closed", r.Closed}, {"idle", r.Idle}, {"ended", r.Ended}, {"elsewhere", r.Elsewhere}} {
			if flag.is {
				text += " " + flag.name
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestWhatIsKnownOfEachRunI1I4I9: one poll of site b, of which status has the run old@n1/v, and what is known of its runs afterwards.
func TestWhatIsKnownOfEachRunI1I4I9(t *testing.T) {
	type change = func(s *Snapshot, m *Memory, b *Site)
	all := func(changes ...change) change {
		return func(s *Snapshot, m *Memory, b *Site) {
			for _, c := range changes {
				c(s, m, b)
			}
		}
	}
	pod := func(uid, node, volume string) change {
		return func(s *Snapshot, _ *Memory, _ *Site) { podOn(s, 1, uid, node, volume) }
	}
	known := func(edit func(*Run)) change {
		return func(s *Snapshot, _ *Memory, _ *Site) { edit(&s.Status.Runs["b"][0]) }
	}
	on1 := func(n Node) change { return func(s *Snapshot, _ *Memory, _ *Site) { s.Nodes["n1"] = n } }
	quiet := func(key string) change {
		return func(s *Snapshot, m *Memory, _ *Site) {
			m.Runs.Quiet = map[string]time.Time{key: s.Now.Add(-RunsKept)}
		}
	}
	long := quiet("old n1")
	seen := func(edit func(*SeenRun)) change {
		return func(_ *Snapshot, _ *Memory, b *Site) { edit(&b.Pod.Runs[0]) }
	}
	unnamed := seen(func(p *SeenRun) { p.Machine = "" })
	silent := func(_ *Snapshot, _ *Memory, b *Site) { b.Sidecar.Answered = false }
	ended := func(s *Snapshot, _ *Memory, _ *Site) { s.EndedPods = map[string]bool{"old": true} }
	forgotten := func(s *Snapshot, _ *Memory, _ *Site) { s.Status.Runs = nil }
	active := func(s *Snapshot, _ *Memory, _ *Site) { s.Status.ActiveSite = "b" }
	closed := known(func(r *Run) { r.Closed = true })
	remembered := func(r Run) change {
		return func(_ *Snapshot, m *Memory, _ *Site) { m.Runs.Of = map[string][]Run{"b": {r}} }
	}
	for name, tc := range map[string]struct {
		change change
		want   string
		ended  bool
	}{
		"nothing is known of its node":           {all(), "old@n1/v", false},
		"the same, for long":                     {long, "old@n1/v", false},
		"its node is Ready for long":             {all(on1(Node{Machine: "n1", Ready: true}), long), "", true},
		"its pod is there, its node is Ready":    {all(pod("old", "n1", "v"), long), "old@n1/v 22s", false},
		"another pod is there, its node is so":   {all(pod("new", "n1", "w"), long), "new@n1/w 22s", true},
		"the machine of its node has no name":    {all(on1(Node{}), long), "old@n1/v", false},
		"its own machine has no name":            {all(known(func(r *Run) { r.Machine = "" }), on1(Node{Machine: "n1"}), quiet("old ")), "old@n1:/v", false},
		"its kubelet told that it ended":         {ended, "", true},
		"the next has the lock":                  {pod("new", "n1", "v"), "new@n1/v 22s", false},
		"it ended, and the next has the lock":    {all(pod("new", "n1", "v"), ended), "new@n1/v 22s", false},
		"the next waits, and has no lock":        {all(pod("new", "n1", "v"), silent), "old@n1/v; new@n1/ 22s", false},
		"another waits for the lock":             {all(forgotten, pod("waits", "n1", ""), pod("new", "n1", "v")), "waits@n1/ 22s idle; new@n1/v 22s", false},
		"both pods are there, and began":         {all(pod("old", "n1", ""), pod("new", "n2", "w")), "old@n1/v 22s; new@n2/w 22s", false},
		"it answers before its kubelet tells it": {all(pod("old", "n1", "v"), seen(func(p *SeenRun) { p.Started = false })), "old@n1/v 22s", false},
		"the same pod is on another machine":     {all(pod("old", "n1", "w"), seen(func(p *SeenRun) { p.Machine = "n9" })), "old@n1/v elsewhere; old@n1:n9/w 22s", false},
		"its machine is not seen":                {all(pod("old", "n1", "v"), unnamed), "old@n1/v 22s", false},
		"its machine was not seen before":        {all(known(func(r *Run) { r.Machine = "" }), pod("old", "n1", "v")), "old@n1/v 22s", false},
		"its lease was longer":                   {all(known(func(r *Run) { r.Lease = time.Minute }), pod("old", "n1", "v")), "old@n1/v 1m0s", false},
		"it tells another volume":                {pod("old", "n1", "w"), "old@n1/w 22s", false},
		"it tells none":                          {pod("old", "n1", ""), "old@n1/v 22s", false},
		"what it told is of another poll":        {all(pod("old", "n1", "w"), silent), "old@n1/v 22s", false},
		"closed, a replica":                      {all(closed, pod("old", "n1", "v")), "old@n1/v 22s closed", false},
		"closed, the active site":                {all(closed, active, pod("old", "n1", "v")), "old@n1/v 22s", false},
		"closed, and its gate is to come": {all(closed, active, pod("old", "n1", "v"), func(s *Snapshot, _ *Memory, _ *Site) {
			s.Status.Transition = &Transition{Step: v1alpha1.TransitionFencing}
		}), "old@n1/v 22s closed", false},
		"it is remembered too":    {remembered(on("old", "n1")), "old@n1/v", false},
		"another is remembered":   {remembered(on("other", "n2")), "old@n1/v; other@n2/v", false},
		"on another machine, too": {remembered(on("old", "n2")), "old@n1/v; old@n2/v", false},
	} {
		s, m := world(Durable{Epoch: 4, ActiveSite: "a", Runs: map[string][]Run{"b": {on("old", "n1")}}}, Site{Name: "a"}, Site{Name: "b", Sidecar: Sidecar{Answered: true}}), Memory{}
		s.Nodes = map[string]Node{}
		tc.change(&s, &m, &s.Sites[1])
		got, now := withRuns(s, m)
		if text := textOf(got.Sites[1].Runs); text != tc.want {
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
	s := world(Durable{Runs: map[string][]Run{"b": {on("old", "n1")}}}, Site{Name: "b"})
	m := Memory{}
	for i, poll := range []struct {
		ready bool
		after time.Duration
		want  string
	}{{true, 0, "old@n1/v"}, {true, RunsKept - 1, "old@n1/v"}, {false, time.Second, "old@n1/v"}, {true, time.Second, "old@n1/v"},
		{true, RunsKept - 1, "old@n1/v"}, {true, 1, ""}} {
		s.Now, s.Nodes = s.Now.Add(poll.after), map[string]Node{"n1": {Machine: "n1", Ready: poll.ready}}
		got, now := withRuns(s, m)
		if m.Runs = now; textOf(got.Sites[0].Runs) != poll.want {
			t.Errorf("I4, I9: poll %d: %q, want %q", i, textOf(got.Sites[0].Runs), poll.want)
		}
	}
}

// TestWhomALockExcludesI4: each of what the proof needs, alone.
func TestWhomALockExcludesI4(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(holder, other *Run)
		exists bool
		want   bool
	}{
		"the same machine and volume":          {func(_, _ *Run) {}, false, true},
		"another volume":                       {func(_, o *Run) { o.Volume = "w" }, true, false},
		"a pod that has not told its volume":   {func(_, o *Run) { o.Volume = "" }, true, true},
		"the same, and it is gone":             {func(_, o *Run) { o.Volume = "" }, false, false},
		"the holder has told none":             {func(h, o *Run) { h.Volume, o.Volume = "", "" }, true, false},
		"nobody answers":                       {func(h, _ *Run) { h.UID = "" }, false, false},
		"it is the holder":                     {func(_, o *Run) { o.UID = "new" }, true, false},
		"another machine":                      {func(_, o *Run) { o.Machine = "n2" }, false, false},
		"the machines of both have no name":    {func(h, o *Run) { h.Machine, o.Machine = "", "" }, false, false},
		"the machine of the other has no name": {func(_, o *Run) { o.Machine = "" }, false, false},
	} {
		holder, other := on("new", "n1"), on("old", "n1")
		tc.change(&holder, &other)
		if got := excludes(holder, other, tc.exists); got != tc.want {
			t.Errorf("I4: %s: %t", name, got)
		}
	}
}

// TestWhatIsFoldedI9: only runs of one machine, node and volume whose pods are gone; what holds of one of them holds of all.
func TestWhatIsFoldedI9(t *testing.T) {
	run := func(uid, node, machine, volume string, lease time.Duration, closed bool) Run {
		return Run{UID: uid, Node: node, Machine: machine, Volume: volume, Lease: lease * time.Second, Closed: closed}
	}
	site := Site{Pod: Pod{Runs: []SeenRun{{UID: "there", Machine: "n1"}}}}
	runs := []Run{
		run("there", "n1", "n1", "v", 0, false), run("a", "n1", "n1", "v", 10, true), run("b", "n1", "n1", "v", 30, true), run("c", "n1", "n1", "v", 20, true),
		run("d", "n2", "n1", "v", 0, true), run("e", "n2", "n1", "v", 0, false), run("f", "n1", "n2", "v", 0, false), run("g", "n1", "n2", "v", 0, true),
		run("h", "n1", "n1", "w", 5, false),
	}
	few := slices.Clone(runs)
	for len(runs) <= runsMost {
		runs = append(runs, run("x", "n3", "n3", "v", 0, false))
	}
	want := "there@n1/v; several@n1/v 30s closed; several@n2:n1/v; several@n1:n2/v; several@n1/w 5s; several@n3/v"
	if got := textOf(bounded(runs, site)); got != want {
		t.Errorf("I9: folded into\n%s, want\n%s", got, want)
	}
	if got := bounded(few, site); !slices.Equal(got, few) {
		t.Errorf("few are folded: %s", textOf(got))
	}
}

// TestWhichRunsAreDurableI9: what is seen of a run is not kept with it, and one that never began is not kept at all.
func TestWhichRunsAreDurableI9(t *testing.T) {
	stopped, waits, ended := on("stopped", "n1"), on("waits", "n1"), on("ended", "n1")
	stopped.Idle, stopped.Elsewhere, stopped.Closed = true, true, true
	waits.Idle, waits.Volume = true, ""
	ended.Ended = true
	starts := on("starts", "n1")
	starts.Volume = ""
	got := runs{Of: map[string][]Run{"b": {stopped, waits, ended, starts}, "c": nil}}.Kept()
	if text := textOf(got["b"]); text != "stopped@n1/v closed; starts@n1/" || len(got) != 1 {
		t.Errorf("I9: %q of %v", text, slices.Collect(maps.Keys(got)))
	}
}

// TestWhenAGateClosesI1: in the very decision that passes it, all runs but the one that is let open; what comes later was not asked.
func TestWhenAGateClosesI1(t *testing.T) {
	fencing, opening := &Transition{Step: v1alpha1.TransitionFencing}, &Transition{Step: v1alpha1.TransitionOpening}
	for name, tc := range map[string]struct {
		before, after *Transition
		closes        bool
	}{
		"it passes":              {fencing, opening, true},
		"it does not pass yet":   {fencing, fencing, false},
		"it has passed before":   {opening, opening, false},
		"the change is given up": {fencing, nil, false},
		"a change begins":        {nil, fencing, false},
		"nothing changes":        {nil, nil, false},
	} {
		s := world(Durable{Epoch: 4, ActiveSite: "b", Transition: tc.before, Runs: map[string][]Run{"a": {on("old", "n1")}, "b": {on("pod-b", "n3")}}}, Site{Name: "a"}, Site{Name: "b"})
		podOn(&s, 1, "pod-b", "n2", "v")
		s, known := withRuns(s, Memory{})
		d := Decision{Status: s.Status, Memory: Memory{Runs: known}}
		d.Status.Transition = tc.after
		d = d.noteRuns(s, known)
		want := map[string]string{"a": "old@n1/v", "b": "pod-b@n3/v; pod-b@n2/ 22s"}
		if tc.closes {
			want = map[string]string{"a": "old@n1/v closed", "b": "pod-b@n3/v closed; pod-b@n2/ 22s"}
		}
		got := map[string]string{}
		for site, all := range d.Status.Runs {
			got[site] = textOf(all)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("I1: %s (-want +got):\n%s", name, diff)
		}
		if text := textOf(s.Sites[0].Runs); text != "old@n1/v" {
			t.Errorf("%s: what was asked is changed to %s", name, text)
		}
	}
}

// TestWhichLeaseIsTheLongestI4: of runs that may accept commits.
func TestWhichLeaseIsTheLongestI4(t *testing.T) {
	run := func(lease time.Duration, closed, idle bool) Run { return Run{Lease: lease, Closed: closed, Idle: idle} }
	site := Site{Runs: []Run{run(3*time.Second, false, false), run(9*time.Second, true, false), run(8*time.Second, false, true), run(2*time.Second, false, false)}}
	if got := gate.Runs(site.Runs).LongestLease(); got != 3*time.Second {
		t.Errorf("I4: %s", got)
	}
}

// TestOfWhomAnEarlierPodIsTold: of a site whose pod answers. One that is silent has trouble enough, and its pod may be that very one.
func TestOfWhomAnEarlierPodIsTold(t *testing.T) {
	for _, answers := range []bool{true, false} {
		site := Site{Name: "b", Pod: Pod{UID: "new"}, Runs: []Run{on("old", "n1")}, Sidecar: Sidecar{Answered: answers}}
		reason, _ := earlierPod(site)
		if named := named(world(Durable{}, site), []string{"b"}); (reason != "") != answers || strings.Contains(named, "old") != answers {
			t.Errorf("it answers %t: told %q, named %q", answers, reason, named)
		}
	}
	s := threeSites()
	s.Status.Runs = map[string][]Run{"b": {on("old", "n1")}}
	podOn(&s, 1, "new", "n2", "v")
	s.Sites[1].MySQL.IORunning = false
	if v := Decide(s, Memory{}).Views[1]; v.Reason != "NotReplicating" {
		t.Errorf("what is wrong with it is hidden by %s", v.Reason)
	}
}
