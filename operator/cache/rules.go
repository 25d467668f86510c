// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// rules are the causes that replace a settled master, the most urgent first. Each may add to the decision what it found.
var rules = []func(Snapshot, *Decision) (Transition, bool){restarted, moved, away, requested, leaving, planned, home}

// restarted is for a master with another process than the one that took the traffic. If it came back empty, its replicas would
// throw away what they hold, so the one that holds the most takes its place; if no other holds more, it stays. Clients may have written
// a little by then, so empty means less than half of what another holds. A replica that followed the process that ended holds more too:
// what the master has read from its volume is up to a minute old, and older if its last snapshots failed.
func restarted(s Snapshot, d *Decision) (Transition, bool) {
	active := s.Pod(s.Status.ActiveSite)
	if !active.Reachable || active.Loading || s.Status.ActiveRun == "" || active.Run == s.Status.ActiveRun {
		return Transition{}, false
	}
	t := Transition{Kind: v1alpha1.CacheMoveOnly, From: active.Site, To: active.Site, Method: v1alpha1.CacheByRestart, Reason: v1alpha1.ReasonCacheMasterRestarted}
	fuller := slices.DeleteFunc(slices.Clone(s.Pods), func(p Pod) bool {
		newer := p.Keys > 0 && d.Memory.of(p.Site).HeldRun == s.Status.ActiveRun
		return !eligible(p) || !newer && p.Keys <= 2*active.Keys
	})
	if len(fuller) > 0 && s.Policy.Held == "" {
		holder := slices.MaxFunc(fuller, func(a, b Pod) int { return rank(s, a, b) })
		t.To, t.Method = holder.Site, v1alpha1.CacheByPromotion
	}
	return t, true
}

// moved is for a MySQL whose role is moving to another site in an emergency: the site of the master is given up.
func moved(s Snapshot, d *Decision) (Transition, bool) {
	active, target := s.Pod(s.Status.ActiveSite), s.Pod(s.Home())
	if !s.MySQL.Moving || s.MySQL.Kind == v1alpha1.FailoverPlanned || s.Home() == "" || s.Home() == active.Site || d.Memory.FailedEpoch == s.MySQL.Epoch {
		return Transition{}, false
	}
	if s.MySQL.From != "" && s.MySQL.From != active.Site && active.Master() {
		return Transition{}, false // it is well, and on no site that MySQL leaves: home moves it, with every key
	}
	t := Transition{Kind: v1alpha1.CacheMoveEmergency, From: active.Site, To: target.Site}
	switch brief := isBrief(s, d.Memory, active); {
	case !active.Reachable && !brief:
		return instead(s, d, t), true
	case target.Exists && !target.Removed && !target.Master(): // another master has nothing of this one; it follows first
		return t, true
	case brief:
		*d = d.within(hurry)
		return Transition{}, false // there is nobody whom it could hand over to, and it may answer in a moment
	}
	d.Memory.FailedEpoch = s.MySQL.Epoch
	stays(d, active, target)
	return Transition{}, false
}

// planned is for a MySQL whose role has moved by plan: the cache follows as soon as that move is over and the cache there has caught up. One
// lost answer must not end that: in a paused group, nothing else would move it.
func planned(s Snapshot, d *Decision) (Transition, bool) {
	active, target := s.Pod(s.Status.ActiveSite), s.Pod(s.Home())
	if s.MySQL.Kind != v1alpha1.FailoverPlanned || s.Home() == "" || s.Home() == active.Site || target.Leaving != "" {
		return Transition{}, false
	}
	if last := s.Status.Last; last != nil && last.Epoch == s.MySQL.Epoch && last.From != last.To {
		return Transition{}, false // it has followed, and has moved elsewhere since for another reason
	}
	if d.Memory.FailedEpoch == s.MySQL.Epoch && s.Now.Sub(d.Memory.FailedAt) < homeRetry {
		return Transition{}, false // each try takes the traffic away for a moment
	}
	still := s.Now.Sub(orNow(d.Memory.StillSince, s.Now))
	if s.MySQL.Moving || still < afterMySQL {
		d.Keep = true // it follows in a moment, which is no news; keep reports a master that does not answer
		*d = d.within(max(afterMySQL-still, hurry))
		return Transition{}, false
	}
	if active.Master() && target.TakesOver(active.Site) {
		return Transition{Kind: v1alpha1.CacheMovePlanned, From: active.Site, To: target.Site}, true
	}
	if active.Reachable && still >= staysPatience && d.Memory.StaysEpoch != s.MySQL.Epoch {
		d.Memory.StaysEpoch = s.MySQL.Epoch
		stays(d, active, target)
	}
	return Transition{}, false
}

// isBrief is true for a cache that has a pod and has missed only a few answers. A site that is lost altogether has missed more by the time that
// MySQL gives it up.
func isBrief(s Snapshot, m Memory, p Pod) bool {
	return p.Exists && !p.Reachable && s.Now.Sub(orNow(m.of(p.Site).SilentSince, s.Now)) < briefPatience
}

