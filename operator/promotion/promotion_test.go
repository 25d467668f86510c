// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// TestAHalfClonedSiteI12: the mark of a clone counts where a clone was ordered, and not where the group's data begins.
func TestAHalfClonedSiteI12(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*facts.Snapshot, *facts.Site)
		fit    bool
	}{
		"a clone that did not end well": {func(_ *facts.Snapshot, b *facts.Site) { b.MySQL.HalfCloned = true }, false},
		"no clone":                      {func(*facts.Snapshot, *facts.Site) {}, true},
		"it holds no data of the group": {func(_ *facts.Snapshot, b *facts.Site) { b.MySQL.HalfCloned, b.Provisioned = true, false }, true},
		"while the first active site is begun": {func(s *facts.Snapshot, b *facts.Site) {
			b.MySQL.HalfCloned = true
			s.Status.Transition = &facts.Transition{Kind: v1alpha1.FailoverBootstrap}
		}, true},
		"in another change of the active site": {func(s *facts.Snapshot, b *facts.Site) {
			b.MySQL.HalfCloned = true
			s.Status.Transition = &facts.Transition{Kind: v1alpha1.FailoverPlanned}
		}, false},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s, &s.Sites[1])
		if why := isHalfCloned(s, facts.Memory{}, s.Sites[1]); (why == "") != tc.fit {
			t.Errorf("I12: %s: %q", name, why)
		}
	}
}

// TestALossThatCannotBeReadI10: it names no numbers, and the next record is looked at.
func TestALossThatCannotBeReadI10(t *testing.T) {
	b := factstest.Uuids["B"]
	lost := v1alpha1.FailoverRecord{From: "b", To: "a", LostTransactions: 10, LostSet: factstest.Set("B:91-100").String()}
	broken := v1alpha1.FailoverRecord{From: "b", To: "a", LostTransactions: 10, LostSet: factstest.Set("B:91-100").String() + ",?"}
	s := factstest.World(facts.Durable{Epoch: 3, ActiveSite: "a", Records: []v1alpha1.FailoverRecord{broken, lost}}, factstest.Seen("a", "A:1-9", 3), factstest.Seen("b", "A:1-9,B:1-90", 3), factstest.Seen("c", "A:1-9,B:1-100", 3))
	s.Sites[1].MySQL.ServerUUID = b
	if why := IsNumberingAgain(s, facts.Memory{}, s.Sites[1]); why == "" {
		t.Error("I10: a record that cannot be read hides the next one")
	}
	s.Status.Records = s.Status.Records[:1]
	if why := IsNumberingAgain(s, facts.Memory{}, s.Sites[1]); why != "" {
		t.Errorf("I10: numbers of a record that cannot be read: %s", why)
	}
	// A site is not asked whether it still has what it lacks itself.
	s.Status.Records, s.Sites = []v1alpha1.FailoverRecord{lost}, s.Sites[:2]
	s.Sites[1].OtherVolume = true
	if why := IsNumberingAgain(s, facts.Memory{}, s.Sites[1]); why != "" {
		t.Errorf("I10: %s", why)
	}
}

