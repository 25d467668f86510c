// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// I10, I7: a diverged site that was ordered active is the history once it is seen open under the present epoch, and not before:
// status may name it for other reasons, as after a restore.
func TestADivergedSiteIsHistoryOnceItIsOpenI10(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Site)
		stays  bool
	}{
		"open": {func(*Snapshot, *Site) {}, false},
		"open, not recorded yet": {func(s *Snapshot, _ *Site) {
			s.Status.Transition = &Transition{To: "b", Step: v1alpha1.TransitionOpening}
		}, false},
		"to be opened": {func(s *Snapshot, _ *Site) {
			s.Status.Transition = &Transition{To: "b", Step: v1alpha1.TransitionFencing}
		}, true},
		"not open":                  {func(_ *Snapshot, b *Site) { b.Sidecar.Report.Writable = false }, true},
		"open under an older epoch": {func(_ *Snapshot, b *Site) { b.Sidecar.Report.Epoch-- }, true},
		"silent":                    {func(_ *Snapshot, b *Site) { b.Sidecar.Answered = false }, true},
		"on another volume":         {func(_ *Snapshot, b *Site) { b.OtherVolume = true }, true},
		"not active":                {func(s *Snapshot, _ *Site) { s.Status.ActiveSite = "a" }, true},
	} {
		b := Site{Name: "b", Provisioned: true}
		b.Sidecar.Answered = true
		b.Sidecar.Report.Answered, b.Sidecar.Report.Writable, b.Sidecar.Report.Epoch = true, true, 4
		s := Snapshot{Now: start, Policy: newStory().s.Policy, Status: Durable{Epoch: 4, ActiveSite: "b"}}
		tc.change(&s, &b)
		s.Sites = []Site{{Name: "a"}, b}
		m := remember(s, Memory{Diverged: map[string]gtid.Set{"b": set("B:1")}})
		if _, stays := m.Diverged["b"]; stays != tc.stays {
			t.Errorf("%s: diverged %v, want %v", name, stays, tc.stays)
		}
	}
}
