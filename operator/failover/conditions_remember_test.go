// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/views"
)

// TestWhoIsSeenToAcceptWritesI1: by either witness, and only by one that answered.
func TestWhoIsSeenToAcceptWritesI1(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Site)
		want   bool
	}{
		"nobody":                                 {func(*Site) {}, false},
		"its sidecar":                            {func(a *Site) { a.Sidecar.Report.Writable = true }, true},
		"its sidecar, of a MySQL that is silent": {func(a *Site) { a.Sidecar.Report.Writable, a.Sidecar.Report.Answered = true, false }, false},
		"its sidecar, that is silent":            {func(a *Site) { a.Sidecar.Report.Writable, a.Sidecar.Answered = true, false }, false},
		"the operator":                           {func(a *Site) { a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false }, true},
		"the operator, that reads read_only":     {func(a *Site) { a.MySQL.SuperReadOnly = false }, false},
		"the operator, that reads the other":     {func(a *Site) { a.MySQL.ReadOnly = false }, false},
		"the operator, without an answer":        {func(a *Site) { a.MySQL = MySQL{} }, false},
	} {
		a := factstest.Seen("a", "A:1-9", 4)
		tc.change(&a)
		if got := a.Writable(); got != tc.want {
			t.Errorf("I1: %s: %t", name, got)
		}
	}
	open := factstest.Seen("a", "A:1-9", 4)
	open.Sidecar.Answered, open.MySQL.SuperReadOnly, open.MySQL.ReadOnly = false, false, false
	if open.Unusable() {
		t.Error("a site that serves without its sidecar counts as down")
	}
	open.MySQL.SuperReadOnly = true
	if !open.Unusable() {
		t.Error("a read-only site that nobody can open counts as up")
	}
}

// TestWhatIsRememberedOfAnotherVolumeI12: it takes an answer to forget it.
func TestWhatIsRememberedOfAnotherVolumeI12(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
	old := Memory{Sites: map[string]*SiteMemory{"a": {OtherVolume: true}}}
	if memory.OnKnownVolumes(s, old).Sites[0].OtherVolume {
		t.Error("its sidecar says that it is on its volume")
	}
	s.Sites[0].Sidecar.Answered = false
	if !memory.OnKnownVolumes(s, old).Sites[0].OtherVolume || s.Sites[0].OtherVolume {
		t.Error("I12: forgotten by silence, or what was looked at is changed")
	}
	if memory.OnKnownVolumes(s, Memory{}).Sites[0].OtherVolume {
		t.Error("a site that merely is silent")
	}
	s.Sites[0].OtherVolume = true
	if m := memory.Remember(s, Memory{}); !m.At("a").OtherVolume {
		t.Error("I12: not remembered")
	}
}

// TestWhatIsRememberedOfChangesI9: from when a step counts, who was open, and who is about to go.
func TestWhatIsRememberedOfChangesI9(t *testing.T) {
	before := factstest.Start.Add(-time.Hour)
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "b"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	if m := memory.Remember(s, Memory{OpenAt: before}); !m.DrainSince.IsZero() || !m.OpenAt.Equal(before) || !m.LeavingSince.IsZero() || !m.Of("a").LeavingSince.IsZero() || !m.Of("b").LeavingSince.IsZero() {
		t.Errorf("nothing goes on: %+v", m)
	}
	s.Status.Transition = &Transition{From: "a", To: "b", Kind: v1alpha1.FailoverEmergency}
	if m := memory.Remember(s, Memory{}); !m.DrainSince.Equal(s.Now) {
		t.Errorf("I9: the target has no time: %s", m.DrainSince)
	}
	if m := memory.Remember(s, Memory{DrainSince: before}); !m.DrainSince.Equal(before) {
		t.Errorf("I9: the target has its time again and again: %s", m.DrainSince)
	}
	s.Sites[0].Leaving = "its node is drained"
	if m := memory.Remember(s, Memory{LeavingSince: before}); !m.LeavingSince.IsZero() {
		t.Errorf("who was replaced leaves, which is no matter: %s", m.LeavingSince)
	}
	s.Status.Transition.Kind = v1alpha1.FailoverPlanned
	if m := memory.Remember(s, Memory{LeavingSince: before}); !m.LeavingSince.Equal(before) || !m.At("a").LeavingSince.Equal(s.Now) {
		t.Errorf("who is being replaced leaves: %s", m.LeavingSince)
	}
	s.Sites[1].MySQL.SuperReadOnly, s.Sites[1].MySQL.ReadOnly = false, false
	if m := memory.Remember(s, Memory{OpenAt: before}); !m.OpenAt.Equal(s.Now) {
		t.Errorf("it is open: %s", m.OpenAt)
	}
}

