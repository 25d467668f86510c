// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// A pod is not replaced on the word of a report that is older than what was done with its keyring last: the new keys may be nowhere
// else, and not even in its report (I14).
func TestI14PodIsKeptUntilAReportIsNewEnough(t *testing.T) {
	just := func(_ *Group, s *Site) { s.Calm = calmBeforeSealing - 1 }
	tests := map[string]struct {
		reason string
		phase  v1alpha1.KeyringPhase
		given  []change
		kept   bool
	}{
		"rotated just now":     {"the report says the seed still", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), jobDone, just}, true},
		"half rotated":         {"an error may have come after the first key", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), func(_ *Group, s *Site) { s.Job.Failures = 1 }, just}, true},
		"rotates":              {"it may end while the pod is being replaced", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), func(_ *Group, s *Site) { s.Job.Running = true }}, true},
		"rotating, not heard":  {"nobody knows", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), func(_ *Group, s *Site) { s.Report = nil }}, true},
		"rotated, heard since": {"it is the seed still, and that is in escrow", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), jobDone}, false},
		"rotated, pod lost":    {"there is nothing in it", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), podLost, just}, false},
		"cloned just now":      {"the report is from before the clone", escrowed, []change{unsealedFor(clone, digest("3")), just}, true},
		"cloned, heard since":  {"it is in escrow", escrowed, []change{unsealedFor(clone, digest("3")), func(_ *Group, s *Site) { s.Busy = true }}, false},
		"about to be sealed":   {"an operator that was restarted has heard nothing yet", escrowed, []change{unsealedFor(clone, digest("3")), stage(v1alpha1.KeyringSealing), just}, true},
		"without data":         {"there is nothing to lose, and it may need just the change", unsealed, []change{unsealedFor(clone, digest("3")), noData, just}, false},
		"sealed":               {"its keyring cannot be written", sealed, []change{just}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, s := at(tt.phase, tt.given...)
			if got := WishOf("orders", s).Kept; (got != "") != tt.kept {
				t.Errorf("%s: kept %q", tt.reason, got)
			}
		})
	}
}
