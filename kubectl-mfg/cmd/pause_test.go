// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// TestPauseWithoutOperator: a pause is wanted most before an operator comes back that crashed. Nobody confirms it, and it
// ends by itself.
func TestPauseWithoutOperator(t *testing.T) {
	f := loadHealthy(t)
	f.live = nil
	got := run(t, f, runOptions{}, strings.Fields("pause orders -n shop --for 30m --yes")...)
	if got.code != cli.ExitHealthy || !asked(f, v1alpha1.AnnotationPauseUntil) || !strings.Contains(got.errOut, "Warning") || !strings.Contains(got.out, "no pod is ready") {
		t.Errorf("%+v", got)
	}
	if got := run(t, f, runOptions{}, strings.Fields("resume orders -n shop --dry-run=client")...); !strings.Contains(got.out, "is asked for, and no operator says that it holds") {
		t.Errorf("%+v", got)
	}
	got = run(t, f, runOptions{}, strings.Fields("resume orders -n shop --yes")...)
	if got.code != cli.ExitHealthy || asked(f, v1alpha1.AnnotationPauseUntil) || !strings.Contains(got.errOut, "Warning") || !strings.Contains(got.out, "no pod is ready") {
		t.Errorf("%+v", got)
	}
}

// TestPauseIsConfirmed: it holds once the operator says that the group is paused, and the time is still the one that was
// asked for.
func TestPauseIsConfirmed(t *testing.T) {
	f := loadHealthy(t)
	args := strings.Fields("pause orders -n shop --for 30m --yes --timeout 2s")
	if got := run(t, f, runOptions{}, args...); got.code != cli.ExitTimeout || !strings.Contains(got.errOut, "no outcome within 2s") || !asked(f, v1alpha1.AnnotationPauseUntil) {
		t.Errorf("no operator has said so: %+v", got)
	}
	f = loadHealthy(t)
	got := run(t, f, runOptions{tick: func(int) {
		f.groups[0].Annotations[v1alpha1.AnnotationPauseUntil] = "2026-11-03T12:00:01Z"
		f.groups[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
	}}, args...)
	if got.code != cli.ExitTimeout || got.out != "" {
		t.Errorf("somebody else's pause ends earlier: %+v", got)
	}
}

// TestPauseReportWithoutOperator: a script learns that nobody has heard it.
func TestPauseReportWithoutOperator(t *testing.T) {
	f := loadHealthy(t)
	f.live = nil
	for _, verb := range []string{"pause orders --for 30m", "resume orders"} {
		var rep request.Report
		got := run(t, f, runOptions{}, strings.Fields(verb+" -n shop --yes -o json")...)
		if err := json.Unmarshal([]byte(got.out), &rep); err != nil || rep.Outcome != cli.OutcomeRequested || rep.Reason != v1alpha1.ReasonOperatorDown {
			t.Errorf("%s: %v, %+v", verb, err, got)
		}
	}
}

// TestPauseBesideRequests: a pause collides with nothing that is asked for, and says what becomes of it.
func TestPauseBesideRequests(t *testing.T) {
	says := map[string]string{
		v1alpha1.AnnotationPlannedFailover: "the planned failover to frankfurt is refused (Paused)",
		v1alpha1.AnnotationForceFailover:   "frankfurt is ordered to take over; a pause does not stop that: kubectl mfg failover orders -n shop --abort",
		v1alpha1.AnnotationRecloneSite:     "a new copy of frankfurt is ordered; a pause does not stop that",
		v1alpha1.AnnotationRotateKeyring:   "the rotation of the keyring of frankfurt stops before its pod is replaced",
	}
	for _, a := range request.Annotations {
		f := loadHealthy(t)
		f.groups[0].Annotations = map[string]string{a.Key: "frankfurt"}
		got := run(t, f, runOptions{}, strings.Fields("pause orders -n shop --for 30m --yes --wait=false")...)
		if got.code != cli.ExitHealthy || !asked(f, v1alpha1.AnnotationPauseUntil) || !strings.Contains(got.errOut, says[a.Key]) || !strings.Contains(got.out, says[a.Key]) {
			t.Errorf("%s: %+v", a.Key, got)
		}
		if warned := strings.Contains(got.errOut, "Warning"); warned != strings.Contains(says[a.Key], "does not stop") {
			t.Errorf("%s: warned %t: %s", a.Key, warned, got.errOut)
		}
		if got := run(t, f, runOptions{}, strings.Fields("resume orders -n shop --yes --wait=false")...); got.code != cli.ExitHealthy || asked(f, v1alpha1.AnnotationPauseUntil) {
			t.Errorf("%s: %+v", a.Key, got)
		}
	}
}

// TestPauseBesideACampaign: a pause says what becomes of the rotation of all sites.
func TestPauseBesideACampaign(t *testing.T) {
	f := loadHealthy(t)
	f.groups[0].Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "*"}
	got := run(t, f, runOptions{}, strings.Fields("pause orders -n shop --for 30m --yes --wait=false")...)
	if got.code != cli.ExitHealthy || !strings.Contains(got.errOut, "the rotation of all sites begins no further step, and continues afterwards") {
		t.Errorf("%+v", got)
	}
}

// TestPauseBesideWork: what has begun is not said to stand still.
func TestPauseBesideWork(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.MysqlFailoverGroupStatus){
		"the role is moving to frankfurt by a planned failover; a pause does not stop that": func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.PlannedFailover = &v1alpha1.PlannedFailoverStatus{To: "frankfurt", Phase: v1alpha1.PlannedMoving}
			s.Transition = &v1alpha1.Transition{To: "frankfurt", Kind: v1alpha1.FailoverPlanned}
		},
		"the planned failover to frankfurt is refused (Paused)": func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.PlannedFailover = &v1alpha1.PlannedFailoverStatus{To: "frankfurt", Phase: v1alpha1.PlannedWaiting}
		},
		"the role is moving to frankfurt (Fencing); a pause does not stop that": func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.Transition = &v1alpha1.Transition{To: "frankfurt", Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing}
		},
		"an update that is under way stops before the next pod": func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Updating"}}
		},
	} {
		f := loadHealthy(t)
		change(&f.groups[0].Status)
		got := run(t, f, runOptions{}, strings.Fields("pause orders -n shop --for 30m --yes --wait=false")...)
		if got.code != cli.ExitHealthy || strings.Count(got.out, want) != 1 || strings.Count(got.out, "\n") != 2 || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: %+v", want, got)
		}
	}
}
