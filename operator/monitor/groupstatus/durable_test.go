// SPDX-License-Identifier: Apache-2.0

package groupstatus

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
)

var (
	someSet  = gtid.MustParse("aaaaaaaa-0000-0000-0000-000000000001:1-5")
	someTime = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// moving is a durable part in which everything is said.
func moving() failover.Durable {
	return failover.Durable{
		Epoch: 3, ActiveSite: "west", ActiveSince: someTime, CooldownUntil: someTime.Add(time.Hour), RowsOutside: 7,
		Outlived: []string{"east", "west"}, Runs: map[string][]failover.Run{"east": {{UID: "east-1", Node: "n1", Lease: time.Second}}},
		Records: []v1alpha1.FailoverRecord{{Epoch: 2, Kind: v1alpha1.FailoverEmergency}},
		Epochs:  []v1alpha1.EpochRecord{{Epoch: 3, Site: "west", ServerUUID: "v", PromotedAt: metav1.NewMicroTime(someTime), Kind: v1alpha1.FailoverPlanned, GTIDExecuted: "b:1"}},
		Planned: &failover.Planned{From: "east", To: "west", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedMoving, StartedAt: someTime},
		Transition: &failover.Transition{Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionOpening, From: "east", To: "west", FromUUID: "u", Reason: "r",
			DetectedAt: someTime, StartedAt: someTime.Add(time.Second), GatePassedAt: someTime.Add(2 * time.Second), FromExecuted: someSet,
			ToExecuted: gtid.MustParse("bbbbbbbb-0000-0000-0000-000000000001:1"), Evidence: []string{"e"}},
	}
}

// TestTheDurablePartSurvivesTheStatusI9: the next operator knows what was decided, and nothing that was not.
func TestTheDurablePartSurvivesTheStatusI9(t *testing.T) {
	views := []failover.View{{Name: "west"}, {Name: "east"}}
	waiting := moving()
	waiting.Transition.GatePassedAt, waiting.Planned = time.Time{}, nil
	calm := moving()
	calm.Transition, calm.ActiveSince, calm.CooldownUntil = nil, time.Time{}, time.Time{}
	for name, want := range map[string]failover.Durable{"moving": moving(), "at the gate": waiting, "calm": calm, "new": {}} {
		got, err := Durable(Of(&v1alpha1.MysqlFailoverGroup{}, want, views))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b gtid.Set) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("I9: %s (-want +got):\n%s", name, diff)
		}
	}
	if at := toTransition(waiting.Transition).GatePassedAt; at != nil {
		t.Errorf("a gate that was not passed was passed at %s", at)
	}
	if p := toPlanned(&failover.Planned{}); p.StartedAt != nil || p.FinishedAt != nil || p.WritePauseMillis != nil {
		t.Errorf("what has not happened yet happened: %+v", p)
	}
	if p := fromPlanned(&v1alpha1.PlannedFailoverStatus{To: "west"}); p == nil || p.To != "west" {
		t.Errorf("got %+v", p)
	}
	for name, broken := range map[string]v1alpha1.Transition{"from": {FromExecuted: "?"}, "to": {ToExecuted: "?"}} {
		if _, err := Durable(v1alpha1.MysqlFailoverGroupStatus{Transition: &broken}); err == nil {
			t.Errorf("I9: a set that cannot be read is taken for none: %s", name)
		}
	}
}

// TestWhatStandsIsComparedWithWhatIsMeant: a deposed leader may have written last.
func TestWhatStandsIsComparedWithWhatIsMeant(t *testing.T) {
	meant := v1alpha1.MysqlFailoverGroupStatus{Epoch: 3, ActiveSite: "east", Sites: []v1alpha1.SiteStatus{{Name: "east", State: v1alpha1.SitePrimary}, {Name: "west", State: v1alpha1.SiteDiverged}}}
	current := *meant.DeepCopy()
	current.ObservedGeneration = 7
	current.Sites = []v1alpha1.SiteStatus{{Name: "west", State: v1alpha1.SiteDiverged, Provisioned: true}, {Name: "east", State: v1alpha1.SitePrimary, Image: "x"}}
	if !Says(current, meant) {
		t.Error("the controller's fields, and the order of sites, count")
	}
	current.Sites[0].State = v1alpha1.SiteReplica
	if Says(current, meant) {
		t.Error("a site that is called a replica and has diverged goes unnoticed")
	}
}

