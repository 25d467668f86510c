// SPDX-License-Identifier: Apache-2.0

package scope

import "testing"

// TestAReplicaThatMayLackRowsIsNoHealthyCopyI14: it protects no other site from being cloned, and needs no protection itself.
func TestAReplicaThatMayLackRowsIsNoHealthyCopyI14(t *testing.T) {
	s := &Scope{Provisioned: map[string]bool{"b": true}}
	for _, filtered := range []bool{false, true} {
		s.Facts.Sites = map[string]SiteFacts{"b": {MysqlUp: true, Following: true, Filtered: filtered}}
		if HealthyCopy(s, "b") == filtered {
			t.Errorf("I14: filtered %t: healthy %t", filtered, HealthyCopy(s, "b"))
		}
	}
}

// TestACopyWhoseVolumeGoesDoesNotLastI14: it protects no other site from being cloned, but is protected itself as long as it is there.
func TestACopyWhoseVolumeGoesDoesNotLastI14(t *testing.T) {
	s := &Scope{Provisioned: map[string]bool{"b": true}}
	s.Facts.Sites = map[string]SiteFacts{"b": {MysqlUp: true, Following: true}}
	for _, terminating := range []bool{false, true} {
		s.Terminating = map[string]bool{"b": terminating}
		if !HealthyCopy(s, "b") || LastingCopy(s, "b") == terminating {
			t.Errorf("I14: terminating %t: healthy %t, lasting %t", terminating, HealthyCopy(s, "b"), LastingCopy(s, "b"))
		}
	}
}