// TestASecondWriterI1: whoever is worked on behind offline_mode is none.
func TestASecondWriterI1(t *testing.T) {
	s := factstest.World(facts.Durable{}, factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
	s.Sites[1].MySQL.SuperReadOnly, s.Sites[1].MySQL.ReadOnly = false, false
	if got := writableElsewhere(s, "b"); got != "c" {
		t.Errorf("I1: %q", got)
	}
	s.Sites[1].Busy = facts.WorkRotation
	if got := writableElsewhere(s, "b"); got != "" {
		t.Errorf("I1: %q", got)
	}
}

// TestWhatAPersonCanDo: each way out is told only where it leads out.
func TestWhatAPersonCanDo(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *facts.Snapshot)
		want   string
	}{
		"b is dr-only":                {func(s *facts.Snapshot) { s.Sites[1].Role = v1alpha1.DROnly }, "make b a primary-candidate in spec.sites"},
		"b left":                      {func(s *facts.Snapshot) { s.Sites[1].Removed = true }, "put b back into spec.sites as a primary-candidate"},
		"b is down":                   {func(s *facts.Snapshot) { factstest.Silence(&s.Sites[1]) }, ""},
		"b is fit":                    {func(*facts.Snapshot) {}, ""},
		"the active site is dr-only":  {func(s *facts.Snapshot) { s.Sites[0].Role = v1alpha1.DROnly }, ""},
		"b is dr-only, and is silent": {func(s *facts.Snapshot) { s.Sites[1].Role = v1alpha1.DROnly; factstest.Silence(&s.Sites[1]) }, ""},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s)
		if got := enlistable(s, facts.Memory{}); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
	s.Sites[1].Sidecar.Report.Keyring = factstest.Keyring("behind")
	if got := WayOut(s, facts.Memory{}, Candidate{}, false); got != remedy.NotEscrowed.Text {
		t.Errorf("I16: %s", got)
	}
	s.Sites[1].Sidecar.Report.Keyring = nil
	if got := WayOut(s, facts.Memory{}, Candidate{}, false); !strings.HasPrefix(got, bringBack) {
		t.Errorf("%s", got)
	}
	s.Sites = s.Sites[1:]
	if got := LostWayOut(s, facts.Memory{}, s.Sites[0]); !strings.Contains(got, HowToOrder("b")) {
		t.Errorf("%s", got)
	}
	s.Sites[0].Sidecar.Report.Epoch = 3
	if got := LostWayOut(s, facts.Memory{}, s.Sites[0]); strings.Contains(got, HowToOrder("b")) {
		t.Errorf("an order for a site that does not acknowledge the epoch: %s", got)
	}
}

// TestWhatTheEscrowKeepsI16: which of several silent sites is named, and when it is told loudly.
func TestWhatTheEscrowKeepsI16(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *facts.Snapshot)
		want   string
	}{
		"b's Secret is gone":            {func(s *facts.Snapshot) { s.Sites[1].EscrowMissing = true }, "b"},
		"nobody's is":                   {func(*facts.Snapshot) {}, ""},
		"the active site's is":          {func(s *facts.Snapshot) { s.Sites[0].EscrowMissing = true }, ""},
		"b's is, and it is dr-only too": {func(s *facts.Snapshot) { s.Sites[1].EscrowMissing, s.Sites[1].Role = true, v1alpha1.DROnly }, ""},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s)
		if got, found := restorable(s, facts.Memory{}); got != tc.want || found != (tc.want != "") {
			t.Errorf("I16: %s: %q", name, got)
		}
	}
	for name, tc := range map[string]struct {
		change func(s *facts.Snapshot)
		want   facts.Reason
	}{
		"b's keyring is not escrowed":       {func(s *facts.Snapshot) { s.Sites[1].Sidecar.Report.Keyring = factstest.Keyring("behind") }, v1alpha1.ReasonKeyringNotEscrowed},
		"I29: b is kept fenced":             {func(s *facts.Snapshot) { s.Sites[1].KeptFenced = true }, v1alpha1.ReasonKeptFenced},
		"b is fit":                          {func(*facts.Snapshot) {}, v1alpha1.ReasonNoFitCandidate},
		"b is down":                         {func(s *facts.Snapshot) { factstest.Silence(&s.Sites[1]) }, v1alpha1.ReasonNoFitCandidate},
		"the active site's is not escrowed": {func(s *facts.Snapshot) { s.Sites[0].Sidecar.Report.Keyring = factstest.Keyring("behind") }, v1alpha1.ReasonNoFitCandidate},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		tc.change(&s)
		if got := nobodyFit(s, facts.Memory{}); got != tc.want {
			t.Errorf("I16: %s: %s", name, got)
		}
	}
	target := factstest.Seen("b", "A:1-9", 4)
	s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "b", Transition: &facts.Transition{From: "a", To: "b", GatePassedAt: factstest.Start.Add(-31 * time.Second)}}, target)
	if got := LostFor(s, facts.Memory{}, target); got != v1alpha1.ReasonTargetLost {
		t.Errorf("I16: %s", got)
	}
	target.KeptFenced = true
	if got := LostFor(s, facts.Memory{}, target); got != v1alpha1.ReasonKeptFenced {
		t.Errorf("I29: %s", got)
	}
	target.Sidecar.Report.Keyring = factstest.Keyring("behind")
	if got := LostFor(s, facts.Memory{}, target); got != v1alpha1.ReasonKeyringNotEscrowed {
		t.Errorf("I16: %s", got)
	}
}

