// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/gauge"
)

// noon is when every story begins. The machine on which it is watched is 3 s ahead of the operator.
var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

const ahead = 3 * time.Second

func pointer[T any](v T) *T { return &v }

// site is a replica of paris, unless it is paris.
func site(name, role string, lag float64, behind int64) wire.SiteStatus {
	s := wire.SiteStatus{
		Name: name, Role: role, State: "Replica", Reachable: true, SidecarReachable: true, ReplicatingFrom: "paris",
		LagSeconds: &lag, Behind: &behind, Fence: "read-only", Version: "9.7.2", Node: "worker-" + name[:1],
		Volume: &wire.VolumeUse{UsedBytes: 61 << 30, TotalBytes: 100 << 30},
	}
	if name == "madrid" {
		s.Volume = &wire.VolumeUse{UsedBytes: 84 << 30, TotalBytes: 100 << 30}
	}
	if name == "paris" {
		s.State, s.Writable, s.Fence, s.ReplicatingFrom, s.LagSeconds, s.Behind = "Primary", true, "open", "", nil, nil
	}
	return s
}

func told(name string, epoch int64, sites ...wire.SiteStatus) wire.GroupStatus {
	g := wire.GroupStatus{
		Namespace: "shop", Group: name, ActiveSite: "paris", Epoch: epoch, Topology: "Healthy", Verdict: "Nothing", Reason: "Healthy",
		ObservedAt: noon, Sites: sites,
	}
	if len(sites) > 1 {
		g.Forecast = &wire.Forecast{Site: sites[1].Name, Rule: "MostTransactions", LostTransactions: pointer(int64(0)),
			Message: sites[1].Name + " would take over, it holds the most transactions"}
	}
	return g
}

func object(name string, epoch int64, sites ...string) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-40 * 24 * time.Hour))}}
	for _, s := range sites {
		role := v1alpha1.PrimaryCandidate
		if s == "madrid" {
			role = v1alpha1.DROnly
		}
		g.Spec.Sites = append(g.Spec.Sites, v1alpha1.Site{Name: s, Role: role})
		state := v1alpha1.SiteReplica
		if s == "paris" {
			state = v1alpha1.SitePrimary
		}
		g.Status.Sites = append(g.Status.Sites, v1alpha1.SiteStatus{Name: s, State: state, Provisioned: true, Version: "9.7.2", Node: "worker-" + s[:1]})
	}
	g.Spec.Failover.PlannedLagTimeout.Duration, g.Spec.Failover.PlannedPauseTimeout.Duration = time.Minute, 5*time.Second
	since := metav1.NewTime(noon.Add(-3 * time.Hour))
	g.Status.ActiveSite, g.Status.Epoch, g.Status.ActiveSiteSince, g.Status.Phase = "paris", epoch, &since, v1alpha1.GroupRunning
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "AsExpected"}}
	opened := metav1.NewMicroTime(noon.Add(-3 * time.Hour))
	g.Status.Failovers = []v1alpha1.FailoverRecord{{
		Epoch: epoch, Kind: v1alpha1.FailoverPlanned, From: "frankfurt", To: "paris", Reason: "Requested",
		DetectedAt: metav1.NewMicroTime(opened.Add(-412 * time.Millisecond)), StartedAt: metav1.NewMicroTime(opened.Add(-412 * time.Millisecond)), OpenedAt: opened,
		Timeline: []v1alpha1.TimelineEntry{{Step: "detected"}, {Step: "decided", Millis: 2}, {Step: "gatePassed", Millis: 301}, {Step: "opened", Millis: 412}},
		Evidence: []string{fmt.Sprintf("sidecar of frankfurt reported it fenced under epoch %d", epoch)}, LossExact: true, WritePauseMillis: pointer(int64(412)),
	}}
	return g
}

// encrypted adds keyrings in different phases.
func encrypted(g *v1alpha1.MysqlFailoverGroup) *v1alpha1.MysqlFailoverGroup {
	since := metav1.NewMicroTime(noon.Add(-95 * time.Second))
	g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
		{Name: "paris", Phase: v1alpha1.KeyringSealed, KeyringVersion: 4},
		{Name: "frankfurt", Phase: v1alpha1.KeyringSealed, KeyringVersion: 4},
		{Name: "madrid", Phase: v1alpha1.KeyringUnsealed, KeyringVersion: 3, Work: v1alpha1.KeyringRotation, Since: &since, Message: "waiting for its pod"},
	}, Campaign: &v1alpha1.CampaignStatus{Order: "*", Step: v1alpha1.CampaignRotating, Site: "madrid", Sites: []v1alpha1.CampaignSite{
		{Name: "paris", FromVersion: 4}, {Name: "frankfurt", FromVersion: 3, ToVersion: 4}, {Name: "madrid", FromVersion: 3},
	}}}
	return g
}

