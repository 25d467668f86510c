// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

// groupAPI is an API server with one group.
func groupAPI(t *testing.T, group *v1alpha1.MysqlFailoverGroup) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(group).WithStatusSubresource(group).
		WithTypeConverters(applyconfiguration.NewTypeConverter(scheme), managedfields.NewDeducedTypeConverter()).Build()
}

// answersOf are the answers that a group has, each in a line, and the annotations that it has left.
func answersOf(t *testing.T, l *loop) (answers string, left map[string]string) {
	t.Helper()
	g := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Client.Get(t.Context(), l.key, g); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, a := range g.Status.LastRequests {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s (%s): %s", a.Kind, a.ID, a.Target, a.Outcome, a.Reason, a.Message))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), g.Annotations
}

// TestOnlyWhatWasAnsweredIsTakenOff: a request that was made while another was looked at stays, and giving up says what it gave up.
func TestOnlyWhatWasAnsweredIsTakenOff(t *testing.T) {
	const asks, gives, id = v1alpha1.AnnotationPlannedFailover, v1alpha1.AnnotationAbortFailover, v1alpha1.AnnotationPlannedFailover + "-id"
	ended := func(phase v1alpha1.PlannedPhase, reason failover.Reason) *failover.Planned {
		return &failover.Planned{From: "east", To: "west", Cause: v1alpha1.ReasonRequested, Phase: phase, Reason: reason, Message: "it lags", FinishedAt: time.Now()}
	}
	answered := func(p *failover.Planned, ago time.Duration) *failover.Planned {
		p.Answered, p.FinishedAt = true, p.FinishedAt.Add(-ago)
		return p
	}
	waits := ended(v1alpha1.PlannedWaiting, "")
	for name, tc := range map[string]struct {
		annotations map[string]string
		planned     *failover.Planned
		answers     string
		left        map[string]string
	}{
		"refused":   {map[string]string{asks: "west", id: "1"}, ended(v1alpha1.PlannedRefused, "TargetLags"), "PlannedFailover 1 west: Refused (TargetLags): it lags", nil},
		"succeeded": {map[string]string{asks: "west", id: "1"}, ended(v1alpha1.PlannedSucceeded, "Opened"), "PlannedFailover 1 west: Done (Opened): it lags", nil},
		"reverted":  {map[string]string{asks: "west", id: "1"}, ended(v1alpha1.PlannedReverted, "PauseTimeout"), "PlannedFailover 1 west: Failed (PauseTimeout): it lags", nil},
		"given up": {map[string]string{asks: "west", id: "1", gives: "true"}, ended(v1alpha1.PlannedAborted, "Aborted"),
			"AbortFailover  true: Done (Aborted): east -> west: it lags\nPlannedFailover 1 west: Failed (Aborted): it lags", nil},
		"under way":                      {map[string]string{asks: "west", gives: "true"}, waits, "", map[string]string{asks: "west", gives: "true"}},
		"another is asked for by now":    {map[string]string{asks: "south", id: "2"}, ended(v1alpha1.PlannedRefused, "TargetLags"), "", map[string]string{asks: "south", id: "2"}},
		"answered before":                {map[string]string{asks: "west", id: "2"}, answered(ended(v1alpha1.PlannedRefused, "TargetLags"), 0), "", map[string]string{asks: "west", id: "2"}},
		"a move of its own was given up": {map[string]string{gives: "x"}, answered(ended(v1alpha1.PlannedAborted, "Aborted"), 0), "AbortFailover  x: Done (Aborted): east -> west: it lags", nil},
		"one was given up long ago": {map[string]string{gives: "x"}, answered(ended(v1alpha1.PlannedAborted, "Aborted"), time.Hour),
			"AbortFailover  x: Refused (NothingToAbort): there is no planned failover to give up", nil},
		"nothing to give up":            {map[string]string{gives: ""}, nil, "AbortFailover  : Refused (NothingToAbort): there is no planned failover to give up", nil},
		"giving up leaves a request":    {map[string]string{gives: "x", asks: "south"}, nil, "AbortFailover  x: Refused (NothingToAbort): there is no planned failover to give up", map[string]string{asks: "south"}},
		"nothing is asked for, or done": {nil, ended(v1alpha1.PlannedSucceeded, "Opened"), "", nil},
	} {
		group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Annotations: tc.annotations}}
		l := testLoop(t, &pushes{}, nil)
		l.m.Client, l.durable.Planned = groupAPI(t, group), tc.planned
		l.answerPlanned(t.Context(), group)
		if answers, left := answersOf(t, l); answers != "" || !maps.Equal(left, tc.annotations) {
			t.Errorf("%s: answered before it was known what is durable: %s", name, answers)
		}
		l.loaded = true
		l.answerPlanned(t.Context(), group)
		answers, left := answersOf(t, l)
		if answers != tc.answers || !maps.Equal(left, tc.left) {
			t.Errorf("%s: %q, want %q; left %v", name, answers, tc.answers, left)
		}
	}
}

