// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	// moveBudget is how long a move of a master that answers may take, from the traffic of the old one to that of the new: a
	// move that has not succeeded by then is given up, and the old one stays the master.
	moveBudget = 2 * time.Second
	// leastBudget is the shortest take-over that is worth beginning.
	leastBudget = 100 * time.Millisecond
	// hungPatience is how long an old master that has let go may wait for the new one to take over. No cache takes writes meanwhile,
	// and an engine alone waits for ever.
	hungPatience = 500 * time.Millisecond
	// cutMost is how long the operator tries to cut the clients of the old master before a move counts as done without.
	cutMost = 10 * time.Second
	// awayPatience is how long the master may be silent, gonePatience how long it may have no pod, before another one takes its place.
	awayPatience = 5 * time.Second
	gonePatience = 2 * time.Second
	// briefPatience is how long the master may be silent in an emergency of MySQL: three looks or so, of which each waits for an answer and begins
	// soon after the one before.
	briefPatience = 1500 * time.Millisecond
	// emptyPatience is how long the master may be silent if no other cache holds a key, loadingPatience how long it may read its data from
	// a file then: one without data would have it throw away the only copy.
	emptyPatience   = 30 * time.Second
	loadingPatience = 2 * time.Minute
	// onlyCooldown is how long after a promotion of the cache alone the next one may follow.
	onlyCooldown = time.Minute
	// firstPatience is how long the first master waits for the cache of the active site.
	firstPatience = 20 * time.Second
	// homeSettled is how long the cache of the active site must have followed before the master moves there, homeRetry how long after
	// a move that failed.
	homeSettled = 5 * time.Second
	homeRetry   = 30 * time.Second
	// afterMySQL is how long after a planned failover of MySQL the cache follows. It does not move in the same moment: kube-proxy takes up
	// changes of endpoints once a second, and the second of the two would wait for that (docs/decisions/0026).
	afterMySQL = 2 * time.Second
	// staysPatience is how long after it the operator reports that the cache has not followed. It follows all the same once it can.
	staysPatience = 12 * time.Second
	// routed is how long after a move the Service names the new master: by then every node has the new endpoint, and a change of labels
	// moves nothing.
	routed = 1500 * time.Millisecond
	// leavingRetry is how long after a failed move away from a pod that is about to go the next one begins.
	leavingRetry = 5 * time.Second
	// followAgain is how long a replica may be without its master before it is told again to follow. Dragonfly's do not return to a master
	// that was restarted until they are told.
	followAgain = 5 * time.Second
	// syncedBytes is how much a replica may lack and count as caught up: no person notices how long a take-over waits for so little.
	// syncedChanges is the same for an engine that counts changes.
	syncedBytes   = 1 << 20
	syncedChanges = 1000
	// behindPatience is how long a replica may be further behind than that before the condition mentions it.
	behindPatience = 5 * time.Second
	// fullQuiet is how long a cache must have had a place for a client before it no longer counts as full.
	fullQuiet = 30 * time.Second
	// movingQuiet is how long a move may take before the condition mentions it.
	movingQuiet = 5 * time.Second
	// hurry is when to look again while no pod takes the traffic, restless while something is not as it should be.
	hurry    = 100 * time.Millisecond
	restless = 500 * time.Millisecond
)

// Decide says what to do about the caches of a group.
func Decide(s Snapshot, m Memory) Decision {
	d := Decision{Status: s.Status, Memory: remember(s, m)}
	switch {
	case s.Status.Transition != nil:
		d = moving(s, d)
	case s.Status.ActiveSite == "":
		d = first(s, d)
	default:
		d = steady(s, d)
	}
	d.Synced = synced(s, d.Memory)
	return d
}

