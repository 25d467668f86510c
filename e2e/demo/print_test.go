// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// The form of the closing line is a promise: scripts look for it.
func TestSummary(t *testing.T) {
	v := stage.Verdict{From: "east", To: "west", Acked: 5120, Pause: journal.Pause{LastAck: time.Second, NextAck: 4200 * time.Millisecond}}
	if got, want := summary(v, 0), "demo: failover east -> west in 3.2 s, 5120 writes acknowledged, 0 of them missing, never two writers"; got != want {
		t.Errorf("summary = %q\n     want %q", got, want)
	}
	// Transactions that nobody was promised do not make a row missing.
	if got := summary(v, 2); strings.Contains(got, "status.failovers") {
		t.Errorf("summary = %q", got)
	}
	v.Missing = make([]journal.Commit, 3)
	want := "demo: failover east -> west in 3.2 s, 5120 writes acknowledged, 3 of them missing (status.failovers says 3), never two writers"
	if got := summary(v, 3); got != want {
		t.Errorf("summary = %q\n     want %q", got, want)
	}
}

func TestTimelineIsInOneOrder(t *testing.T) {
	boot := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	const fault = 100 * time.Second
	v := stage.Verdict{
		From: "east", To: "west", Pause: journal.Pause{LastAck: fault - 10*time.Millisecond, NextAck: fault + 23*time.Second},
		Records: []v1alpha1.FailoverRecord{{
			Epoch: 2, Reason: "ActiveSiteSilent", Evidence: []string{"lease of east has run out"},
			DetectedAt: metav1.NewMicroTime(boot.Add(fault + 2*time.Second)),
			Timeline:   []v1alpha1.TimelineEntry{{Step: "detected"}, {Step: "gatePassed", Millis: 20_000}, {Step: "other", Millis: 100}},
		}},
	}
	direct := journal.Journal{Commits: []journal.Commit{
		{Server: journal.Server{Site: "west"}, Ack: fault + 22500*time.Millisecond},
		{Server: journal.Server{Site: "east"}, Ack: fault + time.Second},
	}}
	got := timeline(v, stage.Testimony{Service: journal.Journal{Offset: boot}, Direct: []journal.Journal{direct}}, fault)
	want := []moment{
		{-10 * time.Millisecond, "last write acknowledged through the Service, by east"},
		{0, "node east killed"},
		{2 * time.Second, "operator saw the first silence of east"},
		{2100 * time.Millisecond, "other"},
		{22 * time.Second, "promotion gate passed: lease of east has run out"},
		{22500 * time.Millisecond, "first commit on west, written directly"},
		{23 * time.Second, "Service moved: first write acknowledged through it, by west"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}
