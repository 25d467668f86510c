// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/clock/clocktest"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupstatus"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

func TestABystanderCannotDelayAPlannedFailover(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	for kind, want := range map[v1alpha1.FailoverKind]time.Duration{
		v1alpha1.FailoverPlanned: failover.BystanderTimeout, v1alpha1.FailoverEmergency: askTimeout,
	} {
		p := failover.Policy{PlannedPauseTimeout: 5 * time.Second}
		l.durable.Transition = &failover.Transition{Kind: kind, From: "east", To: "west", StartedAt: time.Now()}
		if got := l.patience("south", p); got != want {
			t.Errorf("%s: south is waited for for %s, want %s", kind, got, want)
		}
		if l.patience("east", p) != askTimeout || l.patience("west", p) != askTimeout {
			t.Errorf("%s: a site that takes part is not waited for", kind)
		}
		l.durable.Transition.StartedAt = time.Now().Add(-time.Minute)
		if l.patience("south", p) != askTimeout {
			t.Errorf("%s: a site that takes longer is never seen while the move drags on, and can never take over", kind)
		}
	}
}

// TestWhenAGroupIsPaused: what a person reads and what the core acts on are the same.
func TestWhenAGroupIsPaused(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for pause, want := range map[string]conditions.Condition{
		"":                     {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotPaused},
		"2026-01-01T13:00:00Z": {Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPaused},
		"2026-01-01T11:00:00Z": {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPauseOver},
		"for an hour":          {Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalidPause},
	} {
		all := groupstatus.Conditions(failover.Decision{}, pause, now)
		got := all[slices.IndexFunc(all, func(c conditions.Condition) bool { return c.Type == v1alpha1.ConditionPaused })]
		if got.Status != want.Status || got.Reason != want.Reason {
			t.Errorf("%q: %+v", pause, got)
		}
		group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationPauseUntil: pause}}}
		if paused := now.Before(pausedUntil(group)); paused != (want.Reason == v1alpha1.ReasonPaused) {
			t.Errorf("%q: paused is %t for the core", pause, paused)
		}
	}
}

// counted is a Losses that has counted.
type counted struct{ done bool }

func (c counted) Rows(*v1alpha1.MysqlFailoverGroup, v1alpha1.FailoverRecord, string) ([]v1alpha1.LostRows, string, bool) {
	return []v1alpha1.LostRows{{Schema: "shop", Table: "t", Inserted: 2}}, v1alpha1.LostRowsCounted, c.done
}

func TestLossesAreWrittenOnceTheyAreCounted(t *testing.T) {
	ip := map[string]string{"east": "10.0.0.1"}
	for name, tc := range map[string]struct {
		record v1alpha1.FailoverRecord
		losses Losses
		want   string
	}{
		"counted":        {v1alpha1.FailoverRecord{From: "east", LossExact: true, LostTransactions: 2}, counted{true}, v1alpha1.LostRowsCounted},
		"still counting": {v1alpha1.FailoverRecord{From: "east", LossExact: true, LostTransactions: 2}, counted{}, ""},
		"not exact":      {v1alpha1.FailoverRecord{From: "east", LostTransactions: 2}, counted{true}, ""},
		"nothing lost":   {v1alpha1.FailoverRecord{From: "east", LossExact: true}, counted{true}, ""},
		"not back":       {v1alpha1.FailoverRecord{From: "west", LossExact: true, LostTransactions: 2}, counted{true}, ""},
	} {
		l := testLoop(t, &pushes{}, nil)
		l.m.Losses, l.loaded = tc.losses, true
		l.durable.Records = []v1alpha1.FailoverRecord{tc.record}
		l.countLossesAt(&v1alpha1.MysqlFailoverGroup{}, ip)
		if got := l.durable.Records[0].LostRowsState; got != tc.want {
			t.Errorf("%s: state %q, want %q", name, got, tc.want)
		}
		if tc.record.LostRowsState != "" {
			t.Errorf("%s: the old record was changed", name)
		}
	}
}

// TestAnOldLookLeadsToNothing covers I2 and I10: a process that stood still between the beginning of its look and its effects performs
// none.
func TestAnOldLookLeadsToNothing(t *testing.T) {
	push := &pushes{}
	l := testLoop(t, push, nil)
	l.durable = failover.Durable{Epoch: 3, ActiveSite: "east"}
	d := failover.Decision{Effects: []failover.Effect{failover.Follow{Site: "west", Source: "east"}}}
	for name, looked := range map[string]time.Time{
		// The look ended just now, as after a freeze in the middle of it (I10: what a site held when it answered is not what it holds).
		"a frozen process":    time.Now().Add(-lookValidity - time.Second),
		"a suspended machine": clocktest.Suspended(time.Now(), -time.Hour),
	} {
		l.looked = looked
		err := l.perform(t.Context(), &v1alpha1.MysqlFailoverGroup{}, failover.Snapshot{Now: time.Now(), Status: l.durable}, d)
		if err == nil || !strings.Contains(err.Error(), "looking again") {
			t.Errorf("I2: %s performed on a look of long ago: %v", name, err)
		}
	}
}
