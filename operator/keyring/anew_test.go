// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"testing"
)

// I14: what a clone from a fresh keyring made is kept by the sidecar once its keyring was in escrow. If that is gone and the pod too,
// only a person gives it up, and one order makes one round for each pod: a round has no pod yet as long as the one before is there.
func TestWhatARoundMadeIsGivenUpByOrderI14(t *testing.T) {
	here := func(_ *Group, s *Site) { s.Pod.Round = s.Status.Round }
	for name, tc := range map[string]struct {
		reason  string
		changes []change
		anew    bool
	}{
		"confirmed":              {"a person gives it up", []change{noData, cloneConfirmed, here}, true},
		"ordered":                {"that person did not say that the data may go", []change{noData, cloneWanted, here}, false},
		"not ordered":            {"its keyring may be brought back by hand", []change{noData, here}, false},
		"confirmed, the old pod": {"the pod of the new round is still to come", []change{noData, cloneConfirmed}, false},
		"confirmed, not marked":  {"I15: the mark goes first", []change{cloneConfirmed, here}, false},
		"confirmed, no donor":    {"there is nothing to clone from", []change{noData, cloneConfirmed, here, func(g *Group, _ *Site) { g.Donor = false }}, false},
		"confirmed, active":      {"it is what the others are copies of", []change{noData, cloneConfirmed, here, isActive}, false},
		"confirmed, in escrow":   {"it goes on from there", []change{noData, cloneConfirmed, here, add(4)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := at(unsealed, append([]change{fromNothing(clone)}, tc.changes...)...)
			n := Decide(g).Sites[1]
			anew := n.Status.Round == s.Status.Round+1 && n.Status.Work == clone && n.Wish.Secret == ""
			if anew != tc.anew {
				t.Errorf("%s: from round %d to %+v", tc.reason, s.Status.Round, n.Wish)
			}
		})
	}
}
