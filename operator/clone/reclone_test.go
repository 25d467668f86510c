// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"testing"

	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// TestACopyWhoseVolumeGoesIsNoOtherCopyI14: b is not given up for a copy on c that is gone when its pod ends.
func TestACopyWhoseVolumeGoesIsNoOtherCopyI14(t *testing.T) {
	replica := scope.SiteFacts{MysqlUp: true, Following: true}
	s := &scope.Scope{Group: scopetest.Group(), Provisioned: map[string]bool{"b": true, "c": true}}
	s.Group.Status.ActiveSite = "a"
	s.Facts.Sites = map[string]scope.SiteFacts{"b": replica, "c": replica}
	for _, terminating := range []bool{false, true} {
		s.Terminating = map[string]bool{"c": terminating}
		if refused := isOnlyOtherCopy(s, request{site: "b"}) != ""; refused != terminating {
			t.Errorf("I14: the claim of c is being deleted %t: a clone of b is refused %t", terminating, refused)
		}
	}
	s.Terminating = map[string]bool{"b": true}
	s.Provisioned["c"] = false
	if isOnlyOtherCopy(s, request{site: "b"}) == "" {
		t.Error("I14: b is the only copy beside the active site as long as it is there")
	}
}
