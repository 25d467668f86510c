// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// full is the last probe of a closed site whose volume has no room.
func full() *wire.VolumeProbe {
	return &wire.VolumeProbe{Outcome: wire.WriteFails, Reason: wire.WriteDiskFull, AgeMillis: 9_000}
}

// TestWhatIsKnownOfAVolume: only a failed write of just now is held against a site. A sidecar that says nothing costs no candidate.
func TestWhatIsKnownOfAVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		fit    bool
	}{
		"it is full":                    {func(*Snapshot) {}, false},
		"an old sidecar":                {func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe = nil }, true},
		"it took the write":             {func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe.Outcome = wire.WriteDone }, true},
		"the probe itself cannot write": {func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe.Outcome = wire.WriteUnknown }, true},
		"it was full long ago":          {func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe.AgeMillis = 31_000 }, true},
		"it is the active site":         {func(s *Snapshot) { s.Status.ActiveSite = "b" }, true},
		"it has the role back":          {func(s *Snapshot) { s.Status.Transition = &Transition{From: "b", To: "b"} }, true},
		"it is the first active site":   {func(s *Snapshot) { s.Status.Transition = &Transition{Kind: v1alpha1.FailoverBootstrap, To: "b"} }, true},
		"the role is on the way to it":  {func(s *Snapshot) { s.Status.Transition = &Transition{From: "a", To: "b"} }, false},
		"another site is to be opened":  {func(s *Snapshot) { s.Status.Transition = &Transition{From: "a", To: "c"} }, false},
		"its sidecar has gone silent":   {func(s *Snapshot) { s.Sites[1].Sidecar.Answered = false }, true}, // another guard's matter
		"it stalls": {func(s *Snapshot) {
			p := s.Sites[1].Sidecar.Report.VolumeProbe
			p.Reason, p.ForMillis = wire.WriteDiskStalled, promotion.StallLasts.Milliseconds()
		}, false},
		"one write was slow": {func(s *Snapshot) {
			p := s.Sites[1].Sidecar.Report.VolumeProbe
			p.Reason, p.ForMillis = wire.WriteDiskStalled, promotion.StallLasts.Milliseconds()-1
		}, true},
		"it stalls, an older sidecar":    {func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe.Reason = wire.WriteDiskStalled }, true},
		"it fails, for whatever reason":  {func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe.Reason = "New" }, false},
		"it was full thirty seconds ago": {func(s *Snapshot) { s.Sites[1].Sidecar.Report.VolumeProbe.AgeMillis = 30_000 }, false},
	} {
		s := factstest.ThreeSites()
		s.Sites[1].Sidecar.Report.VolumeProbe = full()
		tc.change(&s)
		if why := promotion.IsVolumeFailing(s, Memory{}, s.Sites[1]); (why == "") != tc.fit {
			t.Errorf("%s: fit %t: %q", name, !tc.fit, why)
		}
	}
}

// TestTheForecastKnowsWhoseVolumeFails: it names the site that would take over, or says that none could.
func TestTheForecastKnowsWhoseVolumeFails(t *testing.T) {
	s := factstest.ThreeSites()
	s.Sites[1].Sidecar.Report.VolumeProbe = full()
	if f := Decide(s, Memory{}).Forecast; f == nil || f.Site != "c" || f.BlockedBy != "" {
		t.Errorf("b is full: %+v", f)
	}
	s.Sites[2].Sidecar.Report.VolumeProbe = full()
	d := Decide(s, Memory{})
	if f := d.Forecast; f == nil || f.Site != "" || f.BlockedBy != v1alpha1.ReasonVolumeTakesNoWrites || !strings.Contains(f.Message, "b: cannot write to its data volume (DiskFull)") {
		t.Errorf("all are full: %+v", f)
	}
	for _, v := range d.Views {
		if said := v.Reason == v1alpha1.ReasonVolumeTakesNoWrites && strings.Contains(v.Message, "(DiskFull)"); said != (v.Name != "a") || !v.Healthy {
			t.Errorf("%s: healthy %t, %s: %s", v.Name, v.Healthy, v.Reason, v.Message)
		}
	}
}

// TestAnOrderOverridesAVolumeThatFails: a person may know that there is nothing else, or that it is well again.
func TestAnOrderOverridesAVolumeThatFails(t *testing.T) {
	s := factstest.ThreeSites()
	s.Sites[0].Sidecar.Answered, s.Sites[0].MySQL = false, MySQL{}
	s.Sites[1].Sidecar.Report.VolumeProbe, s.Sites[2].Sidecar.Report.VolumeProbe = full(), full()
	s.Now = s.Now.Add(time.Minute)
	m := Memory{Sites: map[string]*SiteMemory{"a": {DownSince: s.Now.Add(-time.Minute), SilentPolls: 99}}}
	d := Decide(s, m)
	if d.Verdict != VerdictBlocked || d.Reason != v1alpha1.ReasonVolumeTakesNoWrites || !strings.Contains(d.Message, "make room on the data volume of b") {
		t.Errorf("%s %s: %s", d.Verdict, d.Reason, d.Message)
	}
	s.Policy.ForceTo = "b"
	if d = Decide(s, m); d.Verdict != VerdictFailover || d.Status.ActiveSite != "b" {
		t.Errorf("by order: %s %s: %s", d.Verdict, d.Reason, d.Message)
	}
}
