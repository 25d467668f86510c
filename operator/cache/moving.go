// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// moving continues a change of the master, from wherever the process that began it has left it.
func moving(s Snapshot, d Decision) Decision {
	t := *s.Status.Transition
	from, to := s.Pod(t.From), s.Pod(t.To)
	d = d.quiet(s)
	if next, is := redirected(s, t); is {
		return d.begin(s, next)
	}
	began := to.Reachable && t.ToRun != "" && to.Run != t.ToRun && t.Method != v1alpha1.CacheByRestart
	switch {
	case began:
		return targetRestarted(s, d, from, to)
	case to.Master() && !isStranger(s, from, to):
		return settle(s, d, from, to)
	case masterBeganAgain(s, from):
		return masterRestarted(s, d, from, to)
	case t.Method == v1alpha1.CacheByPromotion && eligible(to):
		return d.promote(s, t.Reason) // it was decided before that nothing can be handed over
	case isSilentMaster(s, d.Memory, to):
		return d // one lost answer must not give the role back to a master that lacks what was written here since
	case from.Reachable && from.Role == v1alpha1.CacheMaster && !from.Loading:
		return handOver(s, d, from, to)
	case from.Reachable && !from.Loading:
		return hung(s, d, from, to)
	}
	return without(s, d, to)
}

// quiet says nothing of a move in the condition, unless it takes long.
func (d Decision) quiet(s Snapshot) Decision {
	t := s.Status.Transition
	d.Keep = age(s, d.Memory) < movingQuiet
	return d.say(false, v1alpha1.ReasonCacheMoving, "the master of the cache moves to %s (%s)", t.To, t.Kind).within(hurry)
}

// age is how long a transition has been under way, as far as this process knows: it may have begun under a leader whose clock differs. A move
// that a new leader takes up gets its whole time again.
func age(s Snapshot, m Memory) time.Duration {
	mine, whole := s.Now.Sub(m.Began), s.Now.Sub(s.Status.Transition.StartedAt.Time)
	if whole < 0 || whole > mine {
		return mine
	}
	return whole
}

// budget is how long the old master of a transition has to hand over.
func budget(s Snapshot) time.Duration {
	if s.Status.Transition.Kind == v1alpha1.CacheMoveEmergency {
		return s.Policy.EmergencyBudget
	}
	return moveBudget
}

// redirected is for a MySQL that has gone elsewhere meanwhile: it was reverted, or failed over again. The cache that is the master by
// now hands over to the one there, if that can take over.
func redirected(s Snapshot, t Transition) (Transition, bool) {
	target := s.Pod(s.Home())
	if s.Home() == t.To || s.MySQL.Epoch == t.Epoch || !eligible(target) {
		return t, false
	}
	// What was lost on the way stays lost: the record of the move that goes on says so.
	next := Transition{Kind: v1alpha1.CacheMoveHome, From: t.From, To: target.Site, Reason: t.Reason}
	if to := s.Pod(t.To); to.Master() || target.Site == t.From {
		next.From = t.To
	}
	switch {
	case s.MySQL.Moving && s.MySQL.Kind == v1alpha1.FailoverPlanned:
		next.Kind = v1alpha1.CacheMovePlanned
	case s.MySQL.Moving:
		next.Kind = v1alpha1.CacheMoveEmergency
	}
	from := s.Pod(next.From)
	fit := target.TakesOver(from.Site) || next.Kind == v1alpha1.CacheMoveEmergency && target.Follows(from.Site)
	if from.Master() && !fit {
		// It would only be given up again, and a master beside this one has nothing of what this one holds. The way home is looked for once
		// this move is over.
		return t, false
	}
	return next, true
}

// isStranger is true for a target that was silent when the move began, has not been seen to follow since, and is a master by now. Nobody
// has handed over to it: an engine that restarts may begin as a master without a key.
func isStranger(s Snapshot, from, to Pod) bool {
	t := s.Status.Transition
	return t.Method == v1alpha1.CacheByTakeOver && t.ToRun == "" && from.Site != to.Site && to.Master()
}

// isSilentMaster is true for a target that was promoted and got the traffic, and has answered until a moment ago.
func isSilentMaster(s Snapshot, m Memory, to Pod) bool {
	return s.Status.Transition.Method == v1alpha1.CacheByPromotion && to.Traffic && to.Exists && !to.Reachable &&
		s.Now.Sub(orNow(m.of(to.Site).SilentSince, s.Now)) < awayPatience
}