// TestWhatStaysDivergedI10: what was found stays found, unless it is compared, or is part of the history.
func TestWhatStaysDivergedI10(t *testing.T) {
	open := func(a *Site) { a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false }
	for name, tc := range map[string]struct {
		change func(s *Snapshot, old *Memory, a, b *Site)
		want   gtid.Set
	}{
		"nobody is there to compare with": {func(_ *Snapshot, old *Memory, a, _ *Site) {
			factstest.Silence(a)
			old.At("b").Diverged = factstest.Set("B:1")
		}, factstest.Set("B:1")},
		"nothing was found": {func(_ *Snapshot, _ *Memory, a, _ *Site) { factstest.Silence(a) }, gtid.Set{}},
		"it is compared":    {func(_ *Snapshot, old *Memory, a, _ *Site) { open(a); old.At("b").Diverged = factstest.Set("B:1") }, gtid.Set{}},
		"it is found now": {func(_ *Snapshot, old *Memory, a, _ *Site) {
			open(a)
			old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5"))
		}, factstest.Set("B:5")},
		"the active site is read-only": {func(_ *Snapshot, old *Memory, _, _ *Site) { old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5")) }, gtid.Set{}},
		"the active site is silent": {func(_ *Snapshot, old *Memory, a, _ *Site) {
			open(a)
			a.MySQL.Direct, a.Sidecar.Answered = false, false
			old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5"))
		}, gtid.Set{}},
		"it was not looked at before": {func(_ *Snapshot, old *Memory, a, _ *Site) { open(a); old.At("b").PreviousAll = nil }, gtid.Set{}},
		"nor was it, and was found": {func(_ *Snapshot, old *Memory, a, _ *Site) {
			open(a)
			old.At("b").PreviousAll = nil
			old.At("b").Diverged = factstest.Set("B:1")
		}, factstest.Set("B:1")},
		"it holds no data of the group": {func(_ *Snapshot, old *Memory, a, b *Site) {
			open(a)
			b.Provisioned = false
			old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5"))
		}, gtid.Set{}},
		"it is silent now": {func(_ *Snapshot, old *Memory, a, b *Site) {
			open(a)
			factstest.Silence(b)
			old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5"))
		}, gtid.Set{}},
		"the active site lost its volume": {func(_ *Snapshot, old *Memory, a, _ *Site) {
			open(a)
			a.OtherVolume = true
			old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5"))
		}, gtid.Set{}},
		"the active site changes": {func(s *Snapshot, old *Memory, a, _ *Site) {
			open(a)
			s.Status.Transition = &Transition{From: "b", To: "a"}
			old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5"))
		}, gtid.Set{}},
		"there is no active site": {func(s *Snapshot, old *Memory, a, _ *Site) {
			open(a)
			s.Status.ActiveSite = ""
			old.At("b").PreviousAll = new(factstest.Set("A:1-9,B:5"))
		}, gtid.Set{}},
		"it is the history": {func(s *Snapshot, old *Memory, a, b *Site) {
			factstest.Silence(a)
			s.Status.ActiveSite, old.At("b").Diverged = "b", factstest.Set("B:1")
			b.Sidecar.Report.Writable, b.MySQL.Direct = true, false
		}, gtid.Set{}},
		"it is not, as its MySQL is silent": {func(s *Snapshot, old *Memory, a, b *Site) {
			factstest.Silence(a)
			s.Status.ActiveSite, old.At("b").Diverged = "b", factstest.Set("B:1")
			b.Sidecar.Report.Writable, b.Sidecar.Report.Answered, b.MySQL.Direct = true, false, false
		}, factstest.Set("B:1")},
		"what it has was there when the active site was opened": {func(s *Snapshot, old *Memory, a, _ *Site) {
			factstest.Silence(a)
			old.At("b").Diverged = factstest.Set("B:1")
			s.Status.Records = []v1alpha1.FailoverRecord{{To: "a", Epoch: 4, ToExecuted: factstest.Set("A:1-9").String()}}
		}, gtid.Set{}},
		"that cannot be read": {func(s *Snapshot, old *Memory, a, _ *Site) {
			factstest.Silence(a)
			old.At("b").Diverged = factstest.Set("B:1")
			s.Status.Records = []v1alpha1.FailoverRecord{{To: "a", Epoch: 4, ToExecuted: factstest.Set("A:1-9").String() + ",?"}}
		}, factstest.Set("B:1")},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		old := Memory{Sites: map[string]*SiteMemory{"b": {PreviousAll: new(factstest.Set("A:1-9"))}}}
		tc.change(&s, &old, &s.Sites[0], &s.Sites[1])
		if got := memory.Remember(s, old).Of("b").Diverged; !got.Equal(tc.want) {
			t.Errorf("I10: %s: %q, want %q", name, got, tc.want)
		}
	}
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
	if _, known := lineage.ErrantOf(s.Sites[0], s.Sites[0], Memory{Sites: map[string]*SiteMemory{"a": {PreviousAll: new(factstest.Set("A:1-12"))}}}, s); known {
		t.Error("I10: the active site diverges from itself")
	}
}

// TestWhatIsCoveredWithoutReadingI7: a set that cannot be read covers nothing, not even nothing.
func TestWhatIsCoveredWithoutReadingI7(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{{To: "a", Epoch: 4, ToExecuted: "?"}}}, factstest.Seen("b", "A:1-9", 4))
	s.Sites[0].MySQL.Executed = gtid.Set{}
	if lineage.IsCovered(s, s.Sites[0]) {
		t.Error("I7")
	}
}

