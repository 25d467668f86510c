// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// Rows of what the simulation found. Each sequence needs two or three faults in a row.

func opensSite(d Decision, site string) bool {
	return slices.ContainsFunc(d.Effects, func(e Effect) bool { o, is := e.(Open); return is && o.Site == site })
}

func TestATargetThatLostItsDataAfterTheGateIsNotOpenedI7(t *testing.T) {
	status := Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionOpening,
		From: "a", To: "b", GatePassedAt: factstest.Start, ToExecuted: factstest.Set("A:1-9")}}
	for name, change := range map[string]func(*Site){
		"it holds less":              func(b *Site) { b.MySQL.Executed = factstest.Set("A:1-3") },
		"it is on another volume":    func(b *Site) { b.OtherVolume = true },
		"it holds all (must reopen)": func(*Site) {},
	} {
		b := factstest.Seen("b", "A:1-9", 4)
		change(&b)
		s := factstest.World(status, factstest.Seen("a", "A:1-9", 3), b)
		s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
		want := name == "it holds all (must reopen)"
		if got := opensSite(Decide(s, Memory{}), "b"); got != want {
			t.Errorf("I7, I12: %s: opened %t, want %t", name, got, want)
		}
	}
}

func TestAnOrderForADivergedSiteStandsI9(t *testing.T) {
	b := factstest.Seen("b", "A:1-5,B:1-3", 4)
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverForced, Step: v1alpha1.TransitionFencing,
		From: "a", To: "b", StartedAt: factstest.Start}}, Site{Name: "a", Role: v1alpha1.PrimaryCandidate, Provisioned: true}, b, factstest.Seen("c", "A:1-9", 4))
	s.Policy.ForceTo = "b"
	m := Memory{Sites: map[string]*SiteMemory{"b": {Diverged: factstest.Set("B:1-3")}}}
	if d := Decide(s, m); d.Status.ActiveSite != "b" || d.Status.Epoch != 4 {
		t.Errorf("the order and its replacement take turns: %s %s under epoch %d", d.Reason, d.Status.ActiveSite, d.Status.Epoch)
	}
}

func TestWhatStillReceivesKeepsItsSourceI8(t *testing.T) {
	b := factstest.Seen("b", "A:1-5", 4)
	b.MySQL.Retrieved, b.MySQL.ReplicaHost, b.MySQL.ReplicaOf, b.MySQL.ReceiverStopped = factstest.Set("A:1-5"), "a", "a", false
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing,
		From: "a", To: "b", StartedAt: factstest.Start}}, Site{Name: "a", Role: v1alpha1.PrimaryCandidate, Provisioned: true}, b, factstest.Seen("c", "A:1-9", 4))
	follows := func() bool {
		return slices.ContainsFunc(Decide(s, Memory{}).Effects, func(e Effect) bool { _, is := e.(Follow); return is })
	}
	if follows() {
		t.Error("I8: another source is given while the first still fills the relay log")
	}
	s.Sites[1].MySQL.ReceiverStopped = true
	if !follows() {
		t.Error("what the target lacks is never fetched")
	}
}

// replacedOnce is a group whose a was replaced by b and was not compared; now b is lost.
func replacedOnce(exact bool) Snapshot {
	r := v1alpha1.FailoverRecord{Epoch: 3, From: "a", To: "b", FromServerUUID: "a", ToExecuted: factstest.Set("A:1-9").String(), LossExact: exact}
	if exact {
		r.LostTransactions, r.LostSet = 2, factstest.Set("A:10-11").String()
	}
	s := factstest.World(Durable{Epoch: 3, ActiveSite: "b", Records: []v1alpha1.FailoverRecord{r}},
		factstest.Seen("a", "A:1-11", 3), Site{Name: "b", Role: v1alpha1.PrimaryCandidate, Provisioned: true}, factstest.Seen("c", "A:1-7", 3))
	return s
}

func TestAReplacedSiteThatHoldsLostTransactionsIsNoCandidateI10(t *testing.T) {
	for _, exact := range []bool{false, true} {
		if c, found := promotion.Choose(replacedOnce(exact), marked(replacedOnce(exact), Memory{}), "b"); !found || c.Site.Name != "c" {
			t.Errorf("I10: exact %t, and all else forgotten: %s is chosen", exact, c.Site.Name)
		}
	}
}