// masterBeganAgain is true if the process of the old master ended in the middle of the move, before it handed over.
func masterBeganAgain(s Snapshot, from Pod) bool {
	t := s.Status.Transition
	return t.Method == v1alpha1.CacheByTakeOver && t.From == s.Status.ActiveSite && t.To != t.From &&
		from.Reachable && s.Status.ActiveRun != "" && from.Run != s.Status.ActiveRun
}

// masterRestarted is for an old master with another process than the one that held the keys. It can hand over nothing, and may have come
// back empty: if it stayed the master, the others would throw away what they hold. The target is the master, if it has data; otherwise the
// one that keeps the most, which may be the old one, with what it read from its volume.
func masterRestarted(s Snapshot, d Decision, from, to Pod) Decision {
	t := *s.Status.Transition
	if from.Loading && (!eligible(to) || to.Keys == 0) && age(s, d.Memory) < loadingPatience {
		return d // what it reads may be all that there is
	}
	if holder, found := best(s); found && (!eligible(to) || to.Keys == 0) {
		to = holder
	}
	next := Transition{Kind: t.Kind, From: t.From, To: to.Site, Method: v1alpha1.CacheByPromotion, Reason: v1alpha1.ReasonCacheMasterRestarted}
	if to.Site == from.Site {
		next.Method = v1alpha1.CacheByRestart
		d.failed(s, "the master of the cache stays on "+from.Site+" and does not move to "+t.To+" ("+string(t.Kind)+"): its process began again meanwhile, and no other cache has data")
	}
	return d.begin(s, next)
}

// settle ends a move whose target is the master: it takes the traffic, and the clients of the old one are cut. The transition is
// dropped only once all of that is done.
func settle(s Snapshot, d Decision, from, to Pod) Decision {
	t := *s.Status.Transition
	d = traffic(s, d, to)
	cut := from.Site == to.Site || !from.Reachable || !from.CutAt.Before(t.StartedAt.Time) || age(s, d.Memory) > cutMost
	// One that cannot follow, because it does not reach the new master, must not keep the move open: keep goes on trying.
	if from.Site != to.Site && from.Reachable && from.Role == v1alpha1.CacheMaster && age(s, d.Memory) <= cutMost {
		d = d.do(Follow{from.Site, to.Site})
	}
	if !cut {
		d = d.do(CutClients{from.Site})
	}
	if len(d.Actions) > 0 {
		return d.within(time.Millisecond)
	}
	return d.end(s, to)
}

// end drops the transition and records its outcome.
func (d Decision) end(s Snapshot, to Pod) Decision {
	t := *s.Status.Transition
	d.Persist = true
	if t.Reason == "" && to.Site == s.Status.ActiveSite && s.Status.ActiveRun != "" {
		t.Reason = v1alpha1.ReasonCacheMasterRestarted // the role is where it was, and the process that held the keys is not
	}
	changed := t.To != s.Status.ActiveSite || to.Run != s.Status.ActiveRun || s.Status.Transition.Reason != ""
	d.Status.ActiveSite, d.Status.ActiveRun, d.Status.Transition = to.Site, to.Run, nil
	d.Memory.HungSince = time.Time{}
	if changed {
		d = d.record(s, t, to)
	}
	s.Status = d.Status
	return keep(s, d).within(time.Millisecond)
}

// record says how the master changed.
func (d Decision) record(s Snapshot, t Transition, to Pod) Decision {
	p := Promotion{At: metav1.NewMicroTime(s.Now), Kind: t.Kind, Epoch: t.Epoch, From: t.From, To: t.To, Method: t.Method, SessionsPreserved: t.Reason == "", Reason: t.Reason}
	p.TookMillis = max(0, s.Now.Sub(t.StartedAt.Time).Milliseconds())
	if off := s.Pod(t.From).TrafficOffAt; off.After(t.StartedAt.Time) && to.TrafficOnAt.After(off) {
		p.At, p.TookMillis = metav1.NewMicroTime(to.TrafficOnAt), to.TrafficOnAt.Sub(off).Milliseconds()
	}
	p.Message = lossMessage(t)
	d.Status.Last = &p
	if t.Kind == v1alpha1.CacheMoveOnly && t.From != t.To {
		d.Memory.OnlyAt = s.Now
	}
	if p.SessionsPreserved {
		return d.tell(v1alpha1.ReasonCachePromoted, to.Site, "the cache of %s became the master (%s, %s), within %d ms and with every key", to.Site, t.Kind, t.Method, p.TookMillis)
	}
	return d.tell(v1alpha1.ReasonCacheSessionsLost, to.Site, "the cache of %s became the master (%s, %s), within %d ms: %s", to.Site, t.Kind, t.Method, p.TookMillis, p.Message)
}