// TestWhoMayVouchIsAskedOnlyWithoutProof: for a site that is known to have ended nobody has to be heard.
func TestWhoMayVouchIsAskedOnlyWithoutProof(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *facts.Snapshot, a *facts.Site)
		want   string
	}{
		"nothing is known of it": {func(*facts.Snapshot, *facts.Site) {}, "c"},
		"it is in no list":       {func(s *facts.Snapshot, _ *facts.Site) { s.Sites = s.Sites[1:] }, ""},
		"it answers":             {func(_ *facts.Snapshot, a *facts.Site) { a.MySQL.Direct = true }, ""},
		"its pod has ended":      {func(_ *facts.Snapshot, a *facts.Site) { a.Pod.Ended = true }, ""},
		"its node is tainted":    {func(_ *facts.Snapshot, a *facts.Site) { a.Pod.OutOfService, a.OtherVolume = true, true }, ""},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
		factstest.Silence(&s.Sites[0])
		factstest.Silence(&s.Sites[2])
		tc.change(&s, &s.Sites[0])
		if got, _ := vouchedFor(s, facts.Memory{}, "b"); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWhomAFailoverNeeds: whoever is to take over answers by then, and vouches for nobody.
func TestWhomAFailoverNeeds(t *testing.T) {
	s := factstest.ThreeSites()
	s.Sites[1].Sidecar, s.Sites[2].Sidecar = facts.Sidecar{}, facts.Sidecar{}
	if got := strings.Join(SilentVouchers(s, facts.Memory{}, "b"), " "); got != "c" {
		t.Errorf("I4: waits for %q", got)
	}
}

// TestWhatAnOrderDoesNotOverrideIsSeenNow: the guards that an order does not override ask nothing that is remembered, so an order is followed or not
// for a whole decision, whatever that learns on its way.
func TestWhatAnOrderDoesNotOverrideIsSeenNow(t *testing.T) {
	known := facts.SiteMemory{Diverged: factstest.Set("A:1"), Unsettled: true, OtherVolume: true, SilentPolls: 9, Outlived: true, DownSince: factstest.Start, AloneAt: factstest.Start}
	for name, change := range map[string]func(*facts.Site){
		"it answers":                    func(*facts.Site) {},
		"it is silent":                  factstest.Silence,
		"it holds no data of the group": func(b *facts.Site) { b.Provisioned = false },
		"it is on another volume":       func(b *facts.Site) { b.OtherVolume = true },
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		change(&s.Sites[1])
		if now, then := UnfitByOrder(s, facts.Memory{}, s.Sites[1]), UnfitByOrder(s, facts.Memory{Sites: map[string]*facts.SiteMemory{"b": &known}}, s.Sites[1]); now != then {
			t.Errorf("%s: %+v, and with what is remembered %+v", name, now, then)
		}
	}
}

// TestWhomAFilterKeepsFromTheRoleI7: whoever has it, or had it with the same server, unless the role stays where it was.
func TestWhomAFilterKeepsFromTheRoleI7(t *testing.T) {
	change := func(kind v1alpha1.FailoverKind, from, to string) func(s *facts.Snapshot) {
		return func(s *facts.Snapshot) {
			s.Status.ActiveSite, s.Status.Transition = to, &facts.Transition{Kind: kind, From: from, To: to}
		}
	}
	for name, tc := range map[string]struct {
		change func(s *facts.Snapshot)
		was    string
		set    bool
		fit    bool
	}{
		"none":                               {func(*facts.Snapshot) {}, "", false, true},
		"it is set":                          {func(*facts.Snapshot) {}, "", true, false},
		"it was set":                         {func(*facts.Snapshot) {}, "b", false, false},
		"it was set before a clone":          {func(*facts.Snapshot) {}, "old", false, true},
		"on the active site":                 {func(s *facts.Snapshot) { s.Status.ActiveSite = "b" }, "b", true, true},
		"on who is to take over":             {change(v1alpha1.FailoverEmergency, "a", "b"), "", true, false},
		"on who had the role":                {change(v1alpha1.FailoverEmergency, "b", "a"), "", true, true},
		"on who is opened again":             {change(v1alpha1.FailoverEmergency, "b", "b"), "", true, true},
		"on who is to be the first":          {change(v1alpha1.FailoverBootstrap, "", "b"), "", true, true},
		"on who looks on at the first":       {change(v1alpha1.FailoverBootstrap, "", "a"), "b", false, true},
		"on who looks on, and is not active": {change(v1alpha1.FailoverPlanned, "a", "c"), "b", false, false},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		s.Sites[1].MySQL.Filtered = tc.set
		tc.change(&s)
		var m facts.Memory
		m.At("b").Filtered = tc.was
		if why := IsFiltered(s, m, s.Sites[1]); (why == "") != tc.fit {
			t.Errorf("I7: %s: %q", name, why)
		}
	}
}

// TestWhatIsWaitedFor: a refusal that may be over at the next poll, and none that a person has to end.
func TestWhatIsWaitedFor(t *testing.T) {
	for why, want := range map[facts.Reason]bool{
		v1alpha1.ReasonNotFit: true, v1alpha1.ReasonNotHealthy: true, v1alpha1.ReasonNotReplicating: true, v1alpha1.ReasonCloneInProgress: true,
		v1alpha1.ReasonForeignWriter: true, v1alpha1.ReasonVolumeTakesNoWrites: true, v1alpha1.ReasonLargeChange: true, v1alpha1.ReasonTargetSilent: true,
		v1alpha1.ReasonPaused: false, v1alpha1.ReasonModeObserve: false, v1alpha1.ReasonUnknownSite: false,
	} {
		if Passing(why) != want {
			t.Errorf("%s: waited for %t", why, !want)
		}
	}
}

// TestWhyAReplicaDoesNotReplicate: what is worst is told.
func TestWhyAReplicaDoesNotReplicate(t *testing.T) {
	for want, mysql := range map[string]facts.MySQL{
		"applier stopped: no table":     {SQLError: "no table", IOError: "no route", Delayed: true},
		"receiver stopped: no route":    {IOError: "no route", Delayed: true},
		"applies what it receives with": {Delayed: true},
		"does not replicate from":       {},
	} {
		if got := DetachedMessage(facts.Site{MySQL: mysql}); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWhoServesWhileAnOrderIsThoughtOf: an order is no advice against a site that acknowledges writes, and is one where commits hang.
func TestWhoServesWhileAnOrderIsThoughtOf(t *testing.T) {
	s := factstest.StalledGroup(wire.WriteDiskStalled)
	if (Takeover{s: s}).serves() {
		t.Error("a site whose volume takes no writes serves")
	}
	s.Sites[0].Sidecar.Report.WriteProbe = nil
	if !(Takeover{s: s}).serves() {
		t.Error("an open site serves nobody")
	}
	s.Sites[0].MySQL.SuperReadOnly, s.Sites[0].MySQL.ReadOnly = true, true
	if (Takeover{s: s}).serves() {
		t.Error("a site that is closed serves")
	}
}

// TestWhoseVolumeIsToBeMended: of a candidate that lacks nothing else, and not of the one that has the role.
func TestWhoseVolumeIsToBeMended(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *facts.Snapshot)
		want   string
	}{
		"b's":                       {func(*facts.Snapshot) {}, "b"},
		"b's, which is dr-only too": {func(s *facts.Snapshot) { s.Sites[1].Role = v1alpha1.DROnly }, ""},
		"nobody's":                  {func(s *facts.Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe.Outcome = wire.WriteDone }, ""},
		"that of whom the role is moved to": {func(s *facts.Snapshot) {
			s.Status.ActiveSite, s.Status.Transition = "b", &facts.Transition{Kind: v1alpha1.FailoverEmergency, From: "a", To: "b"}
		}, ""},
	} {
		s := factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		s.Sites[1].Sidecar.Report.VolumeProbe = &wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull}
		tc.change(&s)
		if got, found := writeless(s, facts.Memory{}); got != tc.want || found != (tc.want != "") {
			t.Errorf("%s: %q", name, got)
		}
		told := wire.InWords(Ask(s, facts.Memory{}, Candidate{}, false).remediesWithoutCandidate())
		if strings.Contains(told, "make room on the data volume of b") != (tc.want != "") || !strings.Contains(told, bringBack) {
			t.Errorf("%s: a person is told: %s", name, told)
		}
	}
}