func TestWhatAReplacedSiteHoldsForTheGroupIsMissedI7(t *testing.T) {
	s := replacedOnce(false)
	c, _ := s.Site("c")
	lacks, where := lineage.Missing(s, marked(s, Memory{}), c)
	if where != "a" || !lacks.Equal(factstest.Set("A:8-9")) {
		t.Errorf("I7: %s is missing, on %q; want A:8-9 on a, and not A:10-11, which were written off", lacks, where)
	}
	s.Status.Epoch, s.Status.ActiveSite = 4, "c"
	s.Status.Transition = &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "b", To: "c", StartedAt: factstest.Start}
	for i := range s.Sites {
		s.Sites[i].Sidecar.Report.Epoch = 4
	}
	d := Decide(s, Memory{})
	if d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonMissingTransactions {
		t.Errorf("I7: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	for _, e := range d.Effects {
		if f, is := e.(Follow); is {
			t.Errorf("I10: %s, with what was written off", f)
		}
	}
}

func TestTheEndOfAPodOnAnotherVolumeProvesNothingI12(t *testing.T) {
	s := replacedOnce(false)
	s.Sites[1].Pod = Pod{Exists: true, UID: "new", Ended: true}
	s.Status.Transition = &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "b", To: "c", StartedAt: factstest.Start}
	if proof := fenceProof(s, Memory{Sites: map[string]*SiteMemory{"b": {Confirmed: "old"}}}, "b"); proof != "" {
		t.Errorf("I12: %s", proof)
	}
	if proof := fenceProof(s, Memory{Sites: map[string]*SiteMemory{"b": {Confirmed: "new"}}}, "b"); proof == "" {
		t.Error("the end of the pod that held the data proves nothing")
	}
}

func TestTheServerOfANewVolumeIsNotRememberedI12(t *testing.T) {
	s := replacedOnce(false)
	s.Sites[1] = factstest.Seen("b", "B:1", 3)
	s.Sites[1].OtherVolume = true
	m := memory.Remember(s, Memory{Sites: map[string]*SiteMemory{"b": {UUID: "old", Executed: factstest.Set("A:1-9")}}})
	if m.At("b").UUID != "old" || !m.At("b").Executed.Equal(factstest.Set("A:1-9")) {
		t.Errorf("I12: remembered as %s with %s", m.At("b").UUID, m.At("b").Executed)
	}
}

func TestWhatTheActiveSiteHasIsNotLostI10(t *testing.T) {
	s := replacedOnce(true)
	if !marked(s, Memory{}).Of("a").Unsettled {
		t.Error("I10: a holds what was lost and may be attached")
	}
	if marked(s, Memory{Sites: map[string]*SiteMemory{"b": {Executed: factstest.Set("A:1-11")}}}).Of("a").Unsettled {
		t.Error("a is kept out for transactions that the active site has")
	}
}

func TestANewPodDoesNotShortenTheLeaseOfTheOldOneI4(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"it is on another volume": func(s *Snapshot) { s.Sites[0].OtherVolume = true },
		"the role moves away from it": func(s *Snapshot) {
			s.Status.Transition = &Transition{Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "a", To: "c", StartedAt: factstest.Start}
		},
	} {
		s := replacedOnce(false)
		s.Sites[0].Pod.Lease = 17 * time.Second
		change(&s)
		if got := memory.Remember(s, Memory{Sites: map[string]*SiteMemory{"a": {Lease: 32 * time.Second}}}).Of("a").Lease; got != 32*time.Second {
			t.Errorf("I4: %s: the old pod is counted as fenced after %s, it stays open for 32s", name, got)
		}
	}
	s := replacedOnce(false)
	s.Sites[0].Pod.Lease = 17 * time.Second
	if got := memory.Remember(s, Memory{Sites: map[string]*SiteMemory{"a": {Lease: 32 * time.Second}}}).Of("a").Lease; got != 17*time.Second {
		t.Errorf("a pod that holds the volume proves that the one before it is gone; its lease counts as %s", got)
	}
}