// first finds the first master: the cache of the active site or, if that does not come, another. One that already has the
// traffic keeps it: then only status was lost.
func first(s Snapshot, d Decision) Decision {
	for _, p := range s.Pods {
		if p.Traffic && p.Master() && !p.Removed {
			return d.begin(s, Transition{Kind: v1alpha1.CacheMoveFirst, To: p.Site, Method: v1alpha1.CacheByFirstStart})
		}
	}
	if s.Home() == "" {
		return d.say(false, v1alpha1.ReasonCacheStarting, "the cache gets its master once a site of the group is active")
	}
	to := s.Pod(s.Home())
	if other, found := best(s); !eligible(to) && found && s.Now.Sub(d.Memory.Began) >= firstPatience {
		to = other
	}
	if !eligible(to) {
		return d.say(false, v1alpha1.ReasonCacheStarting, "the cache of %s does not answer yet%s", s.Home(), trouble(to)).within(restless)
	}
	return d.begin(s, Transition{Kind: v1alpha1.CacheMoveFirst, To: to.Site, Method: v1alpha1.CacheByFirstStart})
}

// mostBegun is how many moves one look may begin: one, and another if the first turns out to lead nowhere. Two caches of which neither can
// be the master would otherwise pass the role back and forth without end.
const mostBegun = 2

// begin starts a move, and says what to do first. From here on it is durable.
func (d Decision) begin(s Snapshot, t Transition) Decision {
	t.Epoch, t.StartedAt, t.ToRun = s.MySQL.Epoch, metav1.NewMicroTime(s.Now), s.Pod(t.To).Run
	if t.Method == "" {
		t.Method = v1alpha1.CacheByTakeOver
	}
	if isAnotherMaster(s, t) {
		t.Method, t.Reason = v1alpha1.CacheByPromotion, cmp.Or(t.Reason, v1alpha1.ReasonCacheMasterSilent)
	}
	d.Memory.HungSince = time.Time{}
	d.Status.Transition, d.Persist = &t, true
	s.Status = d.Status
	if d.begun++; d.begun > mostBegun {
		return d.quiet(s) // the next look continues: by then it is durable, and the caches may have changed
	}
	return moving(s, d)
}

// isAnotherMaster is true for a target that is a master already without having taken over from the old one: an engine that restarts may
// begin as one, and has nothing of what the old one holds.
func isAnotherMaster(s Snapshot, t Transition) bool {
	from, to := s.Pod(t.From), s.Pod(t.To)
	same := t.To == s.Status.ActiveSite && to.Run == s.Status.ActiveRun
	return to.Reachable && to.Role == v1alpha1.CacheMaster && !same && t.Kind != v1alpha1.CacheMoveFirst && t.From != t.To && from.Following != to.Site
}

// steady looks after the master while it need not move.
func steady(s Snapshot, d Decision) Decision {
	for _, rule := range rules {
		if t, due := rule(s, &d); due {
			return d.begin(s, t)
		}
	}
	return keep(s, d)
}

// keep has the master take the traffic, and all others follow it.
func keep(s Snapshot, d Decision) Decision {
	active := s.Pod(s.Status.ActiveSite)
	if s.refuses(active) {
		return keepFull(s, d, active)
	}
	if !active.Master() {
		away := d.Memory.of(active.Site).AwaySince
		d.Keep = s.Now.Sub(away) < awayPatience
		return d.say(false, v1alpha1.ReasonCacheNoMaster, "the cache of %s, which is the master, does not answer as one%s%s", active.Site, trouble(active), kept(s)).within(restless)
	}
	d = unroute(s, follow(s, traffic(s, d, active), active), active)
	replicas, following, missing := 0, 0, "no replica has caught up"
	for _, p := range s.Pods {
		if p.Site == active.Site || p.Removed {
			continue
		}
		if replicas++; p.TakesOver(active.Site) {
			following++
		}
		if p.Unlisted != "" {
			missing = "no replica can take over from it"
		}
	}
	if following < replicas {
		d = d.within(restless)
	}
	switch {
	case !d.Memory.of(active.Site).FullAt.IsZero():
		return d.tellFull(active).say(false, v1alpha1.ReasonCacheFull, "%s has the master of the cache, which has as many clients as it may have, and refuses more: %s%s",
			active.Site, endClients, kept(s))
	case s.Home() != "" && s.Home() != active.Site:
		return d.say(false, v1alpha1.ReasonCacheNotHome, "%s has the master of the cache, %s is active; it moves there once the cache there has caught up%s%s",
			active.Site, s.Home(), trouble(s.Pod(s.Home())), kept(s))
	case replicas > 0 && following == 0:
		return d.say(false, v1alpha1.ReasonCacheNoReplica, "%s has the master of the cache, and %s: losing it now would lose the sessions%s",
			active.Site, missing, firstTrouble(s, active.Site))
	}
	far, who := laggards(s, d.Memory, active)
	return d.say(true, v1alpha1.ReasonAsExpected, "%s has the master of the cache, and %d of %d replicas have caught up%s%s",
		active.Site, following-far, replicas, who, firstTrouble(s, active.Site))
}

