// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// keyring is what a sidecar reports in the states that matter to failover.
func keyring(state string) *wire.KeyringReport {
	switch state {
	case "escrowed":
		return &wire.KeyringReport{Digest: "sha256:1", EscrowedDigest: "sha256:1"}
	case "behind":
		return &wire.KeyringReport{Digest: "sha256:2", EscrowedDigest: "sha256:1", Trouble: "the operator does not answer"}
	case "unreadable":
		return &wire.KeyringReport{}
	case "sealed":
		return &wire.KeyringReport{Sealed: true, Digest: "sha256:2"}
	}
	return nil
}

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
					s.Sites[i].Sidecar.Report.Keyring = keyring(state)
				}
			}
			d := Decide(s, m)
			named, _ := s.Site(d.Status.ActiveSite)
			if d.Reason == "InvariantViolated" {
				t.Fatal(d.Message)
			}
			if isUnescrowed(s, d.Memory, named) == "" {
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
	site.Sidecar.Report.Keyring = keyring("behind")
	s := Snapshot{Status: Durable{Epoch: 3, ActiveSite: "b"}, Sites: []Site{site}}
	d := Decision{Status: s.Status, Effects: []Effect{Open{Site: "b"}}}
	if d.check(s) == nil {
		t.Error("I16: b is opened although its keyring is not escrowed")
	}
	s.Sites[0].Sidecar.Report.Keyring = keyring("escrowed")
	if err := d.check(s); err != nil {
		t.Errorf("an escrowed site is stopped: %v", err)
	}
}
