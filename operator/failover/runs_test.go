// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/memory"
)

// What one pod of a site says is no word of another that may still run.

// TestWhatAnotherPodSaysIsNoProofI1I2: each proof of a fence by itself, while another run of the site may be open, or only vouch.
func TestWhatAnotherPodSaysIsNoProofI1I2(t *testing.T) {
	old := factstest.On("old", "n1")
	closed, idle := old, old
	closed.Closed, idle.Idle = true, true
	for name, proof := range map[string]func(*Snapshot, *Memory){
		"its sidecar": func(_ *Snapshot, m *Memory) { m.At("a").Ack = &Ack{Epoch: 4, Fenced: true, PodUID: "pod-a"} },
		"read back": func(_ *Snapshot, m *Memory) {
			m.At("a").FencedBySQL = SQLFence{Epoch: 4, At: factstest.Start.Add(9 * time.Second), PodUID: "pod-a"}
		},
		"its pod has ended":          func(s *Snapshot, _ *Memory) { s.Sites[0].Pod.Ended = true },
		"its node is out of service": func(s *Snapshot, _ *Memory) { s.Sites[0].Pod.OutOfService = true },
	} {
		for _, tc := range []struct {
			what string
			runs []Run
			want bool
		}{{"alone", nil, true}, {"another may be open", []Run{old}, false}, {"another may only vouch", []Run{closed}, true}, {"another does not run", []Run{idle}, true}} {
			s, m := cutOff()
			proof(&s, &m)
			s.Sites[0].Runs = tc.runs
			if got := fenceProof(s, m, "a"); (got != "") != tc.want {
				t.Errorf("I1, I2: %s, %s: proof %q, want one: %t", name, tc.what, got, tc.want)
			}
		}
	}
}

// TestWhatAnotherPodAcknowledgesIsNoAcknowledgementI4: a voucher has acknowledged for the pod that said it, and for no other.
func TestWhatAnotherPodAcknowledgesIsNoAcknowledgementI4(t *testing.T) {
	closed := factstest.On("old", "n1")
	closed.Closed = true
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		blocks bool
	}{
		"alone":                      {func(*Snapshot, *Memory) {}, false},
		"another may vouch":          {func(s *Snapshot, _ *Memory) { s.Sites[2].Runs = []Run{closed} }, true},
		"it is another that said it": {func(s *Snapshot, _ *Memory) { s.Sites[2].Runs = []Run{factstest.On("pod-c", "n2")} }, false},
		"it ended":                   {func(s *Snapshot, m *Memory) { m.At("c").Ack = nil; s.Sites[2].Pod = Pod{UID: "pod-c", Ended: true} }, false},
		"it ended, another may vouch": {func(s *Snapshot, m *Memory) {
			m.At("c").Ack = nil
			s.Sites[2].Pod = Pod{UID: "pod-c", Ended: true}
			s.Sites[2].Runs = []Run{closed}
		}, true},
		"its node is down": {func(s *Snapshot, m *Memory) { m.At("c").Ack = nil; s.Sites[2].Pod.OutOfService = true }, false},
		"it is down, another is not": {func(s *Snapshot, m *Memory) {
			m.At("c").Ack = nil
			s.Sites[2].Pod.OutOfService = true
			s.Sites[2].Runs = []Run{closed}
		}, true},
		"of the target another vouches": {func(s *Snapshot, _ *Memory) { s.Sites[1].Runs = []Run{closed} }, true},
		"it never ran": {func(s *Snapshot, m *Memory) {
			m.At("c").Ack = nil
			s.Sites[2] = Site{Name: "c", Pod: Pod{Unplaced: true}}
		}, false},
		"an earlier one did": {func(s *Snapshot, m *Memory) {
			m.At("c").Ack = nil
			s.Sites[2] = Site{Name: "c", Pod: Pod{Unplaced: true}, Runs: []Run{closed}}
		}, true},
	} {
		s, m := cutOff()
		m.At("b").Ack, m.At("c").Ack = &Ack{Epoch: 4, Fenced: true, PodUID: "pod-b"}, &Ack{Epoch: 4, Fenced: true, PodUID: "pod-c"}
		s.Now = factstest.Start.Add(time.Hour)
		tc.change(&s, &m)
		if g := leaseRunOut(s, m, "a"); len(g.Blockers) > 0 != tc.blocks || g.Passed == tc.blocks {
			t.Errorf("I4: %s: passed %t, blocked by %v", name, g.Passed, g.Blockers)
		}
	}
	for _, site := range []int{1, 2} {
		s, m := cutOff()
		m.At("b").Ack, m.At("c").Ack = &Ack{Epoch: 4, Fenced: true, PodUID: "pod-b"}, &Ack{Epoch: 4, Fenced: true, PodUID: "pod-c"}
		s.Status.Transition.From, m.At("a").Ack = "", &Ack{Epoch: 4, Fenced: true}
		if !AskGate(s, m).Passed {
			t.Error("without an earlier active site: does not pass although all are fenced")
		}
		if s.Sites[site].Runs = []Run{factstest.On("old", "n1")}; AskGate(s, m).Passed {
			t.Errorf("I1: without an earlier active site: passed although another pod of %s may be open", s.Sites[site].Name)
		}
	}
}