// endClients is what people can do about a cache that is full.
const endClients = "end connections of applications, and look for one that opens ever more"

// keepFull leaves a master in its place that refuses the operator because it is full: it lives, serves those that it has, and may have what no
// other cache has. The operator tries again, and gets in as soon as a client leaves.
func keepFull(s Snapshot, d Decision, active Pod) Decision {
	if d.Keep = s.Now.Sub(d.Memory.of(active.Site).AwaySince) < awayPatience; !d.Keep {
		d = d.tellFull(active)
	}
	return d.say(false, v1alpha1.ReasonCacheFull, "the cache of %s, which is the master, refuses new clients, and the operator too%s. It stays the master: %s%s",
		active.Site, trouble(active), endClients, kept(s)).within(restless)
}

// tellFull reports once that the master is full.
func (d Decision) tellFull(active Pod) Decision {
	is := d.Memory.of(active.Site)
	if is.FullTold {
		return d
	}
	is.FullTold = true
	d.Memory.Sites[active.Site] = is
	return d.tell(v1alpha1.ReasonCacheFull, active.Site, "the cache of %s, which is the master, has as many clients as it may have, and refuses more: %s", active.Site, endClients)
}

// laggards are the replicas that a planned failover of MySQL would have to wait for, though they follow. One that lags for a moment is none: a
// burst of writes is no news.
func laggards(s Snapshot, m Memory, active Pod) (n int, who string) {
	for _, p := range s.Pods {
		if since := m.of(p.Site).BehindSince; !p.Removed && p.TakesOver(active.Site) && s.Now.Sub(orNow(since, s.Now)) >= behindPatience {
			n, who = n+1, who+"; "+p.Site+" follows and is far behind"
		}
	}
	return n, who
}

// traffic gives the traffic to the one pod that is to have it, and takes it from all others.
func traffic(s Snapshot, d Decision, to Pod) Decision {
	switch s.Route {
	case ByLabels, to.Site:
	case NoRoute:
		d = d.do(Route{ByLabels})
	default:
		d = d.do(Route{to.Site}) // a move that was given up left it elsewhere
	}
	for _, p := range s.Pods {
		if p.Traffic && p.Site != to.Site {
			d = d.do(TrafficOff{p.Site})
		}
	}
	if !to.Traffic || to.RoleLabel != v1alpha1.CacheMaster {
		d = d.do(TrafficOn{to.Site})
	}
	return d
}

// unroute has the Service follow the labels again once they have been right for a while. It cuts clients that reached the
// old master through a node that was late.
func unroute(s Snapshot, d Decision, active Pod) Decision {
	if s.Route == ByLabels || len(d.Actions) > 0 {
		return d
	}
	if left := routed - s.Now.Sub(active.TrafficOnAt); left > 0 {
		return d.within(left)
	}
	d = d.do(Route{ByLabels})
	if last := s.Status.Last; last != nil && last.To == active.Site {
		if from := s.Pod(last.From); from.Reachable && from.Role == v1alpha1.CacheReplica {
			d = d.do(CutClients{from.Site})
		}
	}
	return d
}

