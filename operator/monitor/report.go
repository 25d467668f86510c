// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

// said is what was reported last, so that everything is said on change and nothing twice.
type said struct {
	decision string
	status   string
	failed   string
	states   map[string]v1alpha1.SiteState
	blocked  failover.Reason
	silent   bool
	// foreign are the sites that were seen writable beside the active one.
	foreign map[string]bool
	stays   string
	planned string
	// unwritable is why clients could not write to the open active site.
	unwritable string
	// rows is what was said last of each site's rows outside InnoDB.
	rows    map[string]v1alpha1.Reason
	written time.Time
	// agreed is the version of the group in which status was last found to stand.
	agreed   string
	forecast settledForecast
	lag      settledStep
	loss     settledLoss
	// key is the key that waits to sign, and the site that it waits for.
	key string
	// seen is when each site answered last, as far as this operator knows.
	seen map[string]time.Time
}

// report writes what is true now: labels, status and conditions, metrics, the live status; events and a log line on
// change only.
func (l *loop) report(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision, failed error) {
	l.logChange(s, d, failed)
	if d.Urgent() {
		l.show(live(group, s, d, time.Now()))
		if !l.unwritten {
			l.events(group, d)
		}
		return // writes are kept out: what asks the API server waits until they are let in again
	}
	l.labels(ctx, group, s, d)
	l.metrics(group, s, d)
	l.show(live(group, s, d, time.Now()))
	if !l.unwritten {
		l.events(group, d) // what could not be persisted did not happen
	}
	l.countLosses(ctx, group)
	l.answerOrder(ctx, group, d)
	l.answerSenseless(ctx, group)
	l.answerPlanned(ctx, group)
	l.writeStatus(ctx, group, s, d)
}

func (l *loop) logChange(s failover.Snapshot, d failover.Decision, failed error) {
	now := fmt.Sprintf("%s/%s/%s/%d", d.Topology, d.Verdict, d.Reason, d.Status.Epoch)
	if now != l.said.decision {
		l.said.decision = now
		l.log.Info("decision", "topology", d.Topology, "verdict", d.Verdict, "reason", d.Reason, "epoch", d.Status.Epoch,
			"site", d.Status.ActiveSite, "message", d.Message, "effects", fmt.Sprint(d.Effects))
		decisions.WithLabelValues(l.key.Namespace, l.key.Name, string(d.Verdict)).Inc()
	}
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	if text != l.said.failed && text != "" {
		l.log.Error("perform", "error", failed, "epoch", s.Status.Epoch)
	}
	l.said.failed = text
}

// labels writes the labels of all pods at once: with the API server away it takes no longer than one of them.
func (l *loop) labels(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) {
	quiet := d.Unheard(s)
	pods := l.pods(ctx, group)
	var all sync.WaitGroup
	for _, v := range d.Views {
		pod := pods[v.Name]
		want := marks(v.Role, v.Healthy || v.Serves, v.Readable, v.Protected)
		if pod == nil || labelled(pod, want) {
			continue
		}
		if quiet && (!v.Protected || pod.Labels[v1alpha1.LabelProtected] == v1alpha1.HealthyYes) {
			continue // but what must not be evicted is protected at once: that is known from elsewhere too
		}
		all.Go(func() {
			if err := l.label(ctx, pod, want); err != nil {
				l.log.Error("label pod", "site", v.Name, "error", err)
			}
		})
	}
	all.Wait()
}

func (l *loop) metrics(group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) {
	ns, name := l.key.Namespace, l.key.Name
	var names []string
	for _, v := range d.Views {
		names = append(names, v.Name)
		errantTransactions.WithLabelValues(ns, name, v.Name).Set(float64(v.Errant.Count()))
		if site, ok := s.Site(v.Name); ok {
			showReplicationLag(ns, name, v.Name, site.MySQL.LagSeconds)
		}
	}
	open := ""
	if d.Topology == failover.TopologyHealthy && d.Unwritable == nil {
		open = d.Status.ActiveSite
	}
	showForecast(ns, name, forecastOf(d))
	showActiveSite(ns, name, open, names)
	epochShown.WithLabelValues(ns, name).Set(float64(d.Status.Epoch))
	ready := 0.0
	if c := meta.FindStatusCondition(l.conditions(group, d), v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
		ready = 1
	}
	groupReady.WithLabelValues(ns, name).Set(ready)
}

