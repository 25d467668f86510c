// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// TestWhatIsExplainedOfASiteThatReturned: only what keeps the role there speaks against a failover.
func TestWhatIsExplainedOfASiteThatReturned(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict Verdict
		reason  Reason
		keyring string
		remedy  string
	}{
		"it is opened":                         {VerdictReopen, v1alpha1.ReasonReturnedWhole, "", "loses nothing"},
		"it is opened by order":                {VerdictReopen, v1alpha1.ReasonForced, "", "as was ordered"},
		"it does not open":                     {VerdictBlocked, v1alpha1.ReasonActiveSiteCannotOpen, "", "its log"},
		"it does not open, another takes over": {VerdictFailover, v1alpha1.ReasonActiveSiteCannotOpen, "", ""},
		"it is behind":                         {VerdictBlocked, v1alpha1.ReasonModeManual, "", ""},
		"its keyring is not in escrow":         {VerdictWait, v1alpha1.ReasonKeyringNotEscrowed, "behind", "wait: its sidecar"},
		"that of all others is not":            {VerdictBlocked, v1alpha1.ReasonKeyringNotEscrowed, "escrowed", ""},
		"it is behind, and so is its escrow":   {VerdictBlocked, v1alpha1.ReasonModeManual, "behind", ""},
	} {
		a := seen("a", "A:1-9", 4)
		a.Sidecar.Report.Keyring = keyring(tc.keyring)
		r := explained{s: world(Durable{Epoch: 4, ActiveSite: "a"}, a), active: a, d: Decision{Verdict: tc.verdict, Reason: tc.reason}}.returned()
		if (r.Verdict == wire.RuleAgainst) != (tc.remedy != "") || !strings.Contains(wire.InWords(r.Remedies), tc.remedy) || tc.remedy != "" && r.Reason != string(tc.reason) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestWhatIsExplainedOfAChange: what the loss budget says of each, and which verdicts keep it from going on.
func TestWhatIsExplainedOfAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		against  bool
	}{
		"to another site":   {"a", "b", true},
		"back to the same":  {"b", "b", false}, // there is nobody else who has it
		"to the first site": {"", "b", false},
	} {
		s := between(v1alpha1.FailoverEmergency, seen("a", "A:1-12", 4), seen("b", "A:1-9", 4))
		s.Status.Transition.From, s.Status.Transition.To, s.Status.Transition.FromExecuted, s.Policy.MaxLost = tc.from, tc.to, set("A:1-12"), new(int64)
		if r := (explained{s: s}).transitionBudget(s.Sites[1]); (r.Verdict == wire.RuleAgainst) != tc.against {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for verdict, want := range map[Verdict]wire.RuleVerdict{
		VerdictWait: wire.RuleAgainst, VerdictBlocked: wire.RuleAgainst, VerdictAlert: wire.RuleAgainst, VerdictPromote: wire.RuleFor,
	} {
		if got := verdictOf(Decision{Verdict: verdict}); got != want {
			t.Errorf("%s: %s", verdict, got)
		}
	}
}

// TestWhatIsExplainedOfAStall: when another site takes over, or that none does.
func TestWhatIsExplainedOfAStall(t *testing.T) {
	for reason, limits := range map[string]map[time.Duration]string{
		wire.WriteDiskStalled: {time.Minute: "after spec.failover.stallTimeout 1m0s, of which 20s have passed", 0: "stallTimeout is 0s"},
		wire.WriteNoAnswer:    {time.Minute: ""},
	} {
		for limit, want := range limits {
			s := stalledGroup(reason)
			s.Policy.StallTimeout = limit
			s, d := lasts(s, Memory{}, 20*time.Second)
			e := Explain(s, d.Memory, d)
			i := strings.Index(e.Rules[1].Input, "; ")
			if said := e.Rules[1].Input; d.Unwritable == nil || !strings.Contains(said, want) || want == "" && strings.Contains(said, "stallTimeout") {
				t.Errorf("%s, %s: %d %+v", reason, limit, i, e.Rules[1])
			}
		}
	}
}

// TestWhomAFailoverNeeds: whoever is to take over answers by then, and vouches for nobody.
func TestWhomAFailoverNeeds(t *testing.T) {
	s := threeSites()
	s.Sites[1].Sidecar, s.Sites[2].Sidecar = Sidecar{}, Sidecar{}
	if got := strings.Join(silentVouchers(s, Memory{}, "b"), " "); got != "c" {
		t.Errorf("I4: waits for %q", got)
	}
}

// TestWhoFollowsNobody: a replica of something that is no site is no replica of a group without an active site.
func TestWhoFollowsNobody(t *testing.T) {
	b := seen("b", "A:1-9", 4)
	b.MySQL.IORunning, b.MySQL.SQLRunning = true, true
	if got, _, _ := state(Decision{}, b, Site{}); got != v1alpha1.SiteDetached {
		t.Errorf("it is a %s of nobody", got)
	}
}

// TestSinceWhenAVolumeIsStalled: silence alone is no stall, and begins none.
func TestSinceWhenAVolumeIsStalled(t *testing.T) {
	s := stalledGroup(wire.WriteDiskStalled)
	s.Sites[0].Sidecar = Sidecar{}
	if since := remember(s, Memory{}).Of("a").StalledSince; !since.IsZero() {
		t.Errorf("since %s", since)
	}
	for name, tc := range map[string]struct {
		change func(*Site)
		want   bool
	}{
		"it is open and stalled": {func(*Site) {}, true},
		"its sidecar is silent":  {func(a *Site) { a.Sidecar.Answered = false }, false},
		"it is read-only":        {func(a *Site) { a.MySQL.SuperReadOnly = true }, false},
		"it takes writes":        {func(a *Site) { a.Sidecar.Report.WriteProbe = &wire.WriteProbe{Outcome: wire.WriteDone} }, false},
	} {
		a := stalledGroup(wire.WriteDiskStalled).Sites[0]
		tc.change(&a)
		if stalls(a) != tc.want {
			t.Errorf("%s: %t", name, !tc.want)
		}
	}
}

// TestWhatIsSaidOfTheVolumeOfACandidate: what nobody knows is not told as trouble.
func TestWhatIsSaidOfTheVolumeOfACandidate(t *testing.T) {
	for name, tc := range map[string]struct {
		probe *wire.VolumeProbe
		want  string
	}{
		"it takes writes":  {&wire.VolumeProbe{Outcome: wire.WriteDone}, ""},
		"it takes none":    {&wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull}, "its own volume takes no writes (" + wire.WriteDiskFull + ")"},
		"nobody tried":     {nil, "it is not known whether its own volume takes writes"},
		"the try is old":   {&wire.VolumeProbe{Outcome: wire.WriteDone, AgeMillis: 31_000}, "it is not known whether its own volume takes writes"},
		"nobody found out": {&wire.VolumeProbe{Outcome: wire.WriteUnknown}, "it is not known whether its own volume takes writes"},
	} {
		b := Site{Name: "b", Sidecar: Sidecar{Answered: true}}
		b.Sidecar.Report.VolumeProbe = tc.probe
		if got := takesNoWrites(b); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