// An order is answered once a site is open: it was carried out, or there is nothing to override.
func TestAnOrderIsAnswered(t *testing.T) {
	const order, id = v1alpha1.AnnotationForceFailover, v1alpha1.AnnotationForceFailover + "-id"
	for name, tc := range map[string]struct {
		value    string
		topology failover.Topology
		answers  string
		left     map[string]string
		said     v1alpha1.Reason
		waits    bool
	}{
		"its volume may take no writes": {"east", failover.TopologyHealthy, "", map[string]string{order: "east", id: "1"}, "", true},
		"carried out":                   {"west", failover.TopologyHealthy, "ForceFailover 1 west: Done (Completed): west is active under epoch 8", nil, v1alpha1.ReasonFailoverForced, false},
		"nothing to override": {"east", failover.TopologyHealthy, "ForceFailover 1 east: Refused (ActiveSiteOpen): west accepts writes, so nothing is to be lost " +
			"(move the role without loss: kubectl mfg failover orders --to east -n shop)", nil, v1alpha1.ReasonForceFailoverRefused, false},
		"not yet":       {"west", failover.TopologyActiveDown, "", map[string]string{order: "west", id: "1"}, "", false},
		"names no site": {"", failover.TopologyHealthy, "", map[string]string{order: "", id: "1"}, "", false},
	} {
		group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Annotations: map[string]string{order: tc.value, id: "1"}}}
		l := testLoop(t, &pushes{}, nil)
		l.m.Client = groupAPI(t, group)
		said := &spoken{}
		l.m.Events = events.NewRecorder(said)
		for range 2 { // the group may be seen as it was before the answer
			answerer{l.m, l.log, &l.told}.order(t.Context(), group, failover.Decision{Topology: tc.topology, OrderWaits: tc.waits, Status: failover.Durable{ActiveSite: "west", Epoch: 8}})
		}
		said.want(t, name, tc.said, "=")
		answers, left := answersOf(t, l)
		if answers != tc.answers || !maps.Equal(left, tc.left) {
			t.Errorf("%s: %q, want %q; left %v", name, answers, tc.answers, left)
		}
	}
}

// spoken keeps events.
type spoken []string

func (s *spoken) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	*s = append(*s, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

// want is one warning of a reason that has some words in it; none without a reason.
func (s *spoken) want(t *testing.T, name string, reason v1alpha1.Reason, words string) {
	t.Helper()
	switch {
	case reason == "" && len(*s) == 0:
	case reason == "", len(*s) != 1, !strings.HasPrefix((*s)[0], "Warning "+string(reason)+": "), !strings.Contains((*s)[0], words):
		t.Errorf("%s: said %q, want %s with %q once", name, *s, reason, words)
	}
}

// held is a Pusher that answers when it is let go.
type held struct{ pushes, let chan struct{} }

func (h held) PushActiveSite(context.Context, string, wire.ActiveSite) (wire.Answer, error) {
	close(h.pushes)
	<-h.let
	return wire.Answer{Report: wire.Report{Site: "east", Answered: true, SuperReadOnly: true, MysqldRunning: true, Epoch: 9}}, nil
}

// TestAHandoverLeavesTheLinksToTheLoop: it goes on beside the loop, which may get to know another site meanwhile. Run with -race.
func TestAHandoverLeavesTheLinksToTheLoop(t *testing.T) {
	h := held{make(chan struct{}), make(chan struct{})}
	l := testLoop(t, h, nil)
	l.authority.Set(statement("west", 4, true), nil, time.Now())
	l.sites["west"] = &siteLink{}
	e := failover.Handover{From: "east", To: "west"}
	work := handing{e, nil, &corev1.Pod{}, "", l.at(&v1alpha1.MysqlFailoverGroup{}, e.To)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.fenceAndApply(t.Context(), work)
	}()
	<-h.pushes
	close(h.let)
	l.sites["south"] = &siteLink{}
	<-done
}

// TestANoteThatCannotBeWrittenStopsNothing: without an API server a request can end, and the active site restart, at the same time.
// The restarted site must be opened all the same: nothing about who is active has changed.
func TestANoteThatCannotBeWrittenStopsNothing(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	overtaken := group.DeepCopy()
	overtaken.Status.Epoch, overtaken.Status.ActiveSite = 9, "south"
	for name, tc := range map[string]struct {
		live reader
		hold bool
	}{
		"the API server is away":          {reader{err: errors.New("away")}, false},
		"somebody else changed the epoch": {reader{group: overtaken}, true},
	} {
		l := testLoop(t, &pushes{}, tc.live)
		l.durable, l.loaded = failover.Durable{Epoch: 3, ActiveSite: "east"}, true
		l.authority.Set(statement("east", 3, true), nil, time.Now())
		d := failover.Decision{Persist: true, Status: l.durable}
		d.Status.Planned = &failover.Planned{To: "west", Phase: v1alpha1.PlannedRefused}
		if err := l.carryOut(t.Context(), group, failover.Snapshot{Now: time.Now(), Status: l.durable}, d); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := l.authority.Statement().Hold; got != tc.hold || l.loaded == tc.hold || !l.unwritten || l.durable.Planned != nil {
			t.Errorf("%s: hold %t, want %t; loaded %t, unwritten %t, durable %+v", name, got, tc.hold, l.loaded, l.unwritten, l.durable.Planned)
		}
	}
}