// TestWhatIsRememberedOfAServerI9I12: of the one that was there, and not of the one that is there now.
func TestWhatIsRememberedOfAServerI9I12(t *testing.T) {
	old := Memory{Sites: map[string]*SiteMemory{"a": {Executed: factstest.Set("A:1-5"), UUID: "old", Confirmed: "pod-1", Lease: 40 * time.Second}}}
	for name, tc := range map[string]struct {
		change func(s *Snapshot, a *Site)
		uuid   string
		pod    string
		lease  time.Duration
		looked bool
	}{
		"it is seen":                  {func(*Snapshot, *Site) {}, "a", "pod-2", 22 * time.Second, true},
		"it is on another volume":     {func(_ *Snapshot, a *Site) { a.OtherVolume = true }, "old", "pod-1", 40 * time.Second, true},
		"its MySQL does not answer":   {func(_ *Snapshot, a *Site) { a.MySQL.Direct, a.Sidecar.Report.Answered = false, false }, "old", "pod-2", 40 * time.Second, false},
		"its sidecar does not answer": {func(_ *Snapshot, a *Site) { a.Sidecar.Answered = false }, "a", "pod-1", 40 * time.Second, true},
		"it is silent, and writable": {func(_ *Snapshot, a *Site) {
			a.Sidecar.Answered, a.MySQL.SuperReadOnly, a.MySQL.ReadOnly = false, false, false
		}, "a", "pod-1", 22 * time.Second, true},
		"its pod is not seen":           {func(_ *Snapshot, a *Site) { a.Pod.Lease = 0 }, "a", "pod-2", 40 * time.Second, true},
		"it is being replaced":          {func(s *Snapshot, _ *Site) { s.Status.Transition = &Transition{From: "a", To: "b"} }, "a", "pod-2", 40 * time.Second, true},
		"another one is being replaced": {func(s *Snapshot, _ *Site) { s.Status.Transition = &Transition{From: "b", To: "a"} }, "a", "pod-2", 22 * time.Second, true},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
		s.Sites[0].Pod = Pod{Exists: true, UID: "pod-2", Lease: 22 * time.Second}
		tc.change(&s, &s.Sites[0])
		m := memory.Remember(s, old)
		if looked := m.At("a").PreviousAll != nil; m.At("a").UUID != tc.uuid || m.At("a").Confirmed != tc.pod || m.At("a").Lease != tc.lease || looked != tc.looked {
			t.Errorf("I9, I12: %s: %q %q %s %t", name, m.At("a").UUID, m.At("a").Confirmed, m.At("a").Lease, looked)
		}
	}
}