// story drives a dashboard as the feeds and the clock do.
type story struct {
	m  Model
	at time.Time // the operator's clock
	// executed is how many transactions the active site of each group has, and pace how many come a second.
	executed, pace int64
}

func newStory(o Options) *story {
	o.Now = noon.Add(ahead)
	return &story{m: New(o), at: noon, executed: 1000000, pace: 118}
}

func (s *story) send(msgs ...tea.Msg) {
	for _, msg := range msgs {
		m, _ := s.m.Update(msg)
		s.m = m.(Model)
	}
}

func (s *story) tell(whole bool, groups ...wire.GroupStatus) {
	c := feed.Changes{Whole: whole, At: s.at.Add(ahead), Clock: s.at, Link: &feed.Link{Up: true, Route: "service proxy"}}
	for _, g := range groups {
		g.ObservedAt = s.at
		g.Sites = slices.Clone(g.Sites)
		for i := range g.Sites {
			if site := &g.Sites[i]; site.Reachable && site.GTIDExecuted == "" {
				behind := int64(0)
				if site.Behind != nil {
					behind = *site.Behind
				}
				site.GTIDExecuted = fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-%d", s.executed-behind)
			}
		}
		c.Groups = append(c.Groups, feed.Told{Status: g, Clock: s.at})
	}
	s.send(c)
}

func (s *story) pass(d time.Duration) {
	for range int(d / time.Second) {
		s.at = s.at.Add(time.Second)
		s.executed += s.pace
		s.send(tick(s.at.Add(ahead)))
	}
}

func (s *story) keys(keys ...string) {
	for _, k := range keys {
		s.send(press(k))
	}
}

// press is a key as bubbletea names it.
func press(k string) tea.KeyPressMsg {
	codes := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace}, "tab": {Code: tea.KeyTab},
		"down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp}, "pgdown": {Code: tea.KeyPgDown}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
		"space": {Code: tea.KeySpace, Text: " "},
	}
	if known, ok := codes[k]; ok {
		return known
	}
	return tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
}

// begin shows three groups for a minute: one well, one with a keyring that rotates, one with a site that is silent.
func begin(o Options) *story {
	o.Namespace = "shop"
	s := newStory(o)
	carts, users := object("carts", 3, "paris", "frankfurt"), encrypted(object("users", 12, "paris", "frankfurt", "madrid"))
	orders := object("orders", 7, "paris", "frankfurt", "madrid")
	s.send(feed.Objects{Whole: true, Changed: []*v1alpha1.MysqlFailoverGroup{carts, orders, users}, At: s.at.Add(ahead)})
	wave := []float64{0, 0, 0.2, 0.4, 1.1, 2.6, 4.2, 3.1, 1.4, 0.6, 0.1, 0}
	lost := site("frankfurt", "primary-candidate", 0, 0)
	s.tell(true, told("carts", 3, site("paris", "primary-candidate", 0, 0), lost),
		told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0)),
		told("users", 12, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0)))
	for i := range 60 {
		lag := wave[i%len(wave)]
		s.tell(false,
			told("orders", 7, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", lag/10, int64(lag*3)), site("madrid", "dr-only", lag, int64(lag*180))),
			told("users", 12, site("paris", "primary-candidate", 0, 0), site("frankfurt", "primary-candidate", 0, 0), site("madrid", "dr-only", lag/3, int64(lag*2))))
		s.pass(time.Second)
		if i == 50 {
			lost.State, lost.Reachable, lost.SidecarReachable, lost.Fence, lost.LagSeconds, lost.Behind = "Unreachable", false, false, "unknown", nil, nil
			lost.Message, lost.ReplicatingFrom = "neither the sidecar nor MySQL answers", ""
			g := told("carts", 3, site("paris", "primary-candidate", 0, 0), lost)
			g.Topology, g.Forecast = "Degraded", &wire.Forecast{BlockedBy: "NoCandidate", Message: "no other site could take over"}
			s.tell(false, g)
		}
	}
	for _, group := range []string{"orders", "users"} {
		s.send(figures(Answer{Namespace: "shop", Group: group, Figures: []gauge.Reading{
			reading("paris", 42), reading("frankfurt", 3), reading("madrid", 2),
		}}))
	}
	s.send(figures(Answer{Namespace: "shop", Group: "carts", Figures: []gauge.Reading{gauge.Unread("paris", "you may neither get pods/proxy nor create pods/portforward in namespace shop")}}))
	return s
}

