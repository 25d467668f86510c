// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report"
)

// patched is an API server that keeps the annotations of the last merge patch.
type patched struct {
	client.Client
	annotations map[string]any
}

func (p *patched) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	var doc struct {
		Metadata struct {
			Annotations map[string]any `json:"annotations"`
		} `json:"metadata"`
	}
	err = json.Unmarshal(body, &doc)
	p.annotations = doc.Metadata.Annotations
	return err
}

// TestOnlyWhatWasAnsweredIsTakenOff: a request that was made while another was looked at stays, and giving up says what it gave up.
func TestOnlyWhatWasAnsweredIsTakenOff(t *testing.T) {
	const asks, gives = v1alpha1.AnnotationPlannedFailover, v1alpha1.AnnotationAbortFailover
	over := failover.Planned{From: "east", To: "west", Cause: v1alpha1.ReasonRequested, Phase: v1alpha1.PlannedRefused, Message: "it lags"}
	given := failover.Planned{From: "east", To: "west", Cause: v1alpha1.ReasonSiteLeaving, Phase: v1alpha1.PlannedAborted, Answered: true, FinishedAt: time.Now()}
	for name, tc := range map[string]struct {
		annotations map[string]string
		planned     *failover.Planned
		taken       []string
		outcome     string
	}{
		"answered":                       {map[string]string{asks: "west"}, &over, []string{asks}, "it lags"},
		"another is asked for by now":    {map[string]string{asks: "south"}, &over, nil, ""},
		"a move of its own was given up": {map[string]string{gives: "x"}, &given, []string{gives}, "east -> west: Aborted"},
		"nothing to give up":             {map[string]string{gives: "x"}, nil, []string{gives}, "there is no planned failover"},
		"giving up leaves a request":     {map[string]string{gives: "x", asks: "south"}, &given, []string{gives}, "Aborted"},
	} {
		api := &patched{}
		l := testLoop(t, &pushes{}, nil)
		l.m.Client, l.loaded, l.durable.Planned = api, true, tc.planned
		l.answerPlanned(t.Context(), &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
		var taken []string
		for _, key := range []string{asks, gives} {
			if value, is := api.annotations[key]; is && value == nil {
				taken = append(taken, key)
			}
		}
		outcome, _ := api.annotations[v1alpha1.AnnotationLastRequest].(string)
		if strings.Join(taken, " ") != strings.Join(tc.taken, " ") || !strings.Contains(outcome, tc.outcome) {
			t.Errorf("%s: takes %v off and says %q", name, taken, outcome)
		}
	}
}

// TestEachRefusalIsToldOnce: the second of two refused requests is another one.
func TestEachRefusalIsToldOnce(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	told := 0
	emit := func(string, report.Event, string, ...any) { told++ }
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	refused := func(at time.Time, answered bool) failover.Decision {
		return failover.Decision{Status: failover.Durable{Planned: &failover.Planned{To: "west", Phase: v1alpha1.PlannedRefused, StartedAt: at, Answered: answered}}}
	}
	for _, d := range []failover.Decision{refused(at, false), refused(at, true), refused(at.Add(time.Minute), false), refused(at.Add(time.Minute), true)} {
		l.plannedEvents(emit, d)
	}
	if told != 2 {
		t.Errorf("two refusals were told %d times", told)
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
	l.authority.Set(statement("west", 4, true), time.Now())
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
		l.authority.Set(statement("east", 3, true), time.Now())
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