// follow makes replicas of all but the master. A second master with data served some clients: it cuts them, or they would continue
// to write what is thrown away.
func follow(s Snapshot, d Decision, master Pod) Decision {
	for _, p := range s.Pods {
		if p.Site == master.Site || !p.Exists {
			continue
		}
		second := p.Reachable && p.Role == v1alpha1.CacheMaster
		if second && (p.Keys > 0 || p.Traffic || p.RoleLabel == v1alpha1.CacheMaster) {
			d = d.tell(v1alpha1.ReasonCacheSecondMaster, p.Site, "the cache of %s was a master beside that of %s, with %d keys; it follows now, and its clients were cut", p.Site, master.Site, p.Keys)
		}
		is := d.Memory.of(p.Site)
		again := s.Now.Sub(orNow(is.ApartSince, s.Now)) >= followAgain
		if again {
			is.ApartSince = s.Now
			d.Memory.Sites[p.Site] = is
		}
		if p.Reachable && !p.Loading && (second || again || p.FailingOver || p.Following != master.Site) {
			d = d.do(Follow{p.Site, master.Site})
		}
		if p.RoleLabel != v1alpha1.CacheReplica {
			d = d.do(Label{p.Site, v1alpha1.CacheReplica})
		}
		if second {
			d = d.do(CutClients{p.Site})
		}
	}
	return d
}

// synced says of each site whether a planned failover of MySQL to it would keep the sessions.
func synced(s Snapshot, m Memory) []Synced {
	var out []Synced
	active := s.Pod(s.Status.ActiveSite)
	for _, p := range s.Pods {
		why := ""
		switch {
		case p.Site == active.Site:
			// There is nothing to wait for: it is the master.
		case s.refuses(active) && s.Status.Transition == nil:
			why = fmt.Sprintf("the cache of %s, which is the master, refuses new clients, and the operator too%s", active.Site, trouble(active))
		case s.Status.ActiveSite != "" && !active.Reachable && s.Status.Transition == nil && s.Now.Sub(orNow(m.of(active.Site).AwaySince, s.Now)) < awayPatience:
			why = fmt.Sprintf("the cache of %s, which is the master, does not answer%s", active.Site, trouble(active)) // for a moment, perhaps
		case !active.Reachable && s.Status.Transition == nil:
			// There is no master whose sessions could be kept.
		case s.Status.Transition != nil && s.Status.Transition.To != p.Site:
			why = "the master of the cache moves to " + s.Status.Transition.To
		case s.Status.Transition != nil:
		case !p.Reachable:
			why = fmt.Sprintf("the cache of %s does not answer%s", p.Site, trouble(p))
		case !p.Follows(active.Site):
			why = fmt.Sprintf("the cache of %s has not caught up with that of %s", p.Site, active.Site)
		case !p.TakesOver(active.Site):
			why = fmt.Sprintf("the cache of %s cannot take over from that of %s%s", p.Site, active.Site, trouble(p))
		case farBehind(active, p):
			why = fmt.Sprintf("the cache of %s is %d %s behind that of %s", p.Site, Behind(active, p), unit(active), active.Site)
		}
		out = append(out, Synced{p.Site, why == "", why})
	}
	return out
}

// unit is what Behind counts.
func unit(master Pod) string {
	if master.Offset == 0 {
		return "changes"
	}
	return "bytes"
}

func trouble(p Pod) string {
	switch {
	case p.Unlisted != "":
		return ": " + p.Unlisted
	case p.Trouble != "":
		return ": " + p.Trouble
	case !p.Exists:
		return ": it has no pod"
	}
	return ""
}

// lacks says of a replica that is not fit for a take-over what is missing.
func lacks(p Pod) string {
	if p.Unlisted != "" {
		return "cannot take over"
	}
	return "has not caught up"
}

func firstTrouble(s Snapshot, but string) string {
	for _, p := range s.Pods {
		if p.Site != but && !p.Removed && trouble(p) != "" {
			return fmt.Sprintf("; %s%s", p.Site, trouble(p))
		}
	}
	return ""
}

// kept says that no move begins, and why.
func kept(s Snapshot) string {
	if s.Policy.Held == "" {
		return ""
	}
	return "; the operator moves it nowhere: " + s.Policy.Held
}
