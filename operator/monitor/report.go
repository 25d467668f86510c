// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/groupevents"
	"github.com/mysql-mfg/mfg/operator/monitor/groupstatus"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

// said is the last report, so that the loop reports each change once.
type said struct {
	decision string
	status   string
	failed   string
	written  time.Time
	// agreed is the last version of the group whose status was found to be right.
	agreed  string
	settled groupstatus.Settled
	// seen is when each site answered last, as far as this operator knows.
	seen map[string]time.Time
}

// report writes what is true now: labels, status and conditions, metrics, the live status; events and a log line only
// on change.
func (l *loop) report(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision, failed error) {
	l.logChange(s, d, failed)
	if d.Urgent() {
		l.show(groupstatus.Live(group, s, d, time.Now()))
		if !l.unwritten {
			l.told.Tell(groupevents.To(l.m.Events, group), d)
		}
		return // clients cannot write now: calls to the API server wait until they can
	}
	l.labels(ctx, group, s, d)
	l.metrics(group, s, d)
	l.show(groupstatus.Live(group, s, d, time.Now()))
	if !l.unwritten {
		l.told.Tell(groupevents.To(l.m.Events, group), d) // what could not be persisted did not happen
	}
	l.countLosses(ctx, group)
	requests := answerer{l.m, l.log, &l.told}
	requests.order(ctx, group, d)
	requests.senseless(ctx, group)
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

// cacheDelay is how old the cache may be. Until then the loop takes what it wrote for what is stored.
const cacheDelay = 10 * time.Second

// writeStatus writes the loop's part of the status if it has changed since last time.
func (l *loop) writeStatus(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, s failover.Snapshot, d failover.Decision) {
	if !l.loaded {
		return // what is stored is not known; the next pass reads it first
	}
	status := groupstatus.Of(group, l.durable, d.Views)
	status.Conditions = l.conditions(group, d)
	l.said.settled.Put(&status, s, d)
	if d.Unwritable != nil {
		status.Phase = v1alpha1.GroupUnavailable
	}
	if d.Verdict == failover.VerdictBlocked {
		status.LastFailover = v1alpha1.LastFailoverBlocked
	}
	text, err := json.Marshal(groupstatus.WithoutTimes(status))
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
		l.loaded = false // another writer changed what is durable: the next pass reads it first
		return
	}
	if err := l.apply(ctx, fresh, status); err != nil {
		l.log.Debug("write status", "error", err)
		return
	}
	l.said.status, l.said.written, l.said.agreed = string(text), time.Now(), ""
}

// stands is true if the group's status is what was reported last. It compares once per version of the group: every poll
// asks, and the answer hardly ever changes.
func (l *loop) stands(group *v1alpha1.MysqlFailoverGroup, status v1alpha1.MysqlFailoverGroupStatus) bool {
	if l.said.agreed != "" && l.said.agreed == group.ResourceVersion {
		return true
	}
	if !groupstatus.Says(group.Status, status) {
		return false
	}
	l.said.agreed = group.ResourceVersion
	return true
}

func forecastOf(d failover.Decision) forecastValues {
	if d.Forecast == nil {
		return forecastValues{Blocked: string(d.Reason)}
	}
	out := forecastValues{Known: true, Blocked: string(d.Forecast.BlockedBy), Transactions: float64(d.Forecast.LostTransactions), Seconds: d.Forecast.LostSeconds}
	return out
}

func (l *loop) conditions(group *v1alpha1.MysqlFailoverGroup, d failover.Decision) []metav1.Condition {
	var out []metav1.Condition
	for _, want := range groupstatus.Conditions(d, group.Annotations[v1alpha1.AnnotationPauseUntil], time.Now()) {
		out = append(out, conditions.Stamp(group.Status.Conditions, want, group.Generation, time.Now()))
	}
	return out
}

// show publishes the live status. For a silent site it shows when it last answered: people ask for that while it is silent.
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
