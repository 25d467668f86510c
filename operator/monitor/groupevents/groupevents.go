// SPDX-License-Identifier: Apache-2.0

// Package groupevents emits the news in the decisions about a group, each once, and counts fences and failovers. It decides nothing.
package groupevents

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupstatus"
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
	eventPlannedReverted    = events.Warning(v1alpha1.ReasonPlannedFailoverReverted, "Reopen")
	eventPlannedWaiting     = events.Normal(v1alpha1.ReasonPlannedFailoverWaiting, "Wait")
)

var (
	eventPlannedRefused = events.Warning(v1alpha1.ReasonPlannedFailoverRefused, "Refuse")
	eventForceRefused   = events.Warning(v1alpha1.ReasonForceFailoverRefused, "Refuse")
)

// RefusalOf is the event of a request for a failover that is refused.
func RefusalOf(kind v1alpha1.RequestKind) events.Event {
	if kind == v1alpha1.RequestForceFailover {
		return eventForceRefused
	}
	return eventPlannedRefused
}

// Shortened keeps a name that a person wrote from filling a message.
func Shortened(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "..."
	}
	return name
}

// Told is what the events said last, so that each is emitted on change and none twice. Key is the group's; the zero value of
// everything else is ready to use.
type Told struct {
	Key     types.NamespacedName
	states  map[string]v1alpha1.SiteState
	blocked failover.Reason
	silent  bool
	// foreign are the sites that were seen writable beside the active one.
	foreign map[string]bool
	stays   string
	planned string
	// unwritable is why clients could not write to the open active site.
	unwritable string
	// rows is the last reason given for each site's rows outside InnoDB.
	rows map[string]v1alpha1.Reason
	// answered is the last answered request of each kind, while the group that is read still has it.
	answered map[v1alpha1.RequestKind]string
}

// First is true the first time that a request is answered. The loop sees the request again until it reads a newer group.
func (k *Told) First(kind v1alpha1.RequestKind, request string) bool {
	if before, known := k.answered[kind]; known && before == request {
		return false
	}
	if k.answered == nil {
		k.answered = map[v1alpha1.RequestKind]string{}
	}
	k.answered[kind] = request
	return true
}

// Gone notes that a kind has no request now: the next one is a new one, even with the same words.
func (k *Told) Gone(kind v1alpha1.RequestKind) { delete(k.answered, kind) }

// Emit emits an event about a site of the group; about the group if the site is empty.
type Emit func(site string, e events.Event, format string, args ...any)

// To returns how to emit events about a group and its sites.
func To(r *events.Recorder, group *v1alpha1.MysqlFailoverGroup) Emit {
	return func(site string, e events.Event, format string, args ...any) {
		r.Emit(group, SiteObject(group, site), e, format, args...)
	}
}

// Resume notes what an earlier operator has told of a planned failover.
func (k *Told) Resume(p *failover.Planned) { k.planned = plannedKey(p) }

// SiteObject is what an event about a site refers to: its Service, which exists as long as the site, while pods come and go.
// Kubernetes merges two events that differ only in their notes and keeps the first note: without the Service, if two sites go
// silent at once, the second would not show. It is nil for a name that is no site of the group, as a request may hold one.
func SiteObject(group *v1alpha1.MysqlFailoverGroup, site string) runtime.Object {
	listed := slices.ContainsFunc(group.Spec.Sites, func(s v1alpha1.Site) bool { return s.Name == site })
	left := slices.ContainsFunc(group.Status.Sites, func(s v1alpha1.SiteStatus) bool { return s.Name == site })
	if !listed && !left {
		return nil
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: v1alpha1.SiteName(group.Name, site)}}
}

// Tell emits the news in a decision, and remembers it.
func (k *Told) Tell(emit Emit, d failover.Decision) {
	happened := map[failover.Verdict]events.Event{
		failover.VerdictBootstrap: eventActiveSiteChosen, failover.VerdictFailover: eventFailoverStarted,
		failover.VerdictPromote: eventPromoted,
	}
	if event, is := happened[d.Verdict]; is {
		emit(d.Status.ActiveSite, event, "%s", d.Message)
	}
	if d.Verdict == failover.VerdictComplete {
		k.completed(emit, d)
	}
	if d.Verdict == failover.VerdictReopen && k.states[d.Status.ActiveSite] != v1alpha1.SiteFenced {
		emit(d.Status.ActiveSite, eventActiveSiteReopened, "%s", d.Message)
	}
	if d.Verdict == failover.VerdictBlocked && k.blocked != d.Reason {
		emit(d.Status.ActiveSite, eventFailoverBlocked, "%s: %s", d.Reason, d.Message)
	}
	k.fenceEvents(emit, d)
	k.staysEvent(emit, d)
	k.writeEvents(emit, d)
	k.rowEvents(emit, d)
	k.plannedEvents(emit, d)
	if k.blocked = ""; d.Verdict == failover.VerdictBlocked {
		k.blocked = d.Reason
	}
	if k.states == nil {
		k.states = map[string]v1alpha1.SiteState{}
	}
	for _, v := range d.Views {
		if d.Urgent() {
			break // the poll hardly waited for sites without a part in the move
		}
		k.siteEvents(emit, v)
		k.states[v.Name] = v.State
	}
}

