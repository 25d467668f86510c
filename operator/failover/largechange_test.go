// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// TestTheRoleStaysAmidALargeChange: what would take longer to end than a fence has is not begun, and a person who asked waits as for a
// target that lags.
func TestTheRoleStaysAmidALargeChange(t *testing.T) {
	world := func(rows *int64) Snapshot {
		s := factstest.HealthyThree()
		s.Policy.PlannedLagTimeout = time.Minute
		s.Sites[0].Sidecar.Report.OpenChange = rows
		for i := range s.Sites[1:] {
			s.Sites[1+i].MySQL.Executed, s.Sites[1+i].MySQL.LagSeconds = s.Sites[0].MySQL.Executed, new(0.0)
		}
		return s
	}
	for name, tc := range map[string]struct {
		rows    *int64
		deleted bool
		moves   bool
	}{
		"it is not known":                     {nil, false, true},
		"it is small":                         {new(int64(499_999)), false, true},
		"it is large":                         {new(int64(500_000)), false, false},
		"it is large, and the pod is deleted": {new(int64(500_000)), true, true},
	} {
		for _, leaves := range []bool{false, true} {
			s := world(tc.rows)
			s.Sites[0].Pod.Deleted = tc.deleted
			if leaves {
				s.Sites[0].Leaving = "node n1 is cordoned"
			} else {
				s.Policy.PlannedTo = "b"
			}
			d := Decide(s, Memory{})
			if (d.Status.Transition != nil) != tc.moves {
				t.Errorf("%s, leaving %t: %s %s %s", name, leaves, d.Verdict, d.Reason, d.Message)
			}
			if !tc.moves && !strings.Contains(d.Message, "500000 rows") {
				t.Errorf("%s, leaving %t: it is not said: %s", name, leaves, d.Message)
			}
			if s.Now = s.Now.Add(time.Hour); !tc.moves && leaves {
				m := Memory{LeavingSince: s.Now.Add(-time.Hour)}
				if d := Decide(s, m); d.Stays == nil || d.Stays.Reason != v1alpha1.ReasonLargeChange || d.Stays.Message != "a large transaction on a is not committed, and the operator waits for its end without a limit" ||
					!slices.ContainsFunc(d.Stays.Remedies, func(r Remedy) bool { return strings.Contains(r.Command, "innodb_trx") }) {
					t.Errorf("%s: the condition says %+v", name, d.Stays)
				}
			}
		}
	}
	s := world(new(int64(500_000)))
	s.Policy.PlannedTo = "b"
	s.Status = Decide(s, Memory{}).Status
	if p := s.Status.Planned; p == nil || p.Phase != v1alpha1.PlannedWaiting || p.Reason != v1alpha1.ReasonLargeChange {
		t.Fatalf("a request does not wait: %+v", p)
	}
	grows := s
	grows.Sites = slices.Clone(s.Sites)
	grows.Sites[0].Sidecar.Report.OpenChange = new(int64(550_000))
	if d := Decide(grows, Memory{}); d.Persist || !strings.Contains(d.Status.Planned.Message, "500000 rows") {
		t.Errorf("status is written with every look at one that grows: %+v", d.Status.Planned)
	}
	lags := s
	lags.Sites = slices.Clone(s.Sites)
	lags.Sites[0].Sidecar.Report.OpenChange, lags.Sites[0].MySQL.Executed, lags.Sites[1].MySQL.LagSeconds = new(int64(0)), factstest.Set("A:1-90"), new(50.0)
	d := Decide(lags, Memory{})
	if p := d.Status.Planned; !d.Persist || p.Phase != v1alpha1.PlannedWaiting || p.Reason != v1alpha1.ReasonTargetLags || strings.Contains(p.Message, "rows") {
		t.Errorf("it was committed, and people look for it still: %+v", p)
	}
	lags.Status, lags.Sites[0].Sidecar.Report.OpenChange = d.Status, new(int64(600_000))
	if p := Decide(lags, Memory{}).Status.Planned; p.Reason != v1alpha1.ReasonLargeChange || !strings.Contains(p.Message, "600000 rows") {
		t.Errorf("another one is open, and nobody is told: %+v", p)
	}
	s.Now = s.Now.Add(30 * time.Second)
	if p := Decide(s, Memory{}).Status.Planned; p.Phase != v1alpha1.PlannedWaiting {
		t.Errorf("it did not wait for half a minute: %+v", p)
	}
	s.Now = s.Now.Add(31 * time.Second)
	if p := Decide(s, Memory{}).Status.Planned; p.Phase != v1alpha1.PlannedRefused || p.Reason != v1alpha1.ReasonLargeChange || len(p.Remedies) == 0 {
		t.Errorf("it still waits after plannedLagTimeout: %+v", p)
	}
	s.Sites[0].Sidecar.Report.OpenChange = new(int64(0))
	if d := Decide(s, Memory{}); d.Status.Transition == nil {
		t.Errorf("it was committed, and the role stays: %s", d.Message)
	}
}

// TestALargeChangeMakesNoEmergency: the role leaves a volume whose writes fail by plan, which loses nothing, whatever is open there.
func TestALargeChangeMakesNoEmergency(t *testing.T) {
	s := factstest.StalledGroup(string(ReasonDiskFailed))
	for i := range s.Sites {
		s.Sites[i].MySQL.Executed, s.Sites[i].MySQL.LagSeconds = s.Sites[0].MySQL.Executed, new(0.0)
	}
	plain, m := s, Memory{}
	m.At("a").StalledSince = s.Now.Add(-time.Hour)
	want := Decide(plain, m)
	s.Sites[0].Sidecar.Report.OpenChange = new(int64(10_000_000))
	got := Decide(s, m)
	if want.Status.Transition == nil || want.Status.Transition.Kind != v1alpha1.FailoverPlanned {
		t.Fatalf("without an open change the move is not planned: %s %s", want.Verdict, want.Message)
	}
	if got.Status.Transition == nil || got.Status.Transition.Kind != v1alpha1.FailoverPlanned {
		t.Errorf("%s %s: %+v", got.Verdict, got.Message, got.Status.Transition)
	}
}

// TestALagWithoutACauseIsToldWithoutOne: nothing is added to what is said of a target whose numbers tell nothing.
func TestALagWithoutACauseIsToldWithoutOne(t *testing.T) {
	s := factstest.AtRest()
	s.Policy.PlannedTo, s.Sites[1].MySQL.LagSeconds = "b", nil
	p := Planned{From: "a", To: "b", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: s.Now.Add(-time.Minute - 1)}
	s.Status.Planned = &p
	got := waiting(s, Decision{Status: s.Status}, s.Sites[0], p).Status.Planned
	if got.Reason != v1alpha1.ReasonTargetLags || !strings.HasSuffix(got.Message, "within plannedLagTimeout 1m0s") {
		t.Errorf("%s: %q", got.Reason, got.Message)
	}
}
