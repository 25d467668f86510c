// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/tui/drill"
	"github.com/mysql-mfg/mfg/tui/feed"
)

func (s *story) changed(o *v1alpha1.MysqlFailoverGroup) *story {
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{o}, At: s.at.Add(ahead)})
	return s
}

// planned goes on with a planned failover of orders whose target catches up.
func planned(s *story) *story {
	s.tell(false, told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0.2, 14), site("madrid", "dr-only", 0.4, 31)))
	began := metav1.NewMicroTime(s.at)
	o := object("orders", 7, "paris", "frankfurt", "madrid")
	o.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{
		From: "paris", To: "frankfurt", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedWaiting, StartedAt: &began,
		Message: "frankfurt has 14 transactions to apply; the move begins when it has none",
	}
	s.changed(o)
	s.pass(3 * time.Second)
	return s
}

// moving goes on with its second half: the epoch is persisted, and the target applies the last transactions.
func moving(s *story) *story {
	frankfurt, madrid := site("frankfurt", "primary-candidate", 0.1, 3), site("madrid", "dr-only", 0.4, 9)
	paris := site("paris", "primary-candidate", 0, 0)
	paris.State, paris.Writable, paris.Fence, frankfurt.State, s.pace = "Fenced", false, "read-only", "Fenced", 0
	g := told("orders", 8, paris, frankfurt, madrid)
	g.ActiveSite, g.Hold, g.Topology, g.Verdict, g.Reason, g.Forecast = "frankfurt", true, "Transition", "Wait", "DrainingRelayLog", nil
	g.Message = "frankfurt has 3 transactions to apply"
	s.tell(false, g)
	o := object("orders", 8, "paris", "frankfurt", "madrid")
	began := metav1.NewMicroTime(s.at.Add(-3 * time.Second))
	o.Status.ActiveSite, o.Status.ActiveSiteSince, o.Status.Phase = "frankfurt", nil, v1alpha1.GroupFailingOver
	o.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{From: "paris", To: "frankfurt", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedMoving, StartedAt: &began}
	o.Status.Transition = &v1alpha1.Transition{
		Kind: v1alpha1.FailoverPlanned, Step: v1alpha1.TransitionFencing, From: "paris", To: "frankfurt", Reason: v1alpha1.ReasonRequested,
		DetectedAt: began, StartedAt: metav1.NewMicroTime(s.at.Add(-120 * time.Millisecond)),
	}
	return s.changed(o)
}

// opening goes on with a failover whose gate is passed: the new active site is told to open.
func opening(s *story) *story {
	s.pass(10 * time.Second)
	o := s.m.fleet.groups["shop/orders"].object.DeepCopy()
	passed := metav1.NewMicroTime(s.at)
	o.Status.Transition.Step, o.Status.Transition.GatePassedAt = v1alpha1.TransitionOpening, &passed
	o.Status.Transition.Evidence = []string{"lease of paris has run out; epoch 8 acknowledged by frankfurt, madrid"}
	g := s.m.fleet.groups["shop/orders"].told.Status
	g.Verdict, g.Reason, g.Message = "Promote", "GatePassed", "frankfurt is opened"
	s.tell(false, g)
	return s.changed(o)
}

// withLoss goes on with the end of that failover: the old active site is back, and three of its commits are nowhere else.
func withLoss(s *story) *story {
	s.pass(20 * time.Second)
	s.pace = 96
	paris, frankfurt, madrid := site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0)
	paris.State, paris.Writable, paris.Fence, paris.Errant = "Diverged", false, "read-only", 3
	paris.Message = "has 3 transactions that the active site lacks: 3e11fa47-71ca-11e1-9e33-c80aa9429562:1000001-1000003"
	frankfurt.State, frankfurt.Writable, frankfurt.Fence, frankfurt.ReplicatingFrom, frankfurt.LagSeconds, frankfurt.Behind = "Primary", true, "open", "", nil, nil
	madrid.ReplicatingFrom = "frankfurt"
	o := object("orders", 8, "paris", "frankfurt", "madrid")
	opened, cooldown := metav1.NewMicroTime(s.at.Add(-12*time.Second)), metav1.NewTime(s.at.Add(18*time.Second))
	since := metav1.NewTime(opened.Time)
	o.Status.ActiveSite, o.Status.ActiveSiteSince, o.Status.CooldownUntil = "frankfurt", &since, &cooldown
	detected := metav1.NewMicroTime(opened.Add(-21300 * time.Millisecond))
	o.Status.Failovers = append([]v1alpha1.FailoverRecord{{
		Epoch: 8, Kind: v1alpha1.FailoverEmergency, From: "paris", To: "frankfurt", Reason: "ActiveSiteSilent",
		DetectedAt: detected, StartedAt: metav1.NewMicroTime(detected.Add(4 * time.Second)), OpenedAt: opened, LostTransactions: 3, LossExact: true,
		Timeline: []v1alpha1.TimelineEntry{{Step: "detected"}, {Step: "decided", Millis: 4000}, {Step: "gatePassed", Millis: 20000}, {Step: "opened", Millis: 21300}},
		Evidence: []string{"lease of paris has run out; epoch 8 acknowledged by frankfurt, madrid"},
	}}, o.Status.Failovers...)
	s.changed(o)
	g := told("orders", 8, paris, frankfurt, madrid)
	g.ActiveSite, g.Topology = "frankfurt", "Degraded"
	g.Forecast = &wire.Forecast{BlockedBy: "NoFitCandidate", Message: "no site is fit (madrid: is dr-only, paris: has transactions that the active site lacks)"}
	for range 9 {
		s.tell(false, g)
		s.pass(time.Second)
	}
	return s
}

