// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/failover"
)

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
		s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-12", 4), factstest.Seen("b", "A:1-9", 4))
		s.Status.Transition.From, s.Status.Transition.To, s.Status.Transition.FromExecuted, s.Policy.MaxLost = tc.from, tc.to, factstest.Set("A:1-12"), new(int64)
		if r := (explained{s: s}).transitionBudget(s.Sites[1]); (r.Verdict == wire.RuleAgainst) != tc.against {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// The transition was begun before the last look at the old active site: the decision counts what was seen since, and so does this.
	s, m := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("b", "A:1-9", 4)), facts.Memory{}
	s.Status.Transition.From, s.Status.Transition.To, s.Status.Transition.FromExecuted, s.Policy.MaxLost = "a", "b", factstest.Set("A:1-9"), new(int64)
	for known, against := range map[string]bool{"A:1-9": false, "A:1-12": true} {
		m.At("a").Executed = factstest.Set(known)
		if r := (explained{s: s, m: m}).transitionBudget(s.Sites[0]); (r.Verdict == wire.RuleAgainst) != against {
			t.Errorf("%s was seen: %+v", known, r)
		}
	}
	for verdict, want := range map[failover.Verdict]wire.RuleVerdict{
		failover.VerdictWait: wire.RuleAgainst, failover.VerdictBlocked: wire.RuleAgainst, failover.VerdictAlert: wire.RuleAgainst, failover.VerdictPromote: wire.RuleFor,
	} {
		if got := verdictOf(failover.Decision{Verdict: verdict}); got != want {
			t.Errorf("%s: %s", verdict, got)
		}
	}
}

// TestUntilWhenTheGateWaits: the end of a lease is told as a time too, for who counts down to it, and as one that is to come.
func TestUntilWhenTheGateWaits(t *testing.T) {
	s := factstest.Between(v1alpha1.FailoverEmergency, facts.Site{Name: "a", Role: v1alpha1.PrimaryCandidate, Provisioned: true}, factstest.Seen("b", "A:1-9", 4))
	s.Sites[0].Pod = facts.Pod{Exists: true, UID: "pod-a", Lease: 22 * time.Second}
	s.Now, s.LeaderSince = factstest.Start.Add(10*time.Second), factstest.Start
	x := explained{s: s, m: facts.Memory{Sites: map[string]*facts.SiteMemory{"a": {Confirmed: "pod-a"}, "b": {Ack: &facts.Ack{Epoch: 4, Fenced: true}}}}}
	r := x.gate(s.Sites[1])
	if !r.Until.After(s.Now) || !strings.Contains(r.Input, "its lease runs out at "+r.Until.UTC().Format(time.RFC3339)) {
		t.Errorf("%+v", r)
	}
}

// TestWhatIsExplainedOfASiteThatReturned: only what keeps the role there speaks against a failover.
func TestWhatIsExplainedOfASiteThatReturned(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict failover.Verdict
		reason  facts.Reason
		keyring string
		remedy  string
	}{
		"it is opened":                         {failover.VerdictReopen, v1alpha1.ReasonReturnedWhole, "", "loses nothing"},
		"it is opened by order":                {failover.VerdictReopen, v1alpha1.ReasonForced, "", "as was ordered"},
		"it does not open":                     {failover.VerdictBlocked, v1alpha1.ReasonActiveSiteCannotOpen, "", "why it does not open: kubectl logs -c sidecar "},
		"it does not open, another takes over": {failover.VerdictFailover, v1alpha1.ReasonActiveSiteCannotOpen, "", ""},
		"it is behind":                         {failover.VerdictBlocked, v1alpha1.ReasonModeManual, "", ""},
		"its keyring is not in escrow":         {failover.VerdictWait, v1alpha1.ReasonKeyringNotEscrowed, "behind", "wait: its sidecar"},
		"that of all others is not":            {failover.VerdictBlocked, v1alpha1.ReasonKeyringNotEscrowed, "escrowed", ""},
		"it is behind, and so is its escrow":   {failover.VerdictBlocked, v1alpha1.ReasonModeManual, "behind", ""},
	} {
		a := factstest.Seen("a", "A:1-9", 4)
		a.Sidecar.Report.Keyring = factstest.Keyring(tc.keyring)
		r := explained{s: factstest.World(facts.Durable{Epoch: 4, ActiveSite: "a"}, a), active: a, d: failover.Decision{Verdict: tc.verdict, Reason: tc.reason}}.returned()
		if (r.Verdict == wire.RuleAgainst) != (tc.remedy != "") || !strings.Contains(wire.InWords(r.Remedies), tc.remedy) || tc.remedy != "" && r.Reason != string(tc.reason) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestWhatToDoWithoutAnActiveSite: what is against it comes with a next step, and what needs nobody says so.
func TestWhatToDoWithoutAnActiveSite(t *testing.T) {
	silent := facts.Site{Name: "b", Role: v1alpha1.PrimaryCandidate}
	with := func(change func(b *facts.Site)) facts.Site {
		b := factstest.Seen("b", "A:1-9", 0)
		change(&b)
		return b
	}
	for name, tc := range map[string]struct {
		reason facts.Reason
		b      facts.Site
		want   string
	}{
		"the first site is chosen":     {v1alpha1.ReasonFirstSite, factstest.Seen("b", "A:1-9", 0), "none needed"},
		"one is open":                  {v1alpha1.ReasonStatusBehind, silent, "none needed"},
		"a backup is loaded":           {v1alpha1.ReasonRestoring, silent, "kubectl mfg status orders -n shop -w"},
		"its keyring is not in escrow": {v1alpha1.ReasonKeyringNotEscrowed, silent, "wait: its sidecar"},
		"a candidate is silent":        {v1alpha1.ReasonWaitingForSites, silent, "see what is wrong with b: kubectl describe pods -n shop -l mysql-mfg.io/failover-group=orders,mysql-mfg.io/site=b"},
		"only its MySQL is silent":     {v1alpha1.ReasonWaitingForSites, with(func(b *facts.Site) { b.MySQL.Direct = false }), "see what is wrong with b: "},
		"only its sidecar is silent":   {v1alpha1.ReasonWaitingForSites, with(func(b *facts.Site) { b.Sidecar.Answered = false }), "see what is wrong with b: "},
		"it is dr-only, and silent":    {v1alpha1.ReasonWaitingForSites, facts.Site{Name: "b", Role: v1alpha1.DROnly}, "see the sites: "},
		"it left, and is silent":       {v1alpha1.ReasonWaitingForSites, facts.Site{Name: "b", Role: v1alpha1.PrimaryCandidate, Removed: true}, "see the sites: "},
		"all answer, a person chooses": {v1alpha1.ReasonMissingTransactions, factstest.Seen("b", "A:1-9", 0), "see the sites: kubectl mfg status orders -n shop"},
	} {
		s := factstest.World(facts.Durable{}, factstest.Seen("a", "A:1-9", 0), tc.b)
		s.Group = facts.Group{Namespace: "shop", Name: "orders"}
		rules := explained{s: s, d: failover.Decision{Reason: tc.reason}}.rules()
		if got := wire.InWords(rules[0].Remedies); len(rules) != 1 || !strings.Contains(got, tc.want) || rules[0].Verdict != wire.RuleAgainst {
			t.Errorf("%s: %+v", name, rules)
		}
	}
}
