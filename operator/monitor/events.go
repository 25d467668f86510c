// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

var (
	eventActiveSiteChosen   = events.Normal(v1alpha1.ReasonActiveSiteChosen, "Promote")
	eventFailoverStarted    = events.Warning(v1alpha1.ReasonFailoverStarted, "Failover")
	eventFencedOldPrimary   = events.Normal(v1alpha1.ReasonFencedOldPrimary, "Fence")
	eventPromoted           = events.Normal(v1alpha1.ReasonPromoted, "Promote")
	eventFailoverCompleted  = events.Normal(v1alpha1.ReasonFailoverCompleted, "Failover")
	eventFailoverBlocked    = events.Warning(v1alpha1.ReasonFailoverBlocked, "Wait")
	eventPlannedBlocked     = events.Warning(v1alpha1.ReasonPlannedFailoverBlocked, "Wait")
	eventActiveSiteReopened = events.Normal(v1alpha1.ReasonActiveSiteReopened, "Promote")
	eventClientsCannotWrite = events.Warning(v1alpha1.ReasonClientsCannotWrite, "Observe")
	eventClientsCanWrite    = events.Normal(v1alpha1.ReasonClientsCanWrite, "Observe")
	eventRowsNotCloned      = events.Warning(v1alpha1.ReasonRowsNotCloned, "Observe")
	eventWriterFenced       = events.Warning(v1alpha1.ReasonWriterFenced, "Fence")
	eventSiteDiverged       = events.Warning(v1alpha1.ReasonSiteDiverged, "Hold")
	eventSiteAttached       = events.Normal(v1alpha1.ReasonSiteAttached, "Attach")
	eventSiteUnreachable    = events.Warning(v1alpha1.ReasonSiteUnreachable, "Observe")
	eventSiteReachable      = events.Normal(v1alpha1.ReasonSiteReachable, "Observe")
	eventAllUnreachable     = events.Warning(v1alpha1.ReasonAllSitesUnreachable, "Wait")
)

// teller emits an event about a site of the group; about the group if the site is empty.
type teller func(site string, e events.Event, format string, args ...any)

// siteObject is what stands for a site in an event: its Service, which is there for as long as the site, while a pod comes and
// goes. Two events that differ in their notes alone become one, with the note of the first: without it nobody would read of the
// second of two sites that go silent at once. It is nil for what is no site of the group, as a person may name one in a request.
func siteObject(group *v1alpha1.MysqlFailoverGroup, site string) runtime.Object {
	listed := slices.ContainsFunc(group.Spec.Sites, func(s v1alpha1.Site) bool { return s.Name == site })
	left := slices.ContainsFunc(group.Status.Sites, func(s v1alpha1.SiteStatus) bool { return s.Name == site })
	if !listed && !left {
		return nil
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: v1alpha1.SiteName(group.Name, site)}}
}

func (l *loop) events(group *v1alpha1.MysqlFailoverGroup, d failover.Decision) {
	emit := func(site string, e events.Event, format string, args ...any) {
		l.m.Events.Emit(group, siteObject(group, site), e, format, args...)
	}
	happened := map[failover.Verdict]events.Event{
		failover.VerdictBootstrap: eventActiveSiteChosen, failover.VerdictFailover: eventFailoverStarted,
		failover.VerdictPromote: eventPromoted,
	}
	if event, is := happened[d.Verdict]; is {
		emit(d.Status.ActiveSite, event, "%s", d.Message)
	}
	if d.Verdict == failover.VerdictComplete {
		l.completed(emit, d)
	}
	if d.Verdict == failover.VerdictReopen && l.said.states[d.Status.ActiveSite] != v1alpha1.SiteFenced {
		emit(d.Status.ActiveSite, eventActiveSiteReopened, "%s", d.Message)
	}
	if d.Verdict == failover.VerdictBlocked && l.said.blocked != d.Reason {
		emit(d.Status.ActiveSite, eventFailoverBlocked, "%s: %s", d.Reason, d.Message)
	}
	l.fenceEvents(emit, d)
	l.staysEvent(emit, d)
	l.writeEvents(emit, d)
	l.rowEvents(emit, d)
	l.plannedEvents(emit, d)
	if l.said.blocked = ""; d.Verdict == failover.VerdictBlocked {
		l.said.blocked = d.Reason
	}
	if l.said.states == nil {
		l.said.states = map[string]v1alpha1.SiteState{}
	}
	for _, v := range d.Views {
		if d.Urgent() {
			break // a site that has no part in the move was hardly waited for
		}
		l.siteEvents(emit, v)
		l.said.states[v.Name] = v.State
	}
}

