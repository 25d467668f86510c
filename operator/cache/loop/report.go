// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
)

// What happens to the caches.
var (
	eventPromoted     = events.Normal(v1alpha1.ReasonCachePromoted, "MoveCache")
	eventSessionsLost = events.Warning(v1alpha1.ReasonCacheSessionsLost, "MoveCache")
	eventMoveFailed   = events.Warning(v1alpha1.ReasonCacheMoveFailed, "KeepCache")
	eventFull         = events.Warning(v1alpha1.ReasonCacheFull, "KeepCache")
	eventSecondMaster = events.Warning(v1alpha1.ReasonCacheSecondMaster, "FollowMaster")
)

var eventOf = map[v1alpha1.Reason]events.Event{
	v1alpha1.ReasonCachePromoted: eventPromoted, v1alpha1.ReasonCacheSessionsLost: eventSessionsLost,
	v1alpha1.ReasonCacheMoveFailed: eventMoveFailed, v1alpha1.ReasonCacheSecondMaster: eventSecondMaster, v1alpha1.ReasonCacheFull: eventFull,
}

// said is what was reported last, so that the loop reports everything on change and nothing twice.
type said struct {
	decision, failed, event string
	// cache is what was written last, words all of it without the numbers that change with every look.
	cache   *v1alpha1.CacheStatus
	words   string
	written time.Time
}

// cacheDelay is how old the view of the manager's cache may be. Until then, what the loop wrote counts as present.
const cacheDelay = 10 * time.Second

// report writes what is true now.
func (l *loop) report(ctx context.Context, k look, failed error) {
	l.logChange(k, failed)
	l.show(k)
	if !k.decision.Persist {
		l.emit(k)
	}
	l.answer(ctx, k) // now or never: a later look no longer knows what came of a move
	if k.decision.Next > 0 && k.decision.Next < 50*time.Millisecond && failed == nil {
		return // it looks again at once, as no pod may have the traffic: what else asks the API server waits
	}
	l.markStale(ctx, k)
	l.writeStatus(ctx, k)
}

// emit reports what happened, but not the same thing twice.
func (l *loop) emit(k look) {
	for _, e := range k.decision.Events {
		if text := string(e.Reason) + e.Message; l.said.event != text {
			l.said.event = text
			l.m.Events.Emit(k.group, nil, eventOf[e.Reason], "%s", e.Message)
		}
		count(l.key, e.Reason)
	}
}

func (l *loop) logChange(k look, failed error) {
	d := k.decision
	if now := fmt.Sprint(d.Reason, d.Message, d.Actions); now != l.said.decision {
		l.said.decision = now
		l.log.Info("decision", "reason", d.Reason, "message", d.Message, "site", d.Status.ActiveSite, "actions", fmt.Sprint(d.Actions))
	}
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	if text != l.said.failed && text != "" {
		l.log.Error("act", "error", failed)
	}
	l.said.failed = text
}

// status is this loop's part of the status.
func (l *loop) status(group *v1alpha1.MysqlFailoverGroup, k look) v1alpha1.MysqlFailoverGroupStatus {
	d := k.decision
	c := &v1alpha1.CacheStatus{ActiveSite: d.Status.ActiveSite, ActiveRun: d.Status.ActiveRun, Transition: d.Status.Transition, LastPromotion: d.Status.Last}
	active := k.snapshot.Pod(d.Status.ActiveSite)
	for _, p := range k.snapshot.Pods {
		c.Sites = append(c.Sites, l.siteStatus(k, p, active))
	}
	out := v1alpha1.MysqlFailoverGroupStatus{Cache: c}
	if stands := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionCacheReady); d.Keep && stands != nil {
		out.Conditions = []metav1.Condition{*stands}
		return out
	}
	want := conditions.False(v1alpha1.ConditionCacheReady, d.Reason, d.Message)
	if d.Ready {
		want = conditions.True(v1alpha1.ConditionCacheReady, d.Reason, d.Message)
	}
	out.Conditions = []metav1.Condition{conditions.Stamp(group.Status.Conditions, want, group.Generation, time.Now())}
	return out
}

// troublePatience is how long the condition may stay as it is while the controller has not looked for troubles yet: it does so with its
// first look at the group.
const troublePatience = time.Minute

// withTrouble has the decision say first what a person has to settle, then what follows from it. What is done stays the same.
func (l *loop) withTrouble(s cache.Snapshot, d cache.Decision) cache.Decision {
	if l.m.Troubles == nil {
		return d
	}
	reason, message, looked := l.m.Troubles.Known(l.key)
	switch {
	case !looked:
		d.Keep = d.Keep || s.Now.Sub(d.Memory.Began) < troublePatience
	case reason != "" && d.Message != "" && !d.Ready:
		d.Ready, d.Keep, d.Reason, d.Message = false, false, reason, message+"; "+d.Message
	case reason != "":
		d.Ready, d.Keep, d.Reason, d.Message = false, false, reason, message
	}
	return d
}

