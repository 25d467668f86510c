// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestEachGuardAloneStopsAMoveI13: a planned failover passes only if nothing speaks against it.
func TestEachGuardAloneStopsAMoveI13(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"I13: the source is not fenced":               func(s *Snapshot) { s.Sites[0].Sidecar.Report.SuperReadOnly = false },
		"I12: the source is on another volume":        func(s *Snapshot) { s.Sites[0].OtherVolume = true },
		"I2: the target has not acknowledged":         func(s *Snapshot) { s.Sites[1].Sidecar.Report.Epoch = 3 },
		"I13: the target lacks what the source holds": func(s *Snapshot) { s.Sites[1].MySQL.Executed = factstest.Set("A:1-8") },
		"I7: the target lacks what another holds":     func(s *Snapshot) { s.Sites[2].MySQL.Executed = factstest.Set("A:1-10") },
		"I10: the target is cloned":                   func(s *Snapshot) { s.Sites[1].MySQL.Cloning = true },
		"a person gives it up":                        func(s *Snapshot) { s.Policy.AbortPlanned = true },
		"":                                            func(*Snapshot) {},
	} {
		s := factstest.Under(v1alpha1.FailoverPlanned)
		change(&s)
		if d := Decide(s, Memory{}); (d.Verdict == VerdictPromote) != (name == "") {
			t.Errorf("%s: %s %s: %s", name, d.Verdict, d.Reason, d.Message)
		}
	}
}

// TestWhatIsCapturedI13: only of a fenced server, on the volume that counts, is it known that nothing can be added.
func TestWhatIsCapturedI13(t *testing.T) {
	for name, change := range map[string]func(*Site){
		"it does not answer":      func(a *Site) { a.Sidecar.Answered = false },
		"it is on another volume": func(a *Site) { a.OtherVolume = true },
		"it is of an older epoch": func(a *Site) { a.Sidecar.Report.Epoch = 3 },
		"it is not read-only":     func(a *Site) { a.Sidecar.Report.SuperReadOnly = false },
		"":                        func(*Site) {},
	} {
		s := factstest.Under(v1alpha1.FailoverPlanned)
		change(&s.Sites[0])
		if set, captured := capturedSet(s, s.Sites[0]); captured != (name == "") {
			t.Errorf("I13: %s: %s is captured: %t", name, set, captured)
		}
	}
}

// TestEachGuardAloneRefusesAMoveI13: a planned failover that may not succeed is not begun: it would cost the clients a pause.
func TestEachGuardAloneRefusesAMoveI13(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"the mode":                           func(s *Snapshot) { s.Policy.Mode = v1alpha1.FailoverObserve },
		"a pause":                            func(s *Snapshot) { s.Policy.PausedUntil = s.Now.Add(time.Hour) },
		"the target is dr-only":              func(s *Snapshot) { s.Sites[1].Role = v1alpha1.DROnly },
		"the target is about to go":          func(s *Snapshot) { s.Sites[1].Leaving = "drained" },
		"the sidecar of the source":          func(s *Snapshot) { s.Sites[0].Sidecar.Answered = false },
		"the MySQL of the source":            func(s *Snapshot) { s.Sites[0].MySQL.Direct = false },
		"the target follows nobody":          func(s *Snapshot) { s.Sites[1].MySQL.ReplicaOf = "" },
		"the receiver of the target":         func(s *Snapshot) { s.Sites[1].MySQL.IORunning = false },
		"the applier of the target":          func(s *Snapshot) { s.Sites[1].MySQL.SQLRunning = false },
		"another site accepts writes":        func(s *Snapshot) { s.Sites[2].MySQL.SuperReadOnly, s.Sites[2].MySQL.ReadOnly = false, false },
		"another site is given the data":     func(s *Snapshot) { s.Sites[2].Busy = "Clone" },
		"the target's escrow Secret is gone": func(s *Snapshot) { s.Sites[1].EscrowMissing = true },
		"the target's keyring is in memory":  func(s *Snapshot) { s.Sites[1].Sidecar.Report.Keyring = factstest.Keyring("behind") },
		"the set of the source is too long":  func(s *Snapshot) { s.Sites[0].Sidecar.Report.GTIDExecuted = wire.GTIDTooLong },
		"the volume of the target": func(s *Snapshot) {
			s.Sites[1].Sidecar.Report.VolumeProbe = &wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskStalled, ForMillis: 60_000}
		},
		"": func(*Snapshot) {},
	} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		b := &s.Sites[1].MySQL
		b.ReplicaOf, b.ReplicaHost, b.IORunning, b.SQLRunning, b.ReceiverStopped = "a", "a", true, true, false
		change(&s)
		if why := promotion.Preflight(s, Memory{}, s.Sites[0], "b"); (why.Reason != "") != (name != "") {
			t.Errorf("I13: %s: %+v", name, why)
		}
	}
}