// TestTheLeaseOfEachRunIsWaitedForI4: the gate counts the longest, and from when the last one that could vouch ended.
func TestTheLeaseOfEachRunIsWaitedForI4(t *testing.T) {
	s, m := cutOff()
	usual := leaseRunOut(s, m, "a").ReadyAt
	long := factstest.On("old", "n1")
	long.Lease = time.Minute
	s.Sites[0].Runs = []Run{long}
	if got, want := leaseRunOut(s, m, "a").ReadyAt, factstest.Start.Add(LeaseEnd(time.Minute)); !got.Equal(want) {
		t.Errorf("I4: with a run that has a lease of a minute: ready %s, want %s", got, want)
	}
	s, m = cutOff()
	m.Runs.EndedAt = map[string]time.Time{"c": factstest.Start.Add(7 * time.Second)}
	if got := leaseRunOut(s, m, "a").ReadyAt; !got.Equal(usual.Add(7 * time.Second)) {
		t.Errorf("I4: another pod of a voucher ended 7 s later: ready %s, want %s", got, usual.Add(7*time.Second))
	}
}

// TestWhichRunsMayBeLeftI4I9: what is known to have ended, and what proves it.
func TestWhichRunsMayBeLeftI4I9(t *testing.T) {
	gone := func(node Node) func(*Snapshot, *Memory) {
		return func(s *Snapshot, m *Memory) { s.Nodes["n1"] = node }
	}
	quietFor := func(d time.Duration, node Node) func(*Snapshot, *Memory) {
		return func(s *Snapshot, m *Memory) {
			s.Nodes["n1"] = node
			m.Runs.Quiet = map[string]time.Time{"old n1": s.Now.Add(-d)}
		}
	}
	ready := Node{Machine: "n1", Ready: true}
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Memory)
		left   bool
	}{
		"nothing is known of its node":     {func(*Snapshot, *Memory) {}, true},
		"its node is not Ready":            {gone(Node{Machine: "n1"}), true},
		"its node was just Ready":          {gone(ready), true},
		"its node is Ready for long":       {quietFor(memory.RunsKept, ready), false},
		"its node is Ready, not for long":  {quietFor(memory.RunsKept-time.Second, ready), true},
		"its node was Ready for long":      {quietFor(memory.RunsKept, Node{Machine: "n1"}), true},
		"its node was taken out long ago":  {quietFor(memory.RunsKept, Node{Gone: true}), false},
		"its node was just taken out":      {gone(Node{Gone: true}), true},
		"its node is another machine":      {gone(Node{Machine: "n9"}), true},
		"its node is another one for long": {quietFor(memory.RunsKept, Node{Machine: "n9"}), false},
		"its node is out of service":       {gone(Node{Machine: "n1", OutOfService: true}), false},
		"its kubelet told that it ended":   {func(s *Snapshot, _ *Memory) { s.EndedPods = map[string]bool{"old": true} }, false},
		"another one ended":                {func(s *Snapshot, _ *Memory) { s.EndedPods = map[string]bool{"other": true} }, true},
		"the next has the lock, elsewhere": {func(s *Snapshot, _ *Memory) { factstest.PodOn(s, 1, "new", "n2", "v") }, true},
		"the next has the lock":            {func(s *Snapshot, _ *Memory) { factstest.PodOn(s, 1, "new", "n1", "v") }, false},
		"of another volume":                {func(s *Snapshot, _ *Memory) { factstest.PodOn(s, 1, "new", "n1", "v2") }, true},
		"of a machine that took the name": {func(s *Snapshot, _ *Memory) {
			factstest.PodOn(s, 1, "new", "n1", "v")
			s.Sites[1].Pod.Runs[0].Machine = "n9"
		}, true},
		"of a machine that is not known": {func(s *Snapshot, _ *Memory) {
			factstest.PodOn(s, 1, "new", "n1", "v")
			s.Sites[1].Pod.Runs[0].Machine = ""
		}, true},
		"the next is there and is silent": {func(s *Snapshot, _ *Memory) { factstest.PodOn(s, 1, "new", "n1", "v"); s.Sites[1].Sidecar = Sidecar{} }, true},
		"the same pod, on another machine": {func(s *Snapshot, _ *Memory) {
			factstest.PodOn(s, 1, "old", "n1", "v")
			s.Sites[1].Pod.Runs[0].Machine = "n9"
		}, true},
		"it is the pod that answers": {func(s *Snapshot, _ *Memory) { factstest.PodOn(s, 1, "old", "n1", "v") }, false},
		"it is there and ended": {func(s *Snapshot, _ *Memory) {
			factstest.PodOn(s, 1, "old", "n1", "v")
			s.Sites[1].Pod.Runs[0].Ended = true
			factstest.PodOn(s, 1, "new", "n2", "v")
		}, false},
		"it is there and did not begin": {func(s *Snapshot, _ *Memory) {
			factstest.PodOn(s, 1, "old", "n1", "v")
			s.Sites[1].Pod.Runs[0].Started = false
			factstest.PodOn(s, 1, "new", "n2", "v")
		}, false},
		"it may have begun on a dead node": {func(s *Snapshot, _ *Memory) {
			factstest.PodOn(s, 1, "old", "n1", "v")
			s.Sites[1].Pod.Runs[0].Started = false
			factstest.PodOn(s, 1, "new", "n2", "v")
			s.Nodes["n1"] = Node{Machine: "n1"}
		}, true},
	} {
		for _, kept := range []string{"in status", "in memory"} {
			s, m := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4)), Memory{}
			s.Nodes = map[string]Node{}
			if all := map[string][]Run{"b": {factstest.On("old", "n1")}}; kept == "in status" {
				s.Status.Runs = all
			} else {
				m.Runs.Of = all
			}
			tc.change(&s, &m)
			d := Decide(s, m)
			s, _ = memory.WithRuns(s, m)
			r, left := s.Sites[1].Beside(s.Sites[1].Pod.UID)
			if left != tc.left || left && r.UID != "old" {
				t.Errorf("I4, I9: %s, %s: left %t (%v), want %t", name, kept, left, r, tc.left)
			}
			noted := slices.ContainsFunc(d.Status.Runs["b"], func(r Run) bool { return r.UID == "old" && r.Machine == "n1" })
			if tc.left && !noted {
				t.Errorf("I9: %s, %s: the next operator would not know of it", name, kept)
			}
			if noted && name == "it is there and ended" {
				t.Errorf("%s, %s: it is kept in status for as long as its pod lies there", name, kept)
			}
		}
	}
}