// withDrain has the decision say that the drain of the master's node waits. The budget keeps the pod there until another cache can take
// over with every key.
func withDrain(s cache.Snapshot, d cache.Decision) cache.Decision {
	active := s.Pod(d.Status.ActiveSite)
	able := func(p cache.Pod) bool { return p.Leaving == "" && !p.Removed && p.TakesOver(active.Site) }
	if (active.Master() || s.Refuses(active.Site)) && strings.HasSuffix(active.Leaving, isCordoned) && d.Status.Transition == nil && d.Message != "" && !slices.ContainsFunc(s.Pods, able) {
		d.Message += "; " + active.Leaving + ", and its drain waits until a cache on another node can take over"
	}
	return d
}

func (l *loop) siteStatus(k look, p, active cache.Pod) v1alpha1.CacheSiteStatus {
	out := v1alpha1.CacheSiteStatus{Name: p.Site, Message: cmp.Or(p.Unlisted, p.Trouble)}
	if pod := k.pods[p.Site]; pod != nil && len(pod.Spec.Containers) > 0 {
		out.Image = pod.Spec.Containers[0].Image
	}
	if !p.Exists && out.Message == "" {
		out.Message = "it has no pod"
	}
	if !p.Reachable {
		return out
	}
	out.Role = p.Role
	used := resource.NewQuantity((l.links[p.Site].info.UsedMemory+memoryStep-1)/memoryStep*memoryStep, resource.BinarySI)
	out.UsedMemory = used
	if p.Role == v1alpha1.CacheReplica {
		out.Link = linkOf(p)
		if p.Follows(active.Site) && active.Reachable {
			behind := behindOf(active, p)
			out.OffsetBehind = &behind
		}
	}
	return out
}

func linkOf(p cache.Pod) string {
	switch {
	case p.Syncing:
		return "Syncing"
	case p.Linked:
		return "Up"
	}
	return "Down"
}

// writeStatus writes this loop's part if it says something else than last time. Numbers that change with every look are written
// from time to time.
func (l *loop) writeStatus(ctx context.Context, k look) {
	if !l.loaded {
		return // what status says is not known
	}
	if !same(durable(k.group.Status.Cache), l.durable) {
		l.loaded = false // another process moved the role, which this write would take back; or the view lags behind this loop's own write
		return
	}
	k.decision.Status = l.durable
	status := l.status(k.group, k)
	words := wordsOf(status)
	age := time.Since(l.said.written)
	switch stands := k.group.Status.Cache != nil; {
	case words != l.said.words, !stands && age > cacheDelay:
	case age < freshFor || !isNews(l.said.cache, status.Cache):
		return
	}
	if err := l.apply(ctx, k.group, status); err != nil {
		l.log.Debug("write status", "error", err) // the next look tries again, with what status says then
		return
	}
	l.said.cache, l.said.words, l.said.written = status.Cache, words, time.Now()
}

// wordsOf is a status without the numbers that change with every look.
func wordsOf(status v1alpha1.MysqlFailoverGroupStatus) string {
	status.Cache = status.Cache.DeepCopy()
	for i := range status.Cache.Sites {
		status.Cache.Sites[i].OffsetBehind, status.Cache.Sites[i].UsedMemory = nil, nil
	}
	return textOf(status)
}

func textOf(status v1alpha1.MysqlFailoverGroupStatus) string {
	text, err := json.Marshal([]any{status.Cache, status.Conditions})
	if err != nil {
		return ""
	}
	return string(text)
}

// request is the open request of a person; nil if there is none.
func request(group *v1alpha1.MysqlFailoverGroup) *cache.Request {
	q, stands := asks.Open(group, v1alpha1.RequestPromoteCache)
	if !stands {
		return nil
	}
	return &cache.Request{Site: q.Value, ID: q.ID}
}

// answer answers a request, and gives an id to one that has none.
func (l *loop) answer(ctx context.Context, k look) {
	writer := asks.Writer{Client: l.m.Client, Owner: v1alpha1.ManagerCache, Anew: true}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	a := k.decision.Answer
	if a == nil || k.decision.Persist && !l.loaded {
		return // what it answers did not become durable, so it may still come otherwise
	}
	out := asks.Answer{Outcome: v1alpha1.RequestRefused, Reason: string(a.Reason), Message: a.Message}
	switch {
	case a.Done:
		out = asks.Done(a.Message)
	case a.Failed:
		out.Outcome = v1alpha1.RequestFailed
	}
	q := asks.Request{Kind: v1alpha1.RequestPromoteCache, Value: a.Request.Site, ID: a.Request.ID}
	if err := writer.Answer(ctx, k.group.DeepCopy(), q, out); err != nil {
		l.log.Debug("answer request", "error", err)
	}
}

// refuse answers a request for a cache that is switched off.
func (l *loop) refuse(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) error {
	q, stands := asks.Of(group, v1alpha1.RequestPromoteCache)
	if !stands {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	writer := asks.Writer{Client: l.m.Client, Owner: v1alpha1.ManagerCache, Anew: true}
	return writer.Answer(ctx, group.DeepCopy(), q, asks.Refused(string(v1alpha1.ReasonCacheNoMaster), "nothing was changed: the group has no cache; set spec.cache.enabled"))
}