// catchingUp goes on with two replicas that are far behind: one gains on the active site, the other does not.
func catchingUp(s *story) *story {
	for i := range 30 {
		s.tell(false, told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 40-float64(i), int64(9000-120*i)),
			site("madrid", "dr-only", 60+float64(i), int64(12000+118*i))))
		s.pass(time.Second)
	}
	return s
}

// backingUp goes on with a backup that is being made.
func backingUp(s *story) *story {
	g := withBackups(s, object("orders", 7, "paris", "frankfurt", "madrid"))
	archived(g)
	g.Status.Backup.Profiles[0].Running = "orders-nightly-20261103-1201"
	return s.changed(g)
}

// restoring is orders as a new group that is made from a backup.
func restoring(s *story) *story {
	g := object("orders", 0, "paris", "frankfurt", "madrid")
	g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{From: &v1alpha1.RestoreFrom{Group: "old"}}
	g.Status.Restore = &v1alpha1.RestoreStatus{Phase: v1alpha1.RestoreLoading, Backup: "old-nightly-20261103-0200", Site: "paris", Progress: 42}
	g.Status.ActiveSite, g.Status.ActiveSiteSince, g.Status.Phase, g.Status.Failovers = "", nil, v1alpha1.GroupBootstrapping, nil
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Restoring", Message: "the group waits for the data of its backup"}}
	s.pace = 0
	var sites []wire.SiteStatus
	for i, name := range []string{"paris", "frankfurt", "madrid"} {
		g.Status.Sites[i].State, g.Status.Sites[i].Provisioned = v1alpha1.SitePending, false
		one := site(name, "primary-candidate", 0, 0)
		one.State, one.Reachable, one.SidecarReachable, one.Writable, one.Fence, one.ReplicatingFrom, one.LagSeconds, one.Behind = "Pending", false, false, false, "unknown", "", nil, nil
		one.Message = "waits for the data of the backup"
		sites = append(sites, one)
	}
	sites[0].Message = "its data are being loaded from the backup"
	s.send(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{g}, At: s.at.Add(ahead)})
	t := told("orders", 0, sites...)
	t.ActiveSite, t.Topology, t.Forecast = "", "Bootstrapping", nil
	s.tell(true, t)
	return s
}

// cacheLost goes on with the loss of the cache in the active site, while MySQL is well.
func cacheLost(s *story) *story {
	g := withCache(object("orders", 7, "paris", "frankfurt", "madrid"))
	c := &g.Status.Conditions[len(g.Status.Conditions)-1]
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(v1alpha1.ReasonCacheNoMaster), "no cache answers that could be the master; applications have none"
	g.Status.Cache.ActiveSite = ""
	g.Status.Cache.Sites = []v1alpha1.CacheSiteStatus{
		{Name: "paris", Message: "its pod does not answer"}, {Name: "frankfurt", Message: "its pod does not answer"},
		{Name: "madrid", Role: v1alpha1.CacheReplica, Link: "Down", UsedMemory: g.Status.Cache.Sites[2].UsedMemory},
	}
	return s.changed(g)
}

// looking lets a dashboard drill: what lies below paris is a pod whose node is gone.
func looking(o Options) Options {
	o.Look = func(q drill.Question) drill.Answer {
		a := drill.Answer{Question: q}
		if q.Kind == drill.Pods {
			a.Pods = []drill.Pod{{
				Name: "mysql-orders-paris-0", Phase: "Running", Node: "worker-p", Started: noon.Add(-3 * time.Hour),
				Trouble: []string{"not Ready: NodeNotReady: the node does not report"},
				Containers: []drill.Container{
					{Name: "sidecar", Ready: true, State: "running for 3h"},
					{Name: "mysql", Ready: false, Restarts: 2, State: "running for 3h", Last: "ended 3h ago with exit code 137, OOMKilled"},
				},
			}}
			return a
		}
		a.Note = "the log of paris/mysql cannot be read: its node does not answer"
		a.Lines = []drill.Line{
			{At: noon.Add(56 * time.Second), Source: "paris/mysql", Level: "INFO", Text: "[MY-010931] [Server] ready for connections."},
			{At: noon.Add(58 * time.Second), Source: "paris/sidecar", Level: "WARN", Text: `the operator does not answer waited=2s error="dial tcp 10.0.0.7:8443: connect: no route to host" attempts=3 lease=18s`},
			{At: noon.Add(59 * time.Second), Source: "paris/sidecar", Level: "ERROR", Text: "no peer vouches for the lease"},
		}
		return a
	}
	return o
}

// drilled presses a key on the first site, and lets the answer arrive.
func drilled(s *story, key string) *story {
	m, cmd := s.m.Update(press(key))
	s.m = m.(Model)
	if cmd != nil {
		s.send(cmd())
	}
	s.m.drill.Wrap = true
	return s
}