// TestAPlannedFailoverSurvivesTheStatus: what was asked for is read back as it was written.
func TestAPlannedFailoverSurvivesTheStatus(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	want := failover.Planned{From: "east", To: "west", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedReverted, Reason: v1alpha1.ReasonTargetLags,
		Remedies: []failover.Remedy{{Text: "watch it", Command: "kubectl mfg status orders"}, {Text: "then"}},
		Message:  "m", StartedAt: at, FinishedAt: at.Add(time.Second), WritePause: 150 * time.Millisecond, Answered: true}
	if got := fromPlanned(toPlanned(&want)); !reflect.DeepEqual(*got, want) {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	if fromPlanned(toPlanned(nil)) != nil {
		t.Error("nothing became something")
	}
}

// TestTheNextOperatorKnowsTheRunsI9: whose pod is gone when it begins can be known from status alone.
func TestTheNextOperatorKnowsTheRunsI9(t *testing.T) {
	want := map[string][]failover.Run{
		"east": {{UID: "old", Node: "n1", Machine: "m1", Volume: "v", Lease: 22 * time.Second, Closed: true}, {UID: "new", Node: "n2", Machine: "m2"}},
		"west": {{UID: "west", Node: "n3", Machine: "m3", Volume: "w", Lease: time.Second}},
	}
	views := []failover.View{{Name: "east"}, {Name: "south"}, {Name: "west"}}
	durable, err := Durable(Of(&v1alpha1.MysqlFailoverGroup{}, failover.Durable{Epoch: 3, Runs: want}, views))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, durable.Runs); diff != "" {
		t.Errorf("I9: runs (-want +got):\n%s", diff)
	}
	one := Of(&v1alpha1.MysqlFailoverGroup{}, failover.Durable{Epoch: 3, Runs: want}, views)
	one.Sites[0].State, one.Sites[1].State, one.Sites[2].State = v1alpha1.SiteReplica, v1alpha1.SiteReplica, v1alpha1.SiteReplica
	other := *one.DeepCopy()
	other.Sites[0].Incarnations = nil
	if Says(other, one) {
		t.Error("I9: a status without the runs passes for one with them")
	}
}

// TestTheNextOperatorKnowsWhoOutlivedItsLeaseI9: what was seen before it began must not be forgotten, or it would act sooner.
func TestTheNextOperatorKnowsWhoOutlivedItsLeaseI9(t *testing.T) {
	views := []failover.View{{Name: "east"}, {Name: "south"}, {Name: "west"}}
	want := []string{"east", "west"}
	durable, err := Durable(Of(&v1alpha1.MysqlFailoverGroup{}, failover.Durable{Epoch: 3, Outlived: want}, views))
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := Durable(Of(&v1alpha1.MysqlFailoverGroup{}, failover.Durable{Epoch: 3, RowsOutside: 2}, views)); err != nil || rows.RowsOutside != 2 {
		t.Errorf("I9: rows outside InnoDB: %d, %v", rows.RowsOutside, err)
	}
	if diff := cmp.Diff(want, durable.Outlived); diff != "" {
		t.Errorf("I9: outlived their lease (-want +got):\n%s", diff)
	}
}

// TestWhatTheMonitorSaysStands: an apply that leaves a condition out gives it up, so each that the monitor makes is in every write of its
// status, and none of the controller's is.
func TestWhatTheMonitorSaysStands(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionEncryptionReady}}
	var want []metav1.Condition
	for _, c := range Conditions(failover.Decision{}, "", someTime) {
		want = append(want, metav1.Condition{Type: c.Type, Message: "as it stands"})
	}
	group.Status.Conditions = append(group.Status.Conditions, want...)
	if diff := cmp.Diff(want, Of(group, failover.Durable{}, nil).Conditions); diff != "" || len(want) < 7 {
		t.Errorf("%d are made (-want +got):\n%s", len(want), diff)
	}
}