// TestNobodyAcknowledgesBySilenceI5: an acknowledgement that nobody gave is not remembered.
func TestNobodyAcknowledgesBySilenceI5(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
	s.Sites[0].Sidecar.Answered = false
	if memory.Remember(s, Memory{}).Of("a").Ack != nil {
		t.Error("I5")
	}
	if memory.Remember(s, Memory{Sites: map[string]*SiteMemory{"a": {Ack: &Ack{Epoch: 4}}}}).Of("a").Ack == nil {
		t.Error("I5: an acknowledgement is forgotten by silence")
	}
}

// TestSinceWhenAReplicaFollows: one that follows an active site that is open.
func TestSinceWhenAReplicaFollows(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(a, b *Site)
		want   bool
	}{
		"it follows":                {func(*Site, *Site) {}, true},
		"the active site is closed": {func(a, _ *Site) { a.MySQL.SuperReadOnly = true }, false},
		"its receiver does not run": {func(_, b *Site) { b.MySQL.IORunning = false }, false},
		"its applier does not run":  {func(_, b *Site) { b.MySQL.SQLRunning = false }, false},
		"it follows another":        {func(_, b *Site) { b.MySQL.ReplicaOf = "c" }, false},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = false, false
		s.Sites[1].MySQL.ReplicaOf, s.Sites[1].MySQL.IORunning, s.Sites[1].MySQL.SQLRunning = "a", true, true
		s.Sites[0].MySQL.ReplicaOf, s.Sites[0].MySQL.IORunning, s.Sites[0].MySQL.SQLRunning = "a", true, true // left over, of itself
		tc.change(&s.Sites[0], &s.Sites[1])
		m := memory.Remember(s, Memory{})
		if got := m.At("b").FollowedAt.Equal(s.Now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
		if !m.At("a").FollowedAt.IsZero() {
			t.Errorf("%s: the active site follows itself", name)
		}
	}
}

// TestWhatAWriteProbeIsCalled: a reason that this version does not know, and the error that MySQL gave.
func TestWhatAWriteProbeIsCalled(t *testing.T) {
	words, way := (views.Unwritable{Site: "a", Errno: 3032}).Message()
	if !strings.Contains(words, "it refuses a write (error 3032)") || way.Command == "" {
		t.Errorf("%s; %s", words, way)
	}
	words, _ = (views.Unwritable{Site: "a", Reason: wire.WriteDiskFull}).Message()
	if strings.Contains(words, "error 0") || !strings.Contains(words, "its data volume is full") {
		t.Errorf("%s", words)
	}
}

// TestWhenAProbeThatFailsIsTold: in front of nothing else that is to be said.
func TestWhenAProbeThatFailsIsTold(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4))
	s.Sites[0].Sidecar.Report.WriteProbe = &wire.WriteProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull, ForMillis: 3_600_000}
	healthy := Decision{Status: s.Status, Topology: TopologyHealthy, Verdict: VerdictNothing, Reason: v1alpha1.ReasonHealthy}
	if d := healthy.sayUnwritable(s); d.Unwritable == nil || d.Reason != Reason(wire.WriteDiskFull) {
		t.Errorf("%+v", d)
	}
	moves := healthy
	moves.Verdict = VerdictFailover
	if d := moves.sayUnwritable(s); d.Unwritable == nil || d.Reason != v1alpha1.ReasonHealthy {
		t.Errorf("what is done is not told: %+v", d)
	}
	s.Sites[0].Name = "b" // the active site is in no list
	s.Status.ActiveSite, s.Sites[0].Sidecar.Answered = "a", true
	if got := views.UnwritableOf(s, healthy.decided(), ""); got != nil {
		t.Errorf("%+v", got)
	}
}