// TestOnlyAFitTargetOvertakes: a move whose source dies becomes an emergency failover only if its target can be opened.
func TestOnlyAFitTargetOvertakes(t *testing.T) {
	for _, fit := range []bool{true, false} {
		s := factstest.Under(v1alpha1.FailoverPlanned)
		s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
		s.Sites[1].MySQL.Cloning = !fit
		s.Now = factstest.Start.Add(time.Minute)
		d := Decide(s, Memory{Sites: map[string]*SiteMemory{"a": {DownSince: factstest.Start, SilentPolls: 99}}})
		overtaken := d.Status.Transition != nil && d.Status.Transition.Kind == v1alpha1.FailoverEmergency && d.Status.ActiveSite == "b"
		if overtaken != fit {
			t.Errorf("I10: the target is fit: %t: %s %s: %s", fit, d.Verdict, d.Reason, d.Message)
		}
	}
}

// TestWhoReturnsWholeMissesNothingI7: the old active site takes the role back only if it holds more, and all that is seen.
func TestWhoReturnsWholeMissesNothingI7(t *testing.T) {
	for name, tc := range map[string]struct {
		a, c string
		back bool
	}{
		"it holds more":               {"A:1-10", "A:1-9", true},
		"it holds as much":            {"A:1-9", "A:1-9", false},
		"it holds more, c has others": {"A:1-10", "A:1-9,C:1", false},
	} {
		s := factstest.Under(v1alpha1.FailoverEmergency)
		s.Sites[0].MySQL.Executed, s.Sites[2].MySQL.Executed = factstest.Set(tc.a), factstest.Set(tc.c)
		if _, got := returnedWhole(s, Memory{}, s.Sites[1]); got != tc.back {
			t.Errorf("I7: %s: it takes the role back: %t", name, got)
		}
	}
}

// TestADrainHasAnEnd: what cannot be applied is told to a person, and not waited for without a word.
func TestADrainHasAnEnd(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := factstest.Under(v1alpha1.FailoverEmergency)
		s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
		s.Sites[1].MySQL.Retrieved, s.Sites[1].MySQL.ReplicaHost = factstest.Set("A:1-12"), "a"
		s.Policy.DrainTimeout = 30 * time.Second
		s.Now = factstest.Start.Add(20 * time.Second)
		if late {
			s.Now = factstest.Start.Add(40 * time.Second)
		}
		d := Decide(s, Memory{DrainSince: factstest.Start})
		if got := d.Verdict == VerdictBlocked && d.Reason == v1alpha1.ReasonDrainTimeout; got != late {
			t.Errorf("later than drainTimeout: %t: %s %s: %s", late, d.Verdict, d.Reason, d.Message)
		}
	}
}

// TestALongSetKeepsNoWritesOutI13: what the source holds once it is fenced could not be known, so the move is refused while it is open.
func TestALongSetKeepsNoWritesOutI13(t *testing.T) {
	s := factstest.ThreeSites()
	s.Policy.PlannedTo = "b"
	s.Sites[0].Sidecar.Report.GTIDExecuted = wire.GTIDTooLong
	d := Decide(s, Memory{})
	if p := d.Status.Planned; d.Status.Transition != nil || d.Hold || p == nil || p.Phase != v1alpha1.PlannedRefused || p.Reason != v1alpha1.ReasonSetTooLong || len(p.Remedies) != 2 {
		t.Errorf("I13: %+v: %s", d.Status.Planned, d.Message)
	}
}
