// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/memory"
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
		s := Snapshot{Now: factstest.Start, Policy: factstest.Base().Policy, Status: Durable{Epoch: 4, ActiveSite: "b"}}
		tc.change(&s, &b)
		s.Sites = []Site{{Name: "a"}, b}
		m := memory.Remember(s, Memory{Sites: map[string]*SiteMemory{"b": {Diverged: factstest.Set("B:1")}}})
		if stays := !m.Of("b").Diverged.IsEmpty(); stays != tc.stays {
			t.Errorf("%s: diverged %v, want %v", name, stays, tc.stays)
		}
	}
}

// I7, I10: what a diverged site had alone may be what the next active site had too. If that is lost before both were compared, the
// site counts for what a successor lacks, and may be that. One that has more stays diverged, or whose data is not known.
func TestADivergedSiteIsCoveredByASuccessorI7(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot, *Site)
		stays  bool
	}{
		"the active site had all of it": {func(*Snapshot, *Site) {}, false},
		"it has more":                   {func(_ *Snapshot, b *Site) { b.MySQL.Executed = factstest.Set("A:1-9,B:1-3") }, true},
		"it has received more":          {func(_ *Snapshot, b *Site) { b.MySQL.Retrieved = factstest.Set("B:3") }, true},
		"it is silent":                  {func(_ *Snapshot, b *Site) { b.Sidecar.Answered, b.MySQL = false, MySQL{} }, true},
		"it is on another volume":       {func(_ *Snapshot, b *Site) { b.OtherVolume = true }, true},
		"nothing was recorded":          {func(s *Snapshot, _ *Site) { s.Status.Records = nil }, true},
		"another site was opened":       {func(s *Snapshot, _ *Site) { s.Status.Records[0].To = "a" }, true},
		"under another epoch":           {func(s *Snapshot, _ *Site) { s.Status.Records[0].Epoch-- }, true},
		"what it had is not known":      {func(s *Snapshot, _ *Site) { s.Status.Records[0].ToExecuted = "?" }, true},
		"the role is about to move":     {func(s *Snapshot, _ *Site) { s.Status.Transition = &Transition{From: "c", To: "a"} }, true},
	} {
		b := Site{Name: "b", Provisioned: true, Sidecar: Sidecar{Answered: true}, MySQL: MySQL{Direct: true, Executed: factstest.Set("A:1-9,B:1-2")}}
		s := Snapshot{Now: factstest.Start, Policy: factstest.Base().Policy, Status: Durable{Epoch: 7, ActiveSite: "c",
			Records: []v1alpha1.FailoverRecord{{Epoch: 7, From: "a", To: "c", ToExecuted: factstest.Set("A:1-9,B:1-2").String()}}}}
		tc.change(&s, &b)
		s.Sites = []Site{{Name: "a"}, b, {Name: "c", Provisioned: true}}
		m := memory.Remember(s, Memory{Sites: map[string]*SiteMemory{"b": {Diverged: factstest.Set("B:2")}}})
		if stays := !m.Of("b").Diverged.IsEmpty(); stays != tc.stays {
			t.Errorf("%s: diverged %v, want %v", name, stays, tc.stays)
		}
	}
}