// TestWhenARunEndedIsRememberedI4: until it was known to have ended it may have vouched; a lock says that it ended before the next began.
func TestWhenARunEndedIsRememberedI4(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", Runs: map[string][]Run{"b": {factstest.On("old", "n1")}}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	s.EndedPods = map[string]bool{"old": true}
	m := Decide(s, Memory{}).Memory
	if !m.Runs.EndedAt["b"].Equal(s.Now) {
		t.Errorf("I4: ended at %s, want %s", m.Runs.EndedAt["b"], s.Now)
	}
	s.Now = s.Now.Add(time.Minute)
	if again := Decide(s, m).Memory.Runs.EndedAt["b"]; !again.Equal(m.Runs.EndedAt["b"]) {
		t.Errorf("it ended again at %s", again)
	}
	s.EndedPods = nil
	factstest.PodOn(&s, 1, "new", "n1", "v")
	if at := Decide(s, Memory{}).Memory.Runs.EndedAt["b"]; !at.IsZero() {
		t.Errorf("a pod that had to give its lock away counts as ended at %s: every restart would cost a lease", at)
	}
}

// TestAnotherPodOfTheActiveSiteMayBeOpenI1: what comes back in another pod is opened behind the gate, under an epoch that does not follow the
// present one directly, because a site that is named again by the next one goes on.
func TestAnotherPodOfTheActiveSiteMayBeOpenI1(t *testing.T) {
	opened := &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionOpening, From: "b", To: "a", GatePassedAt: factstest.Start, ToExecuted: factstest.Set("A:1-9")}
	for name, under := range map[string]*Transition{"at rest": nil, "while it is opened": opened} {
		for _, closed := range []bool{false, true} {
			old := factstest.On("old", "n1")
			old.Closed = closed
			s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", Transition: under, Runs: map[string][]Run{"a": {old}}}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
			factstest.PodOn(&s, 0, "new", "n2", "v")
			d := Decide(s, Memory{})
			if closed {
				if !opensSite(d, "a") || d.Status.Epoch != 4 {
					t.Errorf("%s: one that is closed keeps a from being opened: %s %s", name, d.Verdict, d.Message)
				}
				continue
			}
			if tr := d.Status.Transition; opensSite(d, "a") || !d.Hold || d.Status.Epoch != 6 || tr == nil || tr.Step != v1alpha1.TransitionFencing || tr.From != "a" || tr.To != "a" {
				t.Errorf("I1: %s: epoch %d, hold %t, %+v: %s", name, d.Status.Epoch, d.Hold, tr, d.Message)
			}
			if diff := cmp.Diff([]Effect{Select{Site: "a"}, Announce{}}, d.Effects); diff != "" {
				t.Errorf("%s: nobody is fenced, for nobody else takes over (-want +got):\n%s", name, diff)
			}
			if d.Reason != v1alpha1.ReasonEarlierPodMayRun || !strings.Contains(d.Message, "old on node n1") {
				t.Errorf("%s: %s: %s", name, d.Reason, d.Message)
			}
		}
	}
}