// fenceEvents tells of writers that are kept out, also of one that a new operator finds, and of a group that does not answer.
func (k *Told) fenceEvents(emit Emit, d failover.Decision) {
	fenced := func(site, cause string) {
		fences.WithLabelValues(k.Key.Namespace, k.Key.Name, site, cause).Inc()
	}
	if t := d.Status.Transition; d.Verdict == failover.VerdictPromote && t != nil && t.From != "" {
		emit(t.From, eventFencedOldPrimary, "%s accepts no commits: %s", t.From, strings.Join(t.Evidence, "; "))
		fenced(t.From, string(t.Kind))
	}
	before := k.foreign
	k.foreign = map[string]bool{}
	for _, v := range d.Views {
		if v.Reason != v1alpha1.ReasonForeignWriter {
			continue
		}
		if t := d.Status.Transition; t != nil && t.Kind == v1alpha1.FailoverPlanned && v.Name == t.From {
			continue // it was the active site a moment ago, and is fenced for the planned failover
		}
		k.foreign[v.Name] = true
		if !before[v.Name] {
			emit(v.Name, eventWriterFenced, "%s %s", v.Name, v.Message)
			fenced(v.Name, string(v.Reason))
		}
	}
	silent := d.Topology == failover.TopologyAllUnreachable
	if silent && !k.silent {
		emit("", eventAllUnreachable, "%s", d.Message)
	}
	k.silent = silent
}

// writeEvents tells once that clients cannot write to an open active site, and once that they can again. Other events tell of
// one that closes meanwhile.
func (k *Told) writeEvents(emit Emit, d failover.Decision) {
	before := k.unwritable
	k.unwritable = ""
	if u := d.Unwritable; u != nil {
		k.unwritable = u.Site + " " + string(u.Reason)
		if k.unwritable != before {
			words, way := u.Message()
			emit(u.Site, eventClientsCannotWrite, "%s: %s; %s", u.Reason, words, way)
		}
	} else if before != "" && d.Topology == failover.TopologyHealthy {
		emit(d.Status.ActiveSite, eventClientsCanWrite, "clients can write to %s again", d.Status.ActiveSite)
	}
}

// rowEvents tells once which site has, or lacks, rows that no clone brings.
func (k *Told) rowEvents(emit Emit, d failover.Decision) {
	if k.rows == nil {
		k.rows = map[string]v1alpha1.Reason{}
	}
	for _, v := range d.Views {
		switch v.Reason {
		case v1alpha1.ReasonRowsNotCloned, v1alpha1.ReasonRowsMissing:
			if k.rows[v.Name] != v.Reason {
				emit(v.Name, eventRowsNotCloned, "%s %s", v.Name, v.Message)
			}
			k.rows[v.Name] = v.Reason
		default:
			if v.Healthy {
				delete(k.rows, v.Name)
			}
		}
	}
}

// staysEvent says once for each reason that the role stays on a site that is about to go.
func (k *Told) staysEvent(emit Emit, d failover.Decision) {
	before := k.stays
	k.stays = ""
	if d.Stays == nil {
		return
	}
	k.stays = d.Stays.Site + " " + string(d.Stays.Reason)
	if k.stays != before {
		emit(d.Stays.Site, eventPlannedBlocked, "%s: %s", d.Stays.Reason, groupstatus.StaysMessage(d.Stays))
	}
}

func (k *Told) completed(emit Emit, d failover.Decision) {
	if len(d.Status.Records) == 0 || d.Status.Records[0].Epoch != d.Status.Epoch {
		return // the first active site of a group: nothing was moved
	}
	r := d.Status.Records[0]
	took := r.OpenedAt.Sub(r.DetectedAt.Time)
	emit(r.To, eventFailoverCompleted, "%s -> %s under epoch %d in %s, %d transactions known lost", r.From, r.To, r.Epoch,
		took.Round(10*time.Millisecond), r.LostTransactions)
	failovers.WithLabelValues(k.Key.Namespace, k.Key.Name, string(r.Reason), "completed").Inc()
	failoverDuration.WithLabelValues(k.Key.Namespace, k.Key.Name, string(r.Kind)).Observe(took.Seconds())
}

func (k *Told) siteEvents(emit Emit, v failover.View) {
	before, known := k.states[v.Name]
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

// plannedKey tells each step of each planned failover from every other: two in a row may be refused.
func plannedKey(p *failover.Planned) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %d", p.Phase, p.To, p.StartedAt.UnixMicro())
}

// plannedEvents tells how a planned failover ended.
func (k *Told) plannedEvents(emit Emit, d failover.Decision) {
	p := d.Status.Planned
	before := k.planned
	k.planned = plannedKey(p)
	if p == nil || k.planned == before {
		return
	}
	switch p.Phase {
	case v1alpha1.PlannedRefused:
		emit(p.To, eventPlannedRefused, "to %s: %s", p.To, p.Message)
	case v1alpha1.PlannedReverted, v1alpha1.PlannedAborted:
		emit(p.To, eventPlannedReverted, "to %s: %s", p.To, p.Message)
	case v1alpha1.PlannedWaiting:
		emit(p.To, eventPlannedWaiting, "to %s: %s", p.To, p.Message)
	case v1alpha1.PlannedMoving, v1alpha1.PlannedSucceeded:
		// FailoverStarted and FailoverCompleted say it.
	}
}
