// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestWhereTheRoleGoesWhileVolumesGo: a planned move avoids a site whose volume claim is being deleted. An emergency takes what there is, and never
// leaves a transaction behind for that.
func TestWhereTheRoleGoesWhileVolumesGo(t *testing.T) {
	drained := func(s *Snapshot) { s.Sites[0].Leaving = "its node is cordoned" }
	ends := func(s *Snapshot) { s.Sites[0].Leaving, s.Sites[0].Pod.Deleted = "its pod is being deleted", true }
	lost := func(s *Snapshot) {
		factstest.Silence(&s.Sites[0])
		s.Sites[0].Pod.Ended = true
	}
	asked := func(s *Snapshot) { s.Policy.PlannedTo = "b" }
	for name, tc := range map[string]struct {
		happens func(*Snapshot)
		goes    string
		cHas    string
		want    string
	}{
		"asked for":                     {asked, "", "", "b"},
		"asked for, its volume goes":    {asked, "b", "", ""},
		"drained":                       {drained, "", "", "b"},
		"drained, b's volume goes":      {drained, "b", "", "c"},
		"drained, both go":              {drained, "bc", "", ""},
		"its pod ends, b's volume goes": {ends, "b", "", "c"},
		"its pod ends, both go":         {ends, "bc", "", "b"},
		"its pod ends, and c is far behind": {func(s *Snapshot) {
			ends(s)
			behind := 3600.0
			s.Sites[2].MySQL.LagSeconds = &behind
		}, "b", "", "b"},
		"its pod ends, and c does not follow": {func(s *Snapshot) {
			ends(s)
			s.Sites[2].MySQL.IORunning = false
		}, "b", "", "b"},
		"lost":                              {lost, "", "", "b"},
		"lost, b's volume goes":             {lost, "b", "", "c"},
		"lost, b's volume goes, b has more": {lost, "b", "A:1-8", "b"},
		"lost, both go":                     {lost, "bc", "", "b"},
	} {
		s := factstest.AtRest()
		for i := range s.Sites {
			s.Sites[i].Pod.VolumeGoes = strings.Contains(tc.goes, s.Sites[i].Name)
		}
		if tc.cHas != "" {
			s.Sites[2].MySQL.Executed, s.Sites[2].MySQL.Retrieved = factstest.Set(tc.cHas), factstest.Set("")
		}
		tc.happens(&s)
		_, d := lasts(s, Memory{}, 30*time.Second)
		to := ""
		if d.Status.Transition != nil {
			to = d.Status.Transition.To
		}
		if to != tc.want {
			t.Errorf("%s: the role goes to %q: %s", name, to, d.Message)
		}
		if p := d.Status.Planned; to == "" && p != nil && (p.Phase != v1alpha1.PlannedRefused || p.Reason != v1alpha1.ReasonVolumeTerminating) {
			t.Errorf("%s: %+v", name, p)
		}
		if stays := d.Stays; to == "" && s.Policy.PlannedTo == "" && (stays == nil || stays.Reason != v1alpha1.ReasonVolumeTerminating || len(stays.Remedies) == 0) {
			t.Errorf("%s: nobody is told that the role stays, or what to do: %+v", name, stays)
		}
	}
}
