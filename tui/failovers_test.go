// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// silentParis is the active site once it does not answer.
func silentParis() wire.SiteStatus {
	paris := site("paris", "primary-candidate", 0, 0)
	paris.State, paris.Reachable, paris.SidecarReachable, paris.Writable, paris.Fence = "Unreachable", false, false, false, "unknown"
	paris.Message = "neither the sidecar nor MySQL answers"
	return paris
}

// blocked goes on with the loss of the active site of orders, while the only other candidate lacks rows.
func blocked(s *story) *story {
	const why = "no site is fit (frankfurt: lacks rows of paris outside InnoDB, madrid: is dr-only)"
	s.pace = 0
	g := told("orders", 7, silentParis(), site("frankfurt", "primary-candidate", 0.3, 0), site("madrid", "dr-only", 2.2, 396))
	g.Topology, g.Verdict, g.Reason, g.Message = "ActiveSilent", "Blocked", "NoFitCandidate", why
	g.Forecast = &wire.Forecast{BlockedBy: "NoFitCandidate", Message: why}
	for range 30 {
		s.tell(false, g)
		s.pass(time.Second)
	}
	o := object("orders", 7, "paris", "frankfurt", "madrid")
	o.Status.Sites[0].State = v1alpha1.SiteUnreachable
	o.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "ActiveSiteSilent", Message: "paris does not answer"},
		{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "ActiveSiteSilent", Message: "paris does not answer"},
		{Type: v1alpha1.ConditionFailoverBlocked, Status: metav1.ConditionTrue, Reason: "NoFitCandidate", Message: why},
	}
	return s.changed(o)
}

// changing is orders while the active site changes to a site.
func changing(s *story, t v1alpha1.Transition) *v1alpha1.MysqlFailoverGroup {
	o := object("orders", 8, "paris", "frankfurt", "madrid")
	t.From = "paris"
	o.Status.ActiveSite, o.Status.ActiveSiteSince, o.Status.Phase, o.Status.Transition = t.To, nil, v1alpha1.GroupFailingOver, &t
	s.changed(o)
	return o
}

// ordered goes on with a person's order to frankfurt, at the price of data loss.
func ordered(s *story) *story {
	frankfurt, madrid := site("frankfurt", "primary-candidate", 0.3, 0), site("madrid", "dr-only", 2.2, 396)
	frankfurt.State, madrid.State = "Fenced", "Fenced"
	g := told("orders", 8, silentParis(), frankfurt, madrid)
	g.ActiveSite, g.Hold, g.Topology, g.Verdict, g.Reason, g.Forecast = "frankfurt", true, "Transition", "Wait", "AwaitingFenceProof", nil
	g.Message = "no proof that paris is fenced yet; its lease runs out at 2026-11-03T12:01:53Z"
	s.tell(false, g)
	changing(s, v1alpha1.Transition{
		Kind: v1alpha1.FailoverForced, Step: v1alpha1.TransitionFencing, To: "frankfurt", Reason: v1alpha1.ReasonForced,
		DetectedAt: metav1.NewMicroTime(s.at.Add(-30 * time.Second)), StartedAt: metav1.NewMicroTime(s.at),
	})
	s.pass(2 * time.Second)
	return s
}

// reverted goes on with a planned failover that took too long: paris is opened again.
func reverted(s *story) *story {
	s.pass(5 * time.Second)
	paris, frankfurt := site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0.1, 3)
	paris.State, paris.Writable, paris.Fence, frankfurt.State = "Fenced", false, "read-only", "Fenced"
	g := told("orders", 9, paris, frankfurt, site("madrid", "dr-only", 0.4, 9))
	g.Hold, g.Topology, g.Verdict, g.Reason, g.Forecast = true, "Transition", "Wait", "AwaitingFenceProof", nil
	g.Message = "frankfurt has not acknowledged epoch 9 yet"
	s.tell(false, g)
	began, ended := metav1.NewMicroTime(s.at.Add(-8*time.Second)), metav1.NewMicroTime(s.at)
	o := changing(s, v1alpha1.Transition{
		Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, To: "paris", Reason: v1alpha1.ReasonPlannedReverted,
		DetectedAt: began, StartedAt: metav1.NewMicroTime(s.at.Add(-5 * time.Second)),
	})
	o.Status.Epoch = 9
	o.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{
		From: "paris", To: "frankfurt", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedReverted, Reason: v1alpha1.ReasonPauseTimeout,
		StartedAt: &began, FinishedAt: &ended, Message: "frankfurt has 3 transactions left to apply, for longer than plannedPauseTimeout 5s; paris is opened again",
	}
	return s.changed(o)
}

// takenBack goes on with its end: paris takes writes as before.
func takenBack(s *story) *story {
	s.pass(time.Second)
	s.pace = 96
	o := s.m.fleet.groups["shop/orders"].object.DeepCopy()
	opened := metav1.NewMicroTime(s.at)
	o.Status.Transition, o.Status.Phase = nil, v1alpha1.GroupRunning
	o.Status.Failovers = append([]v1alpha1.FailoverRecord{{
		Epoch: 9, Kind: v1alpha1.FailoverPlanned, From: "paris", To: "paris", Reason: v1alpha1.ReasonPlannedReverted, LossExact: true,
		DetectedAt: metav1.NewMicroTime(s.at.Add(-9 * time.Second)), StartedAt: metav1.NewMicroTime(s.at.Add(-6 * time.Second)), OpenedAt: opened,
		Timeline:         []v1alpha1.TimelineEntry{{Step: "detected"}, {Step: "decided", Millis: 3000}, {Step: "opened", Millis: 9000}},
		WritePauseMillis: pointer(int64(6100)),
	}}, o.Status.Failovers...)
	s.changed(o)
	s.tell(false, told("orders", 9, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0.1, 3), site("madrid", "dr-only", 0.4, 9)))
	s.pass(2 * time.Second)
	return s
}

// proven goes on with the end of mysqld of paris, which its sidecar reports: nothing waits for a lease.
func proven(s *story) *story {
	paris := silentParis()
	paris.SidecarReachable, paris.Message, s.pace = true, "the sidecar answers, MySQL does not", 0
	paris.Reachable = true
	frankfurt, madrid := site("frankfurt", "primary-candidate", 0.3, 0), site("madrid", "dr-only", 2.2, 396)
	frankfurt.State, madrid.State = "Fenced", "Fenced"
	g := told("orders", 8, paris, frankfurt, madrid)
	g.ActiveSite, g.Hold, g.Topology, g.Verdict, g.Reason, g.Forecast = "frankfurt", true, "Transition", "Promote", "GatePassed", nil
	g.Message = "frankfurt is opened"
	s.tell(false, g)
	passed := metav1.NewMicroTime(s.at.Add(300 * time.Millisecond))
	changing(s, v1alpha1.Transition{
		Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionOpening, To: "frankfurt", Reason: v1alpha1.ReasonActiveSiteDown, GatePassedAt: &passed,
		DetectedAt: metav1.NewMicroTime(s.at.Add(-6 * time.Second)), StartedAt: metav1.NewMicroTime(s.at), Evidence: []string{"sidecar of paris reported it fenced under epoch 8"},
	})
	s.pass(time.Second)
	return s
}