// reading is what a sidecar says of its mysqld.
func reading(site string, connections float64) gauge.Reading {
	return gauge.Reading{Site: site, Connections: connections, MaxConnections: 151, Running: 2}
}

// failingOver goes on with the loss of the active site of orders.
func failingOver(s *story) *story {
	silent := site("paris", "primary-candidate", 0, 0)
	silent.State, silent.Reachable, silent.SidecarReachable, silent.Writable, silent.Fence = "Unreachable", false, false, false, "unknown"
	silent.Message, s.pace = "neither the sidecar nor MySQL answers", 0
	frankfurt, madrid := site("frankfurt", "primary-candidate", 0.3, 0), site("madrid", "dr-only", 2.2, 396)
	g := told("orders", 7, silent, frankfurt, madrid)
	g.Topology, g.Verdict, g.Reason, g.Message, g.Forecast = "ActiveSilent", "Wait", "ActiveSiteSilent", "paris is silent for 1 polls and 2.0s; needed are 3 and 4s", nil
	s.tell(false, g)
	s.pass(4 * time.Second)

	frankfurt.State, madrid.State, frankfurt.Behind = "Fenced", "Fenced", pointer(int64(0))
	g = told("orders", 8, silent, frankfurt, madrid)
	g.ActiveSite, g.Hold, g.Topology, g.Verdict, g.Reason, g.Forecast = "frankfurt", true, "Transition", "Wait", "AwaitingFenceProof", nil
	g.Message = "no proof yet that paris is fenced"
	s.tell(false, g)
	o := object("orders", 8, "paris", "frankfurt", "madrid")
	o.Status.ActiveSite, o.Status.ActiveSiteSince, o.Status.Phase = "frankfurt", nil, v1alpha1.GroupFailingOver
	o.Status.Failovers[0].Epoch = 7
	o.Status.Transition = &v1alpha1.Transition{
		Kind: v1alpha1.FailoverEmergency, Step: v1alpha1.TransitionFencing, From: "paris", To: "frankfurt", Reason: "ActiveSiteSilent",
		DetectedAt: metav1.NewMicroTime(s.at.Add(-4 * time.Second)), StartedAt: metav1.NewMicroTime(s.at),
	}
	s.send(feed.Objects{Changed: []*v1alpha1.MysqlFailoverGroup{o}, At: s.at.Add(ahead)})
	s.pass(9 * time.Second)
	s.send(why(Answer{Namespace: "shop", Group: "orders", Why: "orders  shop\nRules\n", Deciding: &wire.ExplainedRule{Name: "Gate",
		Input: "no proof that paris is fenced; its lease runs out at 2026-11-03T12:01:23Z (9.9s left)", Remedy: "wait", Until: noon.Add(83 * time.Second)}}))
	s.send(events(Answer{Namespace: "shop", Group: "orders", Events: []report.Event{
		{Time: s.at.Add(-9 * time.Second), Type: "Warning", Reason: "FailoverStarted", Object: "MysqlFailoverGroup/orders", Message: "paris is silent; the role moves to frankfurt under epoch 8"},
		{Time: s.at.Add(-11 * time.Second), Type: "Warning", Reason: "NodeNotReady", Object: "Pod/mysql-orders-paris-0", Message: "Node is not ready", Count: 2},
	}}))
	return s
}

// paused is a group that the operator leaves alone.
func paused(g *v1alpha1.MysqlFailoverGroup, until time.Time) {
	g.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: until.Format(time.RFC3339)}
	g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue, Reason: "Paused"})
}

// splitBrain goes on with a second writer in users, as somebody makes one who clears super_read_only.
func splitBrain(s *story) *story {
	paris, madrid := site("paris", "primary-candidate", 0, 0), site("madrid", "dr-only", 0, 0)
	frankfurt := site("frankfurt", "primary-candidate", 0, 0)
	frankfurt.State, frankfurt.Writable, frankfurt.Fence = "Fenced", true, "open"
	frankfurt.Message = "is writable although it is not active; it is being fenced"
	s.tell(false, told("users", 12, paris, frankfurt, madrid))
	return s
}