// writeStatus writes the loop's part of the status if it says something else than last time.
func (l *loop) writeStatus(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) {
	if !l.loaded {
		return // what stands is not known; the next pass reads it first
	}
	status := l.statusOf(group, l.durable, d.Views)
	status.Conditions = l.conditions(group, d)
	status.ReplicationLag = l.said.lag.settle(lagSteps, worstLag(s, d.Views), s.Now)
	if shown := l.said.forecast.shown; shown != nil && shown.Site == l.durable.ActiveSite {
		l.said.forecast, l.said.loss = settledForecast{}, settledLoss{} // the role has moved to it: it says something wrong, and not just something else
	}
	status.Forecast = l.said.loss.settle(l.said.forecast.settle(toForecast(d.Forecast), s.Now), d.Forecast, s.Now)
	if d.Unwritable != nil {
		status.Phase = v1alpha1.GroupUnavailable
	}
	if d.Verdict == failover.VerdictBlocked {
		status.LastFailover = v1alpha1.LastFailoverBlocked
	}
	text, err := json.Marshal(withoutTimes(status))
	if err != nil || string(text) == l.said.status && (time.Since(l.said.written) < cacheDelay || l.stands(group, status)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	fresh := &v1alpha1.MysqlFailoverGroup{}
	if err := l.m.Live.Get(ctx, l.key, fresh); err != nil {
		return // the API server is away: the next pass tries again
	}
	if !l.isOurs(fresh.Status) {
		l.loaded = false // somebody else changed what is durable: the next pass begins with what stands
		return
	}
	if err := l.apply(ctx, fresh, status); err != nil {
		l.log.Debug("write status", "error", err)
		return
	}
	l.said.status, l.said.written, l.said.agreed = string(text), time.Now(), ""
}

// stands is true if the group says what was said last. That is found out once for each version of the group: it is asked at
// every poll, and hardly ever changes.
func (l *loop) stands(group *v1alpha1.MysqlFailoverGroup, status v1alpha1.MysqlFailoverGroupStatus) bool {
	if l.said.agreed != "" && l.said.agreed == group.ResourceVersion {
		return true
	}
	if !says(group.Status, status) {
		return false
	}
	l.said.agreed = group.ResourceVersion
	return true
}

// toForecast is the part of a forecast that does not change with every poll; what would be lost is put to it in steps.
func toForecast(f *failover.Forecast) *v1alpha1.Forecast {
	if f == nil {
		return nil
	}
	return &v1alpha1.Forecast{Site: f.Site, Rule: f.Rule, BlockedBy: f.BlockedBy, Message: f.Message}
}

func forecastOf(d failover.Decision) forecastValues {
	if d.Forecast == nil {
		return forecastValues{Blocked: string(d.Reason)}
	}
	out := forecastValues{Known: true, Blocked: string(d.Forecast.BlockedBy), Transactions: float64(d.Forecast.LostTransactions), Seconds: d.Forecast.LostSeconds}
	return out
}

func withoutTimes(s v1alpha1.MysqlFailoverGroupStatus) v1alpha1.MysqlFailoverGroupStatus {
	out := *s.DeepCopy()
	for i := range out.Conditions {
		out.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return out
}

// statusOf is the part of the status that this package owns.
func (l *loop) statusOf(group *v1alpha1.MysqlFailoverGroup, durable failover.Durable, all []failover.View) v1alpha1.MysqlFailoverGroupStatus {
	out := v1alpha1.MysqlFailoverGroupStatus{
		ActiveSite: durable.ActiveSite, Epoch: durable.Epoch, Transition: toTransition(durable.Transition),
		Failovers: durable.Records, Phase: phase(durable, all), PlannedFailover: toPlanned(durable.Planned),
		Forecast: group.Status.Forecast, RowsOutsideInnoDB: int32(min(durable.RowsOutside, math.MaxInt32)),
	}
	if !durable.ActiveSince.IsZero() {
		out.ActiveSiteSince = &metav1.Time{Time: durable.ActiveSince}
	}
	if !durable.CooldownUntil.IsZero() {
		out.CooldownUntil = &metav1.Time{Time: durable.CooldownUntil}
	}
	ready := 0
	for _, v := range all {
		if v.Gone {
			continue
		}
		site := v1alpha1.SiteStatus{Name: v.Name, State: v.State, Reason: v.Reason, Message: stable(v), Errant: v.Errant.String(),
			OutlivedLease: slices.Contains(durable.Outlived, v.Name), Incarnations: toIncarnations(durable.Runs[v.Name])}
		out.Sites = append(out.Sites, site)
		if v.Healthy {
			ready++
		}
	}
	out.ReadySites = fmt.Sprintf("%d/%d", ready, len(group.Spec.Sites))
	if len(durable.Records) > 0 {
		out.LastFailover = string(durable.Records[0].Kind)
	}
	// An apply without the conditions would give them up: keep those that stand.
	out.Conditions = owned(group.Status.Conditions)
	return out
}

// stable leaves out of the status what changes with every poll.
func stable(v failover.View) string {
	if v.State == v1alpha1.SiteFenced {
		return ""
	}
	return attempts.ReplaceAllString(v.Message, "")
}

// attempts is how MySQL counts in the error of a receiver that cannot reach its source: once a second.
var attempts = regexp.MustCompile(`This was attempt \d+/\d+, with a delay of \d+ seconds? between attempts\. ?`)

func phase(durable failover.Durable, all []failover.View) v1alpha1.GroupPhase {
	healthy, primary := 0, false
	for _, v := range all {
		if v.Healthy {
			healthy++
		}
		primary = primary || v.State == v1alpha1.SitePrimary
	}
	switch {
	case durable.Epoch == 0 || durable.Transition != nil && durable.Transition.Kind == v1alpha1.FailoverBootstrap:
		return v1alpha1.GroupBootstrapping
	case durable.Transition != nil:
		return v1alpha1.GroupFailingOver
	case !primary:
		return v1alpha1.GroupUnavailable
	case healthy < len(all):
		return v1alpha1.GroupDegraded
	}
	return v1alpha1.GroupRunning
}

// ownConditions are the conditions that this package owns.
var ownConditions = []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionDegraded,
	v1alpha1.ConditionReplicationHealthy, v1alpha1.ConditionFailoverBlocked, v1alpha1.ConditionPaused, v1alpha1.ConditionPlannedBlocked}

func owned(all []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, kind := range ownConditions {
		if c := meta.FindStatusCondition(all, kind); c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func (l *loop) conditions(group *v1alpha1.MysqlFailoverGroup, d failover.Decision) []metav1.Condition {
	var out []metav1.Condition
	for _, want := range conditionsOf(d, group.Annotations[v1alpha1.AnnotationPauseUntil], time.Now()) {
		out = append(out, conditions.Stamp(group.Status.Conditions, want, group.Generation, time.Now()))
	}
	return out
}

// live is the group as GET /status shows it.
func live(group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision, now time.Time) wire.GroupStatus {
	out := wire.GroupStatus{Namespace: group.Namespace, Group: group.Name, ActiveSite: d.Status.ActiveSite, Epoch: d.Status.Epoch,
		Hold: d.Hold, Topology: string(d.Topology), Verdict: string(d.Verdict), Reason: string(d.Reason), Message: d.Message, ObservedAt: now.UTC()}
	if f := d.Forecast; f != nil {
		out.Forecast = &wire.Forecast{Site: f.Site, Rule: f.Rule, BlockedBy: string(f.BlockedBy), Message: f.Message, LostSeconds: f.LostSeconds}
		if f.LostTransactions >= 0 {
			out.Forecast.LostTransactions = &f.LostTransactions
		}
	}
	for _, v := range d.Views {
		site, _ := s.Site(v.Name)
		w := wire.SiteStatus{Name: v.Name, Role: string(site.Role), State: string(v.State), Reachable: site.Reachable(),
			SidecarReachable: site.Sidecar.Answered, Writable: site.Writable(), ReplicatingFrom: site.MySQL.ReplicaOf,
			LagSeconds: site.MySQL.LagSeconds, Errant: v.Errant.Count(), GTIDExecuted: site.MySQL.Executed.String(),
			Version: site.MySQL.Version, Node: site.Pod.Node, Message: v.Message, Fence: fenceOf(site)}
		if v.Behind >= 0 {
			w.Behind = &v.Behind
		}
		if site.Reachable() {
			w.LastSeen = now.UTC()
		}
		out.Sites = append(out.Sites, w)
	}
	return out
}

// show publishes the live status. A site that is silent was seen last when it answered last: that is asked while it is silent.
func (l *loop) show(now wire.GroupStatus) {
	before := l.said.seen
	l.said.seen = make(map[string]time.Time, len(now.Sites))
	for i := range now.Sites {
		site := &now.Sites[i]
		if !site.Reachable {
			site.LastSeen = before[site.Name]
		}
		l.said.seen[site.Name] = site.LastSeen
	}
	l.m.Board.Publish(now)
}

func fenceOf(site failover.Site) string {
	switch {
	case site.Writable():
		return "open"
	case site.Fenced():
		return "read-only"
	case site.Sidecar.Answered && !site.Sidecar.Report.MysqldRunning:
		return "down"
	}
	return "unknown"
}
