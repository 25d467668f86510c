// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupevents"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/request"
)

var eventFailoverForced = events.Warning(v1alpha1.ReasonFailoverForced, "Failover")

// answerer answers people's requests about the failover of a group, and removes them.
type answerer struct {
	m    *Monitor
	log  *slog.Logger
	told *groupevents.Told
}

// answered is a request with its answer.
type answered struct {
	request.Request
	request.Answer
}

// String is the text of its event.
func (a answered) String() string {
	return fmt.Sprintf("%s=%s: %s", a.Kind.Annotation(), a.Value, a.Answer)
}

// answer answers a request, and returns false if it must try again.
func (r answerer) answer(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, a answered) bool {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	w := request.Writer{Client: r.m.Client, Owner: v1alpha1.ManagerMonitor, Anew: true}
	err := w.Answer(ctx, group.DeepCopy(), a.Request, a.Answer)
	switch {
	case apierrors.IsConflict(err):
		r.log.Debug("answer request", "error", err) // another writer was faster: the next pass removes it
	case err != nil:
		r.log.Error("answer request", "error", err)
	}
	return err == nil
}

// answerPlanned answers the requests about a planned failover, once the loop knows what is durable.
func (l *loop) answerPlanned(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	if l.loaded {
		answerer{l.m, l.log, &l.told}.planned(ctx, group, l.durable.Planned)
	}
}

// planned answers the requests for a planned failover and for its end, once the outcome is durable. A request for another
// site that was made meanwhile stays.
func (r answerer) planned(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, p *failover.Planned) {
	if p != nil && !p.Over() {
		return
	}
	if q, asked := request.Of(group, v1alpha1.RequestPlannedFailover); asked && p != nil && !p.Answered && q.Value == p.To {
		a := request.Answer{Outcome: plannedOutcomes[p.Phase], Reason: string(p.Reason), Message: p.Message}
		r.answer(ctx, group, answered{q, a})
	}
	if q, asked := request.Of(group, v1alpha1.RequestAbortFailover); asked {
		r.answer(ctx, group, answered{q, abortAnswer(p, time.Now())})
	}
}

// plannedOutcomes are the outcomes of the phases that end a planned failover.
var plannedOutcomes = map[v1alpha1.PlannedPhase]v1alpha1.RequestOutcome{
	v1alpha1.PlannedSucceeded: v1alpha1.RequestDone,
	v1alpha1.PlannedRefused:   v1alpha1.RequestRefused,
	v1alpha1.PlannedReverted:  v1alpha1.RequestFailed,
	v1alpha1.PlannedAborted:   v1alpha1.RequestFailed,
}

func abortAnswer(p *failover.Planned, now time.Time) request.Answer {
	if p == nil || p.Phase != v1alpha1.PlannedAborted || now.Sub(p.FinishedAt) >= time.Minute {
		return request.Refused(v1alpha1.AnswerNothingToAbort, "there is no planned failover to give up")
	}
	words := fmt.Sprintf("%s -> %s: %s", p.From, p.To, p.Message)
	return request.Answer{Outcome: v1alpha1.RequestDone, Reason: v1alpha1.AnswerAborted, Message: words}
}

// order answers a person's order once a site is open: it was carried out, or there is nothing to override. If it stayed, it
// would move the role at the next fault.
func (r answerer) order(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, d failover.Decision) {
	q, _ := request.Of(group, v1alpha1.RequestForceFailover)
	if q.Value == "" || d.Topology != failover.TopologyHealthy || d.OrderWaits {
		return
	}
	why := fmt.Sprintf("%s accepts writes, so nothing is to be lost (move the role without loss: kubectl mfg failover %s --to %s -n %s)",
		d.Status.ActiveSite, group.Name, groupevents.Shortened(q.Value), group.Namespace)
	a, event := answered{q, request.Refused(v1alpha1.AnswerActiveSiteOpen, why)}, groupevents.RefusalOf(q.Kind)
	if q.Value == d.Status.ActiveSite {
		a.Answer, event = request.Done(fmt.Sprintf("%s is active under epoch %d", q.Value, d.Status.Epoch)), eventFailoverForced
	}
	if r.answer(ctx, group, a) && r.told.First(q.Kind, q.ID+" "+q.Value) {
		r.m.Events.Emit(group, groupevents.SiteObject(group, d.Status.ActiveSite), event, "%s", a)
	}
}

// meaningless returns the requests that need a site and name none, or order a site to take over that never can, with their answers.
// Their meaning is unknown, so nothing is done. An order that stayed would be forgotten, until that site becomes able to take over.
func meaningless(group *v1alpha1.MysqlFailoverGroup) (all []answered) {
	var names, able []string
	for _, site := range group.Spec.Sites {
		names = append(names, site.Name)
		if site.Role != v1alpha1.DROnly && !v1alpha1.KeptFenced(group, site.Name) {
			able = append(able, site.Name)
		}
	}
	for _, kind := range []v1alpha1.RequestKind{v1alpha1.RequestPlannedFailover, v1alpha1.RequestForceFailover} {
		if q, asked := request.Of(group, kind); asked && q.Value == "" {
			why := "it names no site; the sites are " + strings.Join(names, ", ")
			all = append(all, answered{q, request.Refused(v1alpha1.AnswerUnknownSite, why)})
		}
	}
	q, _ := request.Of(group, v1alpha1.RequestForceFailover)
	if q.Value == "" || slices.Contains(able, q.Value) {
		return all
	}
	reason, why := v1alpha1.AnswerUnknownSite, "is no site of the group"
	switch is := slices.Contains(names, q.Value); {
	case is && v1alpha1.KeptFenced(group, q.Value):
		reason, why = v1alpha1.AnswerKeptFenced, "is kept fenced by a person (end that first: kubectl mfg fence off "+group.Name+" "+q.Value+" -n "+group.Namespace+")"
	case is:
		reason, why = v1alpha1.AnswerNotCandidate, "is dr-only (make it a primary-candidate first, if that is what is wanted)"
	}
	why = fmt.Sprintf("%s %s; those that may take over are %s", groupevents.Shortened(q.Value), why, strings.Join(able, ", "))
	return append(all, answered{q, request.Refused(reason, why)})
}

// senseless removes such requests from the group, and says why.
func (r answerer) senseless(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) {
	for _, kind := range []v1alpha1.RequestKind{v1alpha1.RequestPlannedFailover, v1alpha1.RequestForceFailover} {
		if _, asked := request.Of(group, kind); !asked {
			r.told.Gone(kind)
		}
	}
	for _, a := range meaningless(group) {
		if r.answer(ctx, group, a) && r.told.First(a.Kind, a.ID+" "+a.Value) {
			r.m.Events.Emit(group, nil, groupevents.RefusalOf(a.Kind), "%s", a)
		}
	}
}