// fenceEvents tells of writers that are kept out, also of one that a new operator finds, and of a group without an answer.
func (l *loop) fenceEvents(emit teller, d failover.Decision) {
	fenced := func(site, cause string) {
		fences.WithLabelValues(l.key.Namespace, l.key.Name, site, cause).Inc()
	}
	if t := d.Status.Transition; d.Verdict == failover.VerdictPromote && t != nil && t.From != "" {
		emit(t.From, eventFencedOldPrimary, "%s accepts no commits: %s", t.From, strings.Join(t.Evidence, "; "))
		fenced(t.From, string(t.Kind))
	}
	before := l.said.foreign
	l.said.foreign = map[string]bool{}
	for _, v := range d.Views {
		if v.Reason != v1alpha1.ReasonForeignWriter {
			continue
		}
		l.said.foreign[v.Name] = true
		if !before[v.Name] {
			emit(v.Name, eventWriterFenced, "%s %s", v.Name, v.Message)
			fenced(v.Name, string(v.Reason))
		}
	}
	silent := d.Topology == failover.TopologyAllUnreachable
	if silent && !l.said.silent {
		emit("", eventAllUnreachable, "%s", d.Message)
	}
	l.said.silent = silent
}

// writeEvents tell once that clients cannot write to an open active site, and once that they can again. One that is closed meanwhile
// is told of otherwise.
func (l *loop) writeEvents(emit teller, d failover.Decision) {
	before := l.said.unwritable
	l.said.unwritable = ""
	if u := d.Unwritable; u != nil {
		l.said.unwritable = u.Site + " " + string(u.Reason)
		if l.said.unwritable != before {
			words, way := u.Message()
			emit(u.Site, eventClientsCannotWrite, "%s: %s; %s", u.Reason, words, way)
		}
	} else if before != "" && d.Topology == failover.TopologyHealthy {
		emit(d.Status.ActiveSite, eventClientsCanWrite, "clients can write to %s again", d.Status.ActiveSite)
	}
}

// rowEvents tell once of rows that no clone brings, of whoever has or lacks them.
func (l *loop) rowEvents(emit teller, d failover.Decision) {
	if l.said.rows == nil {
		l.said.rows = map[string]v1alpha1.Reason{}
	}
	for _, v := range d.Views {
		switch v.Reason {
		case v1alpha1.ReasonRowsNotCloned, v1alpha1.ReasonRowsMissing:
			if l.said.rows[v.Name] != v.Reason {
				emit(v.Name, eventRowsNotCloned, "%s %s", v.Name, v.Message)
			}
			l.said.rows[v.Name] = v.Reason
		default:
			if v.Healthy {
				delete(l.said.rows, v.Name)
			}
		}
	}
}

// staysEvent says once for each reason that the role stays on a site that is about to go.
func (l *loop) staysEvent(emit teller, d failover.Decision) {
	before := l.said.stays
	l.said.stays = ""
	if d.Stays == nil {
		return
	}
	l.said.stays = d.Stays.Site + " " + string(d.Stays.Reason)
	if l.said.stays != before {
		emit(d.Stays.Site, eventPlannedBlocked, "%s: %s", d.Stays.Reason, staysMessage(d.Stays))
	}
}

func (l *loop) completed(emit teller, d failover.Decision) {
	if len(d.Status.Records) == 0 || d.Status.Records[0].Epoch != d.Status.Epoch {
		return // the first active site of a group: nothing was moved
	}
	r := d.Status.Records[0]
	took := r.OpenedAt.Sub(r.DetectedAt.Time)
	emit(r.To, eventFailoverCompleted, "%s -> %s under epoch %d in %s, %d transactions known lost", r.From, r.To, r.Epoch,
		took.Round(10*time.Millisecond), r.LostTransactions)
	failovers.WithLabelValues(l.key.Namespace, l.key.Name, string(r.Reason), "completed").Inc()
	failoverDuration.WithLabelValues(l.key.Namespace, l.key.Name, string(r.Kind)).Observe(took.Seconds())
}

func (l *loop) siteEvents(emit teller, v failover.View) {
	before, known := l.said.states[v.Name]
	if !known || before == v.State {
		return
	}
	switch {
	case v.State == v1alpha1.SiteDiverged:
		emit(v.Name, eventSiteDiverged, "%s %s", v.Name, v.Message)
	case v.State == v1alpha1.SiteUnreachable:
		emit(v.Name, eventSiteUnreachable, "%s: %s", v.Name, v.Message)
	case before == v1alpha1.SiteUnreachable:
		emit(v.Name, eventSiteReachable, "%s answers again and is %s", v.Name, v.State)
	case v.State == v1alpha1.SiteReplica:
		emit(v.Name, eventSiteAttached, "%s replicates from the active site", v.Name)
	}
}