// lossMessage says to people why sessions were lost.
func lossMessage(t Transition) string {
	return map[Reason]string{
		v1alpha1.ReasonCacheMasterSilent:    "the cache of " + t.From + " did not answer, so what that of " + t.To + " had not received is lost",
		v1alpha1.ReasonCacheMasterRestarted: "the process of the cache of " + t.From + " ended, and what no other cache held is lost",
		v1alpha1.ReasonCacheTargetRestarted: "the process of the cache that was to be the master ended, and what no other cache held is lost",
		v1alpha1.ReasonCacheTakeOverFailed:  "the cache of " + t.From + " did not hand over in time, so what that of " + t.To + " had not received is lost",
	}[t.Reason]
}

// handOver has the old master, which answers, hand over its role with every key.
func handOver(s Snapshot, d Decision, from, to Pod) Decision {
	fit, left := to.Follows(from.Site) && !to.Removed, budget(s)-age(s, d.Memory)
	emergency := s.Status.Transition.Kind == v1alpha1.CacheMoveEmergency
	fit = fit && (emergency || to.TakesOver(from.Site)) // the Service must not lead to one that could only fail; an emergency promotes it then
	d.Memory.HungSince = time.Time{}
	switch {
	case fit && left >= leastBudget:
		if t := *s.Status.Transition; t.ToRun == "" { // it was silent when the move began, and follows by now
			t.ToRun = to.Run
			d.Status.Transition, d.Persist = &t, true
		}
		// The Service first. An old master whose site is given up must not get writes for as long as nodes take to learn of it.
		d = d.do(Route{to.Site})
		if !emergency {
			d = d.do(Arrive{to.Site})
		}
		d = d.do(TakeOver{from.Site, to.Site, left}, CutClients{from.Site}).clear(s, from, to)
		return d.do(TrafficOn{to.Site}, Label{from.Site, v1alpha1.CacheReplica}).within(time.Millisecond)
	case fit && emergency:
		return d.promote(s, v1alpha1.ReasonCacheTakeOverFailed)
	case fit:
		return d.giveUp(s, from, to, "it did not take over within "+budget(s).String())
	case emergency && left >= leastBudget && to.Exists && !to.Removed:
		// The site is given up; its clients must write to it no longer than they have to.
		if s.Route != ByLabels {
			d = d.do(Route{ByLabels})
		}
		return d.do(TrafficOff{from.Site})
	}
	return d.giveUp(s, from, to, "it "+lacks(to)+trouble(to))
}

// giveUp leaves the role where it is: the old master answers, and nothing is lost if it stays the master. One that is handing over while
// the target is a master too is told to stop that: neither would ever take over.
func (d Decision) giveUp(s Snapshot, from, to Pod, why string) Decision {
	t := *s.Status.Transition
	message := "the master of the cache stays on " + from.Site + " and does not move to " + to.Site + " (" + string(t.Kind) + "): " + why
	d.failed(s, message)
	back := Transition{Kind: t.Kind, From: to.Site, To: from.Site}
	if from.Site != s.Status.ActiveSite || from.Run != s.Status.ActiveRun {
		back.Reason = t.Reason // it became the master in a move that had lost something and goes on: the record still says so
	}
	if to.Traffic && to.Reachable && t.ToRun != "" && to.Run != t.ToRun {
		back.Reason = v1alpha1.ReasonCacheTargetRestarted // clients have written to the process that ended
	}
	if to.Traffic && !to.Reachable && s.Status.Transition.Method == v1alpha1.CacheByPromotion && back.Reason == "" {
		back.Reason = v1alpha1.ReasonCacheMasterSilent // it was promoted, and what clients wrote to it is lost
	}
	if from.FailingOver && to.Role == v1alpha1.CacheMaster {
		back.Method = v1alpha1.CacheByPromotion
	}
	return d.begin(s, back)
}