// stays reports that the sessions stay where they are. They move once the cache of the active site has caught up.
func stays(d *Decision, active, target Pod) {
	*d = d.tell(v1alpha1.ReasonCacheMoveFailed, active.Site, "%s", fmt.Sprintf("MySQL moves to %s, and the master of the cache stays on %s: the cache of %s %s%s", target.Site, active.Site, target.Site, lacks(target), trouble(target)))
}

// instead has the target replace a master that does not answer or, if the target has no data and another cache has, that one.
func instead(s Snapshot, d *Decision, t Transition) Transition {
	to := s.Pod(t.To)
	if better, found := best(s); found && (!eligible(to) || to.Keys == 0 && better.Keys > 0) {
		to, d.Memory.FailedEpoch = better, s.MySQL.Epoch
	}
	if eligible(to) {
		t.To, t.Method, t.Reason = to.Site, v1alpha1.CacheByPromotion, v1alpha1.ReasonCacheMasterSilent
	}
	return t
}

// away is for a master that is gone, silent or no longer a master although the operator did not move it.
func away(s Snapshot, d *Decision) (Transition, bool) {
	active := s.Pod(s.Status.ActiveSite)
	patience := awayPatience
	if !active.Exists || active.Reachable && !active.Loading {
		patience = gonePatience
	}
	since := d.Memory.of(active.Site).MissedSince
	lately := d.Memory.OnlyAt
	if last := s.Status.Last; last != nil && last.Kind == v1alpha1.CacheMoveOnly && last.From != last.To && last.At.After(lately) && !last.At.After(s.Now) {
		lately = last.At.Time
	}
	switch {
	case active.Master() || s.refuses(active) || s.Now.Sub(orNow(since, s.Now)) < patience || s.Policy.Held != "":
		return Transition{}, false
	case s.Now.Sub(lately) < onlyCooldown:
		return Transition{}, false // two that fail in turn would otherwise pass the role back and forth
	}
	to, found := best(s)
	if !found || s.Now.Sub(orNow(since, s.Now)) < patienceForNone(active, to) {
		return Transition{}, false
	}
	t := Transition{Kind: v1alpha1.CacheMoveOnly, From: active.Site, To: to.Site, Method: v1alpha1.CacheByPromotion, Reason: v1alpha1.ReasonCacheMasterSilent}
	switch {
	case to.Site == active.Site:
		t.Reason = "" // it lost the role and nothing else
	case to.Master() && d.Memory.of(to.Site).HeldRun == s.Status.ActiveRun:
		t.Method, t.Reason = v1alpha1.CacheByTakeOver, "" // another client moved it there, unless it follows another one: see begin
	}
	return t, true
}

// patienceForNone is how long a master that exists is waited for because the best other cache has no data: the master may hold the only
// copy, and would throw it away to follow.
func patienceForNone(active, best Pod) time.Duration {
	switch {
	case best.Keys > 0 || best.Site == active.Site || !active.Exists:
		return 0
	case active.Reachable && !active.Loading:
		return 0 // it answers and is no master: it lost the role to somebody else, and has no data to keep
	case active.Loading:
		return loadingPatience
	}
	return emptyPatience
}

// requested is for a move that a person asks for.
func requested(s Snapshot, d *Decision) (Transition, bool) {
	if s.Request == nil || s.MySQL.Moving {
		return Transition{}, false
	}
	active, to := s.Pod(s.Status.ActiveSite), s.Pod(s.Request.Site)
	holder := active
	if other := s.Pod(active.Following); to.Site == active.Site && other.Master() {
		holder = other // another client moved the role there, and it is to come back
	}
	known := slices.ContainsFunc(s.Pods, func(p Pod) bool { return p.Site == to.Site && !p.Removed })
	t := Transition{Kind: v1alpha1.CacheMoveRequested, From: holder.Site, To: to.Site}
	switch {
	case !known:
		*d = d.answer(s, false, false, v1alpha1.ReasonUnknownSite, fmt.Sprintf("the group has no site %q", to.Site))
	case to.Site == active.Site && active.Master():
		*d = d.answer(s, true, false, "", fmt.Sprintf("%s has the master of the cache", to.Site))
	case d.Memory.Failed != nil:
		d.Answer = d.Memory.Failed // the write of it failed; to begin again would take the traffic away time after time
	case holder.Master() && !to.Follows(holder.Site):
		*d = d.answer(s, false, false, v1alpha1.ReasonCacheTargetNotSynced,
			fmt.Sprintf("nothing was changed: the cache of %s has not caught up with that of %s%s; ask again once it has", to.Site, holder.Site, trouble(to)))
	case holder.Master() && !to.TakesOver(holder.Site):
		*d = d.answer(s, false, false, v1alpha1.ReasonCacheTargetNotSynced, fmt.Sprintf("nothing was changed: the cache of %s cannot take over from that of %s%s", to.Site, holder.Site, trouble(to)))
	case !eligible(to):
		*d = d.answer(s, false, false, v1alpha1.ReasonCacheTargetNotSynced, fmt.Sprintf("nothing was changed: the cache of %s does not answer%s", to.Site, trouble(to)))
	case s.refuses(holder):
		*d = d.answer(s, false, false, v1alpha1.ReasonCacheFull, fmt.Sprintf("nothing was changed: the cache of %s, which is the master, refuses new clients, and the operator too%s: %s; then ask again",
			holder.Site, trouble(holder), endClients))
	case !holder.Reachable && s.Now.Sub(orNow(d.Memory.of(holder.Site).MissedSince, s.Now)) < awayPatience:
		return Transition{}, false // one lost answer must not cost the sessions: the question stays open
	case holder.Site == to.Site: // it lost the role to no other cache, or hangs in handing it over: none can give it
		t.Method = v1alpha1.CacheByPromotion
		return t, true
	default:
		return t, true
	}
	return Transition{}, false
}

