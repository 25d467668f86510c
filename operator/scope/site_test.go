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
