// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report"
)

func touchAllSeries() {
	report.GroupReady.WithLabelValues("ns", "g").Set(1)
	report.SetActiveSite("ns", "g", "a", []string{"a", "b"})
	report.Epoch.WithLabelValues("ns", "g").Set(3)
	report.Failovers.WithLabelValues("ns", "g", "Silent", "Completed").Inc()
	report.FailoverDuration.WithLabelValues("ns", "g", "Emergency").Observe(3)
	lag := 1.5
	report.SetReplicationLag("ns", "g", "b", &lag)
	report.ErrantTransactions.WithLabelValues("ns", "g", "b").Set(0)
	report.Fences.WithLabelValues("ns", "g", "a", "Mismatch").Inc()
	report.Decisions.WithLabelValues("ns", "g", "Hold").Inc()
	report.Clones.WithLabelValues("ns", "g", "b", "Completed").Inc()
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := report.Register(registry); err != nil {
		t.Fatal(err)
	}
	touchAllSeries()

	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}

	if got := testutil.ToFloat64(report.ActiveSite.WithLabelValues("ns", "g", "a")); got != 1 {
		t.Errorf("active site a = %v, want 1", got)
	}
	if got := testutil.ToFloat64(report.ActiveSite.WithLabelValues("ns", "g", "b")); got != 0 {
		t.Errorf("active site b = %v, want 0", got)
	}
	report.SetReplicationLag("ns", "g", "b", nil)
	if got := testutil.CollectAndCount(report.ReplicationLag); got != 0 {
		t.Errorf("an unknown lag left %d series", got)
	}

	report.ForgetSite("ns", "g", "b")
	if got := testutil.CollectAndCount(report.ActiveSite); got != 1 {
		t.Errorf("series of active site after forgetting one of two sites = %d, want 1", got)
	}
	report.ForgetGroup("ns", "g")
	got, err := testutil.GatherAndCount(registry)
	if err != nil {
		t.Fatal(err)
	}
	if got != 1 {
		t.Errorf("series after forgetting the only group = %d, want 1 (build info)", got)
	}
}

func TestEventTable(t *testing.T) {
	seen := map[v1alpha1.Reason]bool{}
	for _, e := range report.Table() {
		if seen[e.Reason] {
			t.Errorf("reason %s is there twice", e.Reason)
		}
		seen[e.Reason] = true
		if e.Reason == "" || e.Action == "" {
			t.Errorf("event %q is incomplete: %+v", e.Reason, e)
		}
		if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
			t.Errorf("event %s has type %q", e.Reason, e.Type)
		}
	}
	if len(seen) == 0 {
		t.Fatal("the table is empty")
	}
}

type sink struct{ note, reason, action string }

func (s *sink) Eventf(_, _ runtime.Object, _, reason, action, note string, args ...any) {
	s.reason, s.action, s.note = reason, action, note
	if len(args) == 1 {
		s.note, _ = args[0].(string)
	}
}

func TestEmit(t *testing.T) {
	var none *report.Recorder
	none.Emit(&corev1.Pod{}, nil, report.Promoted, "a recorder that is nil drops events")

	s := &sink{}
	report.NewRecorder(s).Emit(&corev1.Pod{}, nil, report.Promoted, "100%% of %s", strings.Repeat("x", 2000))
	if s.reason != "Promoted" || s.action != "Promote" {
		t.Errorf("emitted %s/%s", s.reason, s.action)
	}
	if len(s.note) != 1024 || !strings.HasPrefix(s.note, "100% of x") {
		t.Errorf("note has %d bytes: %.20s", len(s.note), s.note)
	}
}

func TestStamp(t *testing.T) {
	before := metav1.NewTime(time.Unix(1000, 0))
	now := time.Unix(2000, 0)
	current := []metav1.Condition{{
		Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Updating", Message: "m", LastTransitionTime: before,
	}}
	tests := map[string]struct {
		reason      string
		want        report.Condition
		changed     bool
		transitions bool
	}{
		"same":           {"nothing new to say", report.True("Progressing", "Updating", "m"), false, false},
		"other message":  {"news, but the status stands", report.True("Progressing", "Updating", "n"), true, false},
		"other status":   {"a transition", report.False("Progressing", "AsExpected", "n"), true, true},
		"a new type":     {"first seen", report.False("TLSReady", "SecretMissing", "n"), true, true},
		"unknown status": {"a transition", report.Unknown("Progressing", "Updating", "m"), true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := report.Stamp(current, tt.want, 7, now)
			if got.ObservedGeneration != 7 || got.Type != tt.want.Type || got.Status != tt.want.Status {
				t.Errorf("stamped %+v", got)
			}
			if changed := report.Changed(current, got); changed != tt.changed {
				t.Errorf("%s: changed = %v", tt.reason, changed)
			}
			if moved := !got.LastTransitionTime.Equal(&before); moved != tt.transitions {
				t.Errorf("%s: last transition = %v", tt.reason, got.LastTransitionTime)
			}
		})
	}
}