// leaving is for a master whose pod is about to go.
func leaving(s Snapshot, d *Decision) (Transition, bool) {
	active := s.Pod(s.Status.ActiveSite)
	if active.Leaving == "" && !active.Removed || !active.Master() || s.MySQL.Moving || s.Now.Sub(d.Memory.FailedAt) < leavingRetry {
		return Transition{}, false
	}
	var fit []Pod
	for _, p := range s.Pods {
		if p.Leaving == "" && !p.Removed && p.TakesOver(active.Site) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return Transition{}, false
	}
	to := slices.MaxFunc(fit, func(a, b Pod) int { return rank(s, a, b) })
	if i := slices.IndexFunc(fit, func(p Pod) bool { return p.Site == s.Home() }); i >= 0 {
		to = fit[i] // each of them takes over with every key, and from another one it would have to move once more
	}
	if still := s.Now.Sub(orNow(d.Memory.StillSince, s.Now)); s.MySQL.Kind == v1alpha1.FailoverPlanned && still < afterMySQL {
		*d = d.within(afterMySQL - still)
		return Transition{}, false // MySQL has moved this moment: see afterMySQL
	}
	return Transition{Kind: v1alpha1.CacheMoveRollout, From: active.Site, To: to.Site}, true
}

// home is for a master that is not at the active site, when the cache there has caught up.
func home(s Snapshot, d *Decision) (Transition, bool) {
	active, to := s.Pod(s.Status.ActiveSite), s.Pod(s.Home())
	last, linked := s.Status.Last, d.Memory.of(to.Site).LinkedSince
	switch {
	case s.MySQL.Moving || s.Policy.Held != "":
		return Transition{}, false
	case !active.Master() || !to.TakesOver(active.Site) || to.Leaving != "" || to.Removed || s.Now.Sub(orNow(linked, s.Now)) < homeSettled:
		return Transition{}, false
	case s.Now.Sub(orNow(d.Memory.StillSince, s.Now)) < homeSettled:
		return Transition{}, false // another move may follow, and endpoints of MySQL change for some seconds
	case s.Now.Sub(d.Memory.FailedAt) < homeRetry:
		return Transition{}, false
	case last != nil && last.Kind == v1alpha1.CacheMoveRequested && last.To == active.Site && last.Epoch == s.MySQL.Epoch:
		return Transition{}, false // a person put it there; it follows MySQL again when that moves
	}
	return Transition{Kind: v1alpha1.CacheMoveHome, From: active.Site, To: to.Site}, true
}

// failed notes a move that was given up, and reports it once. The person who asked for it gets the answer now: once the transition is
// over, nothing tells what came of the request.
func (d *Decision) failed(s Snapshot, message string) {
	d.Memory.FailedAt, d.Memory.FailedEpoch = s.Now, s.MySQL.Epoch
	*d = d.tell(v1alpha1.ReasonCacheMoveFailed, s.Status.ActiveSite, "%s", message)
	if t := s.Status.Transition; t.Kind == v1alpha1.CacheMoveRequested && s.Request != nil && s.Request.Site == t.To {
		*d = d.answer(s, false, true, v1alpha1.ReasonCacheMoveFailed, message)
		d.Memory.Failed = d.Answer
	}
}

// eligible is true for a cache that can be made the master.
func eligible(p Pod) bool { return p.Reachable && !p.Loading && !p.Removed }

// best is the cache that keeps the most: one with data before one without, a master before a replica, then the one that received the most.
func best(s Snapshot) (Pod, bool) {
	fit := slices.DeleteFunc(slices.Clone(s.Pods), func(p Pod) bool { return !eligible(p) })
	if len(fit) == 0 {
		return Pod{}, false
	}
	return slices.MaxFunc(fit, func(a, b Pod) int { return rank(s, a, b) }), true
}

func rank(s Snapshot, a, b Pod) int {
	for _, better := range []func(Pod) int64{
		func(p Pod) int64 { return number(p.Keys > 0) },
		func(p Pod) int64 { return number(p.Master()) },
		func(p Pod) int64 { return p.Offset },
		func(p Pod) int64 { return number(p.Leaving == "") },
		func(p Pod) int64 { return number(p.Site == s.Home()) },
	} {
		if x, y := better(a), better(b); x != y {
			return int(min(max(x-y, -1), 1))
		}
	}
	return 0
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
