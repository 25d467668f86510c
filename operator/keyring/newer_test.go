// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// fromNothing is a site that was unsealed with a fresh keyring although three versions are in escrow, and lost its pod.
func fromNothing(work v1alpha1.KeyringWork) change {
	return func(g *Group, s *Site) {
		n := Next{Name: s.Name, Status: s.Status, site: *s}
		n.Status.Phase = unsealed
		n.unseal(work, Version{})
		s.Status, s.TokenRound = n.Status, n.Status.Round
		s.Rendered = Rendered{Exists: true, Keyring: true}
		podLost(g, s)
	}
}

// Old versions open nothing that was written with a fresh keyring: they are neither sealed with nor started from.
func TestOldVersionsAreNotOfThisRound(t *testing.T) {
	for name, work := range map[string]v1alpha1.KeyringWork{"bootstrap": boot, "clone": clone} {
		for state, data := range map[string]change{"with data": func(*Group, *Site) {}, "without": noData} {
			t.Run(name+", "+state, func(t *testing.T) {
				g, s := at(unsealed, fromNothing(work), data)
				if v, have := newer(s); have {
					t.Errorf("%s counts as escrowed in this round", v.Name)
				}
				n := Decide(g).Sites[1]
				if n.Wish.Sealed || n.Wish.Secret != "" {
					t.Errorf("goes on from an old version: %+v", n.Wish)
				}
				// What is escrowed now is of this round.
				g, s = at(unsealed, fromNothing(work), data, add(4))
				if v, have := newer(s); !have || v.Number != 4 {
					t.Errorf("the version of this round is not found: %+v", v)
				}
				if n := Decide(g).Sites[1]; n.Wish.Version != 4 {
					t.Errorf("does not go on from version 4: %+v", n.Wish)
				}
			})
		}
	}
}

// After a roll-back newer versions are kept. They are not of the round either.
func TestVersionsOfARollBackAreNotOfThisRound(t *testing.T) {
	_, s := at(sealed)
	n := Next{Name: s.Name, Status: s.Status, site: s}
	n.unseal(rot, ver(2))
	s.Status = n.Status
	if v, have := newer(s); have {
		t.Errorf("%s counts as escrowed in this round", v.Name)
	}
	// A round that an earlier operator began has no floor.
	s.Status.FloorVersion = 0
	if v, have := newer(s); !have || v.Number != 3 {
		t.Errorf("got %+v", v)
	}
}