// hung is for an old master that has let go while the new one has not taken over: no cache takes writes, and no engine ends that.
// Nothing was written since, so the one of the two that received all of it becomes the master.
func hung(s Snapshot, d Decision, from, to Pod) Decision {
	d.Memory.HungSince = orNow(d.Memory.HungSince, s.Now)
	t := *s.Status.Transition
	switch {
	case s.Now.Sub(d.Memory.HungSince) < hungPatience:
		return d
	case eligible(to) && to.Offset >= from.Offset && !isStranger(s, from, to):
		return d.promote(s, t.Reason)
	}
	d.failed(s, "the cache of "+to.Site+" did not take over from that of "+from.Site+", which has let go and is made the master again")
	back := Transition{Kind: t.Kind, From: to.Site, To: from.Site, Method: v1alpha1.CacheByPromotion, Reason: t.Reason}
	if back.Reason == "" && (from.Site != s.Status.ActiveSite || to.Traffic || to.TrafficOnAt.After(t.StartedAt.Time)) {
		// It was to give the role back to one that is no longer there, and may never have had the keys. Or the target did take over, got the
		// traffic, and went silent: what clients wrote to it is lost.
		back.Reason = v1alpha1.ReasonCacheMasterSilent
	}
	return d.begin(s, back)
}

// without is for an old master that does not answer.
func without(s Snapshot, d Decision, to Pod) Decision {
	t := *s.Status.Transition
	patient := t.Method == v1alpha1.CacheByTakeOver && t.Kind != v1alpha1.CacheMoveOnly
	if emergency := t.Kind == v1alpha1.CacheMoveEmergency; patient && age(s, d.Memory) < budget(s) && (!emergency || isBrief(s, d.Memory, s.Pod(t.From))) {
		return d // a lost answer must not cost the sessions, where MySQL failed alone or not at all
	}
	better, found := best(s)
	switch {
	case !found:
		d.Keep = false
		return d.say(false, v1alpha1.ReasonCacheNoMaster, "no cache answers that could be the master%s", trouble(to)).within(restless)
	case !eligible(to) || to.Keys == 0 && better.Keys > 0:
		if t.To = better.Site; t.Kind == v1alpha1.CacheMoveEmergency && t.To != s.Home() {
			d.Memory.FailedEpoch = s.MySQL.Epoch // it moves home once the cache there has caught up, without another emergency
		}
		if t.Reason == "" && t.Kind != v1alpha1.CacheMoveFirst {
			t.Method, t.Reason = v1alpha1.CacheByPromotion, v1alpha1.ReasonCacheMasterSilent // nobody hands over to this one
		}
		return d.begin(s, t)
	}
	return d.promote(s, v1alpha1.ReasonCacheMasterSilent)
}

// targetRestarted is for a target with another process than the one that was meant: it no longer replicates from any master.
func targetRestarted(s Snapshot, d Decision, from, to Pod) Decision {
	t := *s.Status.Transition
	if from.Master() {
		return d.giveUp(s, from, to, "its process began again meanwhile")
	}
	if other, found := best(s); found {
		t.To = other.Site
	}
	if t.Reason == "" && t.Kind != v1alpha1.CacheMoveFirst {
		t.Method, t.Reason = v1alpha1.CacheByPromotion, v1alpha1.ReasonCacheTargetRestarted
	}
	return d.begin(s, t)
}

// promote makes the target the master without the old one, which follows if it answers. It first makes durable that a
// promotion replaces the take-over, and why that loses keys.
func (d Decision) promote(s Snapshot, why Reason) Decision {
	t := *s.Status.Transition
	if t.Method == v1alpha1.CacheByTakeOver {
		t.Method, t.Reason = v1alpha1.CacheByPromotion, why
		d.Status.Transition, d.Persist = &t, true
	}
	from := s.Pod(t.From)
	d = d.do(Route{t.To}).clear(s, from, s.Pod(t.To))
	d = d.do(Promote{t.To}, TrafficOn{t.To})
	if from.Reachable && from.Site != t.To {
		d = d.do(Follow{from.Site, t.To}, CutClients{from.Site})
	}
	return d.within(time.Millisecond)
}

// clear takes the traffic from all but the new master: from the old one, and from an earlier one that still has it because MySQL moved
// again in the middle of a move.
func (d Decision) clear(s Snapshot, from, to Pod) Decision {
	for _, p := range s.Pods {
		if p.Site != to.Site && (p.Traffic || p.Site == from.Site && p.Exists) {
			d = d.do(TrafficOff{p.Site})
		}
	}
	return d
}
