// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// TestOneLostAnswerTakesNoOrderBack: a person ordered b, which cannot be promoted in this poll. The order moves nothing then, and what b lacks
// stays accepted: the change does not turn back to a, which has more.
func TestOneLostAnswerTakesNoOrderBack(t *testing.T) {
	for name, tc := range map[string]struct {
		order string
		to    string
	}{"it is ordered": {"b", "b"}, "nobody is": {"", "a"}} {
		s := factstest.Between(v1alpha1.FailoverForced, factstest.Seen("a", "A:1-11", 4), factstest.Seen("b", "A:1-9", 4))
		s.Policy.ForceTo, s.Sites[1].MySQL.Direct = tc.order, false
		if o := promotion.WithOrder(s).Order; o.To != "" || o.Accepted != (tc.order == "b") || o.Elsewhere("a") {
			t.Errorf("%s: %+v", name, o)
		}
		if d := Decide(s, Memory{}); d.Status.ActiveSite != tc.to {
			t.Errorf("%s: %s is to be opened: %s", name, d.Status.ActiveSite, d.Message)
		}
	}
}

// TestAnOrderIsNotKeptFromWhatWasAcceptedI10: c, which was replaced, has more, and b was ordered all the same. What b still receives is waited for, and
// not that somebody brings back what c has.
func TestAnOrderIsNotKeptFromWhatWasAcceptedI10(t *testing.T) {
	for order, want := range map[string]Reason{"b": v1alpha1.ReasonDrainingRelayLog, "": v1alpha1.ReasonMissingTransactions} {
		s := factstest.Between(v1alpha1.FailoverForced, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-12", 4))
		factstest.Silence(&s.Sites[0])
		s.Status.Records = []v1alpha1.FailoverRecord{{From: "c", To: "x", ToExecuted: factstest.Set("A:1-12").String()}}
		s.Sites[1].MySQL.ReplicaHost, s.Sites[1].MySQL.ReceiverStopped, s.Policy.ForceTo = "a", false, order
		if d := Decide(s, Memory{}); d.Reason != want {
			t.Errorf("I10: ordered %q: %s %s: %s", order, d.Verdict, d.Reason, d.Message)
		}
	}
}

// TestWhereAnOrderGoes: to a site that can be promoted, and to no other than the one that it names.
func TestWhereAnOrderGoes(t *testing.T) {
	s := factstest.Between(v1alpha1.FailoverEmergency, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4), factstest.Seen("c", "A:1-9", 4))
	s.Policy.ForceTo = "c"
	o := promotion.WithOrder(s).Order
	if o.To != "c" || o.Accepted || !o.Elsewhere("b") || o.Elsewhere("c") {
		t.Errorf("%+v", o)
	}
	s.Sites[2].Role = v1alpha1.DROnly
	if o := promotion.WithOrder(s).Order; o.To != "" || o.Elsewhere("b") {
		t.Errorf("I6: %+v", o)
	}
}

// TestAReplacedSiteIsComparedWithWhatTheActiveSiteHadI10: a has lost what it had, also what c alone had when it was replaced, long ago. So that is a
// part of the history, and c, which has it still, takes over, and not b, which never had it.
func TestAReplacedSiteIsComparedWithWhatTheActiveSiteHadI10(t *testing.T) {
	had := factstest.Set("A:1-9,C:1-2")
	for name, opening := range map[string]bool{"it came back": false, "it is being opened": true} {
		s := factstest.World(Durable{Epoch: 5, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 5), factstest.Seen("b", "A:1-9", 5), factstest.Seen("c", "A:1-9,C:1-2", 5))
		s.Status.Records = []v1alpha1.FailoverRecord{{Epoch: 5, From: "b", To: "a", LossExact: true},
			{Epoch: 4, From: "c", To: "b", LossExact: true, LostTransactions: 2, LostSet: factstest.Set("C:1-2").String(), ToExecuted: factstest.Set("A:1-9").String()}}
		if opening {
			s.Status.Transition = &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionOpening, From: "b", To: "a",
				StartedAt: s.Now, DetectedAt: s.Now, GatePassedAt: s.Now, ToExecuted: had}
		}
		d := Decide(s, Memory{Sites: map[string]*SiteMemory{"a": {Executed: had}}})
		if d.Status.ActiveSite != "c" || d.Reason != v1alpha1.ReasonActiveSiteBehind {
			t.Errorf("I10: %s: %s: %s", name, d.Status.ActiveSite, d.Message)
		}
	}
}

// TestASiteThatIsPutBackCanBeOrdered: b left the specification by mistake, and is back. a, which has the data, is silent. The mark of b stayed with
// its objects: without it and without its volume nobody can tell b from a site that never got the data.
func TestASiteThatIsPutBackCanBeOrdered(t *testing.T) {
	for _, marked := range []bool{true, false} {
		s := factstest.World(Durable{Epoch: 4, ActiveSite: "a"}, factstest.Seen("a", "A:1-9", 4), factstest.Seen("b", "A:1-9", 4))
		factstest.Silence(&s.Sites[0])
		s.Sites[1].Provisioned, s.Sites[1].Unnoted, s.Policy.ForceTo = marked, !marked, "b"
		if unfit := promotion.UnfitByOrder(s, Memory{}, s.Sites[1]); (unfit.By == "") != marked {
			t.Errorf("marked %t: %+v", marked, unfit)
		}
	}
}
