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
	taken := func(g *Group, s *Site) {
		unsealedFor(rot, "")(g, s)
		s.Status.Stage, s.Status.Rotated, s.Status.SeedVersion = rotatingStage, true, 0
	}
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
		"never escrowed, late": {"it may need just the change", failed, []change{unsealedFor(boot, digest("4")), noData, nothingStored, bare, unnamed}, false},
		"late, in escrow":      {"nothing is missing", failed, []change{unsealedFor(clone, digest("3"))}, false},
		"starved":              {"it has no keyring, and another pod may have", failed, []change{aboutToUnseal(rot), unborn, gone}, false},
		"in the clear":         {"there is no keyring", none, []change{func(_ *Group, s *Site) { s.Rendered = Rendered{Exists: true} }}, false},
		"taken, lost":          {"what it had is gone", unsealed, []change{taken, podLost}, false},
		"taken, never began":   {"it has nothing", unsealed, []change{taken, unborn}, false},
		"taken, made sealed":   {"what it has is in escrow", escrowed, []change{taken, stage(sealingStage), tells(digest("3"))}, false},
		"an old one unborn":    {"its successor may have rotated", unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), unborn, func(_ *Group, s *Site) { s.Pod.Current = false }}, true},
		"seed gone, another":   {"what it has is in escrow", unsealed, []change{unsealedFor(clone, digest("4")), gone, add(4)}, false},
		"being written":        {"nobody knows what it will be", unsealed, []change{unsealedFor(clone, "")}, true},
		"sealed, not read yet": {"nothing is written there", sealed, []change{tells("")}, false},
		"rotated from a seed":  {"what it has is in escrow", escrowed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), hasRotated, add(4)}, false},
		"not heard, no keys":   {"no key was rotated", unsealed, []change{unsealedFor(clone, ""), unheard}, false},
		"rotating, no pod":     {"there is none to keep", unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), unheard, noDeployment}, false},
		"rotating, sealed pod": {"its keyring cannot be written", unsealed, []change{aboutToUnseal(rot), stage(rotatingStage), unheard}, false},
		"rotating, old report": {"it is from before the pod was unsealed", unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), just, func(_ *Group, s *Site) { s.Report.Sealed = true }}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, s := at(tt.phase, tt.given...)
			if got := WishOf("orders", s).Kept; (got != "") != tt.kept {
				t.Errorf("%s: kept %q", tt.reason, got)
			}
		})
	}
	// What was in escrow before it was taken opens nothing: the next pod would not start from that.
	if _, s := at(unsealed, taken, floor(3)); WishOf("orders", s).Secret != "" {
		t.Errorf("I14: starts from %+v", WishOf("orders", s))
	}
}