// TestWhoIsClosedByAGateI1: once the gate has passed nobody is open but who is opened; and who may be let open is noted as such before.
func TestWhoIsClosedByAGateI1(t *testing.T) {
	s, m := cutOff()
	s.Policy.LeaseTimeout, s.Now = 20*time.Second, factstest.Start.Add(time.Hour)
	s.Sites[1].Sidecar.Report.Epoch, s.Sites[2].Sidecar.Report.Epoch = 4, 4
	s.Sites[0].Pod = Pod{}
	s.Status.Runs = map[string][]Run{"a": {factstest.On("pod-a", "n1")}, "b": {factstest.On("older", "n9")}}
	s.Nodes = map[string]Node{"n9": {Machine: "n9", OutOfService: true}}
	s.Sites[1].Pod.Runs = []SeenRun{{UID: "older", Node: "n9", Machine: "n9", Started: true}} // down, and perhaps back later
	m.Runs.Over = map[string]bool{"older n9": true}
	factstest.PodOn(&s, 1, "pod-b", "n2", "v")
	factstest.PodOn(&s, 2, "pod-c", "n3", "v")
	d := Decide(s, m)
	if d.Verdict != VerdictPromote {
		t.Fatalf("%s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	want := map[string]bool{"pod-a": true, "older": true, "pod-b": false, "pod-c": true}
	got := map[string]bool{}
	for _, all := range d.Status.Runs {
		for _, r := range all {
			got[r.UID] = r.Closed
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("I1: closed (-want +got):\n%s", diff)
	}
	if !d.Persist || !d.Status.Noted("b", "pod-b") || d.Status.Noted("b", "older") || d.Status.Noted("b", "unknown") || !d.Status.Noted("c", "pod-c") {
		t.Errorf("I9: noted: %+v", d.Status.Runs)
	}
	// c takes the role as the only one that is there, by a status of another time: it may be open.
	s.Status = Durable{Epoch: 4, ActiveSite: "c", Runs: d.Status.Runs}
	if d = Decide(s, d.Memory); !d.Status.Noted("c", "pod-c") || !d.Persist {
		t.Errorf("I1: who may be let open is noted as closed: %+v", d.Status.Runs["c"])
	}
	s.Status.Runs["a"][0].Closed = true
	s.Sites[1].Sidecar.Report.Epoch = 7
	for _, r := range Decide(s, Memory{}).Status.Runs["a"] {
		if r.Closed {
			t.Errorf("I1: %s counts as closed by a status that is older than what the sites have seen", r.UID)
		}
	}
}

// TestManyRunsAreFoldedI9: however many pods are deleted by force, what is kept stays small, and nothing is forgotten.
func TestManyRunsAreFoldedI9(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	s.Nodes = map[string]Node{}
	m, pod := Memory{}, s.Sites[1]
	for i := range 60 {
		s.Sites[1] = pod
		uid := fmt.Sprintf("pod-%d", i)
		factstest.PodOn(&s, 1, uid, fmt.Sprintf("n%d", i%3), "v")
		s.Nodes[fmt.Sprintf("n%d", i%3)] = Node{Machine: fmt.Sprintf("n%d", i%3)}
		s.Sites[1].Sidecar = Sidecar{} // it never comes to the lock
		d := Decide(s, m)
		if got := len(d.Status.Runs["b"]); got > 16+1 {
			t.Fatalf("%d runs are kept", got)
		}
		for _, earlier := range []string{"n0", "n1", "n2"}[:min(i, 3)] {
			if !slices.ContainsFunc(d.Status.Runs["b"], func(r Run) bool { return r.Machine == earlier }) {
				t.Fatalf("I9: after %d pods nothing is known of those on %s", i+1, earlier)
			}
		}
		s.Status, m = d.Status, d.Memory
	}
	s.EndedPods = map[string]bool{}
	for _, r := range s.Status.Runs["b"] {
		if r.UID != "several" && r.UID != "pod-59" {
			s.EndedPods[r.UID] = true
		}
	}
	s, _ = memory.WithRuns(s, m)
	if _, left := s.Sites[1].Beside("pod-59"); !left {
		t.Error("I9: those that were folded ended with one that was told alone")
	}
}

// TestAnEarlierPodIsToldI4: why a failover would not end is said while all is well, and a failover that could not end is not begun.
func TestAnEarlierPodIsToldI4(t *testing.T) {
	for _, site := range []int{1, 2} {
		s := factstest.ThreeSites()
		name := s.Sites[site].Name
		s.Status.Runs = map[string][]Run{name: {factstest.On("old", "n1")}}
		factstest.PodOn(&s, site, "new", "n2", "v")
		d := Decide(s, Memory{})
		if v := d.Views[site]; v.Reason != v1alpha1.ReasonEarlierPodMayRun || !strings.Contains(v.Message, v1alpha1.OutOfServiceTaint) || !v.Healthy {
			t.Errorf("%s: %s: %s", name, v.Reason, v.Message)
		}
		if f := d.Forecast; f == nil || f.BlockedBy != v1alpha1.ReasonSiteMayStillVouch || !strings.Contains(f.Message, "old on node n1") {
			t.Errorf("%s: forecast %+v", name, d.Forecast)
		}
		s.Sites[0].Sidecar, s.Sites[0].MySQL = Sidecar{}, MySQL{}
		for range s.Policy.Threshold + 1 {
			s.Now = s.Now.Add(s.Policy.PollInterval)
			d = Decide(s, d.Memory)
			s.Status = d.Status
		}
		if d.Reason != v1alpha1.ReasonSiteMayStillVouch || !d.Blocked() || d.Status.Transition != nil {
			t.Errorf("I4: %s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
		if text := fmt.Sprint(Explain(s, d.Memory, d).Rules); !strings.Contains(text, "old on node n1") {
			t.Errorf("explained: %s", text)
		}
	}
}

// TestAnotherPodTakesNothingBackI9: the new pod of a site that outlived its lease has one, which says nothing of the old.
func TestAnotherPodTakesNothingBackI9(t *testing.T) {
	s := factstest.ThreeSites()
	left := int64(20_000)
	s.Sites[0].Sidecar.Report.LeaseMillis = &left
	s.Status.Outlived, s.Status.Runs = []string{"a"}, map[string][]Run{"a": {factstest.On("old", "n1")}}
	factstest.PodOn(&s, 0, "new", "n2", "v")
	if d := Decide(s, Memory{}); !slices.Contains(d.Status.Outlived, "a") {
		t.Error("I9: forgotten while the pod that was seen may run")
	}
	s.EndedPods = map[string]bool{"old": true}
	if d := Decide(s, Memory{}); slices.Contains(d.Status.Outlived, "a") {
		t.Error("it is remembered although that pod has ended")
	}
}

// TestAnEarlierPodHidesNothing: what is wrong with the site itself is told first.
func TestAnEarlierPodHidesNothing(t *testing.T) {
	s := factstest.ThreeSites()
	s.Status.Runs = map[string][]Run{"b": {factstest.On("old", "n1")}}
	factstest.PodOn(&s, 1, "new", "n2", "v")
	s.Sites[1].MySQL.IORunning = false
	if v := Decide(s, Memory{}).Views[1]; v.Reason != "NotReplicating" {
		t.Errorf("what is wrong with it is hidden by %s", v.Reason)
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
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: tc.before, Runs: map[string][]Run{"a": {factstest.On("old", "n1")}, "b": {factstest.On("pod-b", "n3")}}}, Site{Name: "a"}, Site{Name: "b"})
		factstest.PodOn(&s, 1, "pod-b", "n2", "v")
		s, known := memory.WithRuns(s, Memory{})
		d := Decision{Status: s.Status, Memory: Memory{Runs: known}}
		d.Status.Transition = tc.after
		d = d.noteRuns(s, known)
		want := map[string]string{"a": "old@n1/v", "b": "pod-b@n3/v; pod-b@n2/ 22s"}
		if tc.closes {
			want = map[string]string{"a": "old@n1/v closed", "b": "pod-b@n3/v closed; pod-b@n2/ 22s"}
		}
		got := map[string]string{}
		for site, all := range d.Status.Runs {
			got[site] = factstest.TextOf(all)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("I1: %s (-want +got):\n%s", name, diff)
		}
		if text := factstest.TextOf(s.Sites[0].Runs); text != "old@n1/v" {
			t.Errorf("%s: what was asked is changed to %s", name, text)
		}
	}
}
