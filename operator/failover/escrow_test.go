// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// TestNobodyIsOpenedWithoutEscrow covers I16: whatever is seen and whatever a person orders, a site whose live keyring is
// not in escrow is neither opened nor let open by a statement; one that is open is not closed.
func TestNobodyIsOpenedWithoutEscrow(t *testing.T) {
	stopped, spared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 30 {
			s := drawSnapshot(t)
			drawPolicy(t, &s)
			if rapid.Bool().Draw(t, "opening") && s.Status.Transition != nil {
				s.Status.Transition.Step = v1alpha1.TransitionOpening
			}
			m := drawMemory(t, s)
			free := Decide(s, m)
			for i := range s.Sites {
				if state := rapid.SampledFrom([]string{"", "behind", "unreadable"}).Draw(t, "keyring"); s.Sites[i].Sidecar.Answered {
					s.Sites[i].Sidecar.Report.Keyring = factstest.Keyring(state)
				}
			}
			d := Decide(s, m)
			named, _ := s.Site(d.Status.ActiveSite)
			if d.Reason == "InvariantViolated" {
				t.Fatal(d.Message)
			}
			if promotion.IsUnescrowed(s, d.Memory, named) == "" {
				continue
			}
			if !d.Hold {
				t.Fatalf("I16: %s may open by what is stated: %s", named.Name, d.Message)
			}
			if !free.Hold && !named.Writable() {
				stopped++
			}
			if named.Writable() && s.Status.Transition == nil && named.Name == s.Status.ActiveSite {
				spared++
				for _, e := range d.Effects {
					if a, is := e.(Announce); is && len(a.Fence) > 0 && a.Fence[0] == named.Name {
						t.Fatalf("I16: %s is open and is closed for its keyring: %s", named.Name, d.Message)
					}
				}
			}
		}
	})
	if stopped == 0 || spared == 0 {
		t.Fatalf("the draws never reached it: %d stopped, %d spared", stopped, spared)
	}
}

// TestCheckStopsAnOpeningWithoutEscrow covers I16: the last guard stands by itself.
func TestCheckStopsAnOpeningWithoutEscrow(t *testing.T) {
	site := Site{Name: "b"}
	site.Sidecar.Report.Keyring = factstest.Keyring("behind")
	s := Snapshot{Status: Durable{Epoch: 3, ActiveSite: "b"}, Sites: []Site{site}}
	d := Decision{Status: s.Status, Effects: []Effect{Open{Site: "b"}}}
	if d.check(s) == nil {
		t.Error("I16: b is opened although its keyring is not escrowed")
	}
	s.Sites[0].Sidecar.Report.Keyring = factstest.Keyring("escrowed")
	if err := d.check(s); err != nil {
		t.Errorf("an escrowed site is stopped: %v", err)
	}
}

// TestHowLongASiteIsKeptShutI16: it is told loudly once that takes longer than any step may.
func TestHowLongASiteIsKeptShutI16(t *testing.T) {
	s := factstest.World(Durable{Epoch: 4, ActiveSite: "b", Transition: &Transition{From: "a", To: "b", GatePassedAt: factstest.Start.Add(-31 * time.Second)}}, factstest.Seen("b", "A:1-9", 4))
	if d := (Decision{Memory: Memory{ReopenSince: s.Now, DrainSince: factstest.Start.Add(-31 * time.Second)}}).keptShut(s, TopologyTransition, "b", "why"); d.Verdict != VerdictBlocked || !strings.Contains(d.Message, remedy.NotEscrowed.Text) {
		t.Errorf("I16: %s: %s", d.Verdict, d.Message)
	}
	s.LeaderSince = s.Now // who leads since now has seen none of that time
	if d := (Decision{}).keptShut(s, TopologyTransition, "b", "why"); d.Verdict != VerdictWait || strings.Contains(d.Message, remedy.NotEscrowed.Text) {
		t.Errorf("I16: %s: %s", d.Verdict, d.Message)
	}
	s.Status.Transition = nil
	if d := (Decision{Memory: Memory{ReopenSince: s.Now.Add(-31 * time.Second)}}).keptShut(s, TopologyActiveReadOnly, "b", "why"); d.Verdict != VerdictBlocked {
		t.Errorf("I16: %s: %s", d.Verdict, d.Message)
	}
}
