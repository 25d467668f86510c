// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
	"github.com/mysql-mfg/mfg/operator/remedy"
)

// Decided is what was decided, as far as views show it.
type Decided struct {
	Status facts.Durable
	Memory facts.Memory
	// Healthy is true for a group whose active site is open.
	Healthy bool
	Reason  facts.Reason
	Message string
}

// Of says what each site is, for status, labels and metrics.
func Of(s facts.Snapshot, d Decided) []View {
	active, _ := s.Site(d.Status.ActiveSite)
	var all []View
	for _, site := range s.Sites {
		v := View{Name: site.Name, Role: v1alpha1.RoleReplica, Behind: behind(site, active)}
		v.State, v.Reason, v.Message = state(d, site, active)
		v.Healthy = v.State == v1alpha1.SitePrimary || v.State == v1alpha1.SiteReplica
		v.Serves = v.State == v1alpha1.SiteReplica || v.State == v1alpha1.SiteDetached && lostItsSource(s, d.Memory, site)
		if v.State == v1alpha1.SitePrimary {
			v.Role = v1alpha1.RolePrimary
		}
		v.Readable = v.Serves && !Lately(s, d.Memory.Of(site.Name).LaggedAt)
		// An eviction would take the only copy of a keyring whose escrow Secret is gone, or that is not in escrow yet.
		v.Protected = v.State == v1alpha1.SitePrimary || site.EscrowMissing || Lately(s, d.Memory.Of(site.Name).AloneAt) ||
			mayTakeOver(v) && Lately(s, d.Memory.Of(site.Name).LastCandidateAt) && !d.MovedAway(s, site.Name)
		v = remarked(s, d, v, site, active)
		v.KeptFenced, v.Filtered = keptFenced(s, v, site), d.Memory.Of(site.Name).Filtered
		// A removed site stays in sight until all is well without it: until then its pod could vouch for another site. A pod
		// whose object was deleted by force may still run, and vouches for any site that asks it (I4).
		v.Gone = site.Removed && !site.Pod.Exists && !site.Listed && d.Healthy
		if site.Provisioned && site.Busy == "" {
			// This holds for a site that does not answer now too: what is found stays found, even across a restart of the operator (I10).
			v.Errant = d.Memory.Of(site.Name).Diverged
		}
		all = append(all, v)
	}
	return all
}

// remarked adds what else there is to say about the site: the last reason that holds is the one that is shown.
func remarked(s facts.Snapshot, d Decided, v View, site, active facts.Site) View {
	if reason, message := outsideInnoDB(s.Group, site, active); reason != "" && v.Healthy {
		v.Reason, v.Message = reason, message
	}
	if why := promotion.IsFiltered(s, d.Memory, site); why != "" && v.Healthy && site.Name != active.Name {
		v.Reason = v1alpha1.ReasonReplicationFiltered
		v.Message = fmt.Sprintf("%s. It is not promoted unless you order it; to repair it: %s", why, remedy.CloneAgain(s.Group, site.Name)[0].Command)
	}
	if why := promotion.IsVolumeFailing(s, d.Memory, site); why != "" && v.State == v1alpha1.SiteReplica {
		v.Reason, v.Message = v1alpha1.ReasonVolumeTakesNoWrites, why+"; it does not take over until it can"
	}
	if reason, message := earlierPod(site); reason != "" && v.Healthy {
		v.Reason, v.Message = reason, message
	}
	if reason, message := readersKeptOut(site, v); reason != "" {
		v.Readable, v.Reason, v.Message = false, reason, message
	}
	if reason, message := heldBack(s, d.Memory, site, v); reason != "" {
		v.Reason, v.Message = reason, message
	}
	return v
}

// markStands is how long a label outlives its cause. A lag that comes and goes around a limit, as it does under load, would
// otherwise change labels, Services and budgets with every poll. Pods are protected and readers kept away at once, except while no
// site is heard (Unheard).
const markStands = 10 * time.Second

// Lately is true if something was so in this poll or shortly before.
func Lately(s facts.Snapshot, at time.Time) bool {
	return !at.IsZero() && s.Now.Sub(at) < markStands
}

// unheardMost is how long labels outlive the last word of all sites, whatever the poll interval is: a replica of unknown lag must
// not be read from (spec.maxReadLag).
const unheardMost = 10 * time.Second

// Unheard is true while all sites of the group have been silent for less than spec.failover.threshold polls, and not for long.
// Then the cause is more likely the operator or its node than all sites at once: nothing was learnt about them, so their
// labels stay. An operator that stood still would otherwise write to all pods of all groups, and again once it hears them.
func Unheard(s facts.Snapshot, m facts.Memory) bool {
	for _, site := range s.Sites {
		since := m.Of(site.Name).DownSince
		if site.Reachable() || m.Of(site.Name).SilentPolls >= s.Policy.Threshold || since.IsZero() || s.Now.Sub(since) > unheardMost {
			return false
		}
	}
	return true
}

// mayTakeOver is true for a site in one of the states in which candidates are, even while no site is open.
func mayTakeOver(v View) bool {
	return v.State == v1alpha1.SiteReplica || v.State == v1alpha1.SiteFenced || v.State == v1alpha1.SiteDetached
}

// lostItsSource is true for a replica that followed the active site for as long as that was seen open. Its data is no older than that
// of any other site that answers, so it still serves reads unless their lag has a limit. The data of one that was detached before may
// be of any age.
func lostItsSource(s facts.Snapshot, m facts.Memory, site facts.Site) bool {
	active, _ := s.Site(s.Status.ActiveSite)
	followed := m.Of(site.Name).FollowedAt
	return !active.Writable() && !followed.IsZero() && m.OpenAt.Sub(followed) < markStands
}

// movedAwayMost is how long a drain may continue after an operator restarted in the middle of it.
const movedAwayMost = 10 * time.Minute

// MovedAway is true for a site that is about to go and gave its role away for that: the person who drains its node has
// seen the role move, and must not wait for a candidate that the group may not have.
func (d Decided) MovedAway(s facts.Snapshot, name string) bool {
	site, _ := s.Site(name)
	p := d.Status.Planned
	since := d.Memory.Of(name).LeavingSince
	if p == nil || since.IsZero() || since.After(p.FinishedAt) && s.Age(p.FinishedAt) > movedAwayMost {
		return false // it is about to go again, and has given nothing away for that
	}
	return site.Leaving != "" && p.From == name && p.Cause == v1alpha1.ReasonSiteLeaving && p.Phase == v1alpha1.PlannedSucceeded
}

// heldBack says why the eviction of a replica that is about to go is refused, and how it can go; empty if it is not refused.
func heldBack(s facts.Snapshot, m facts.Memory, site facts.Site, v View) (reason facts.Reason, message string) {
	if why := promotion.IsUnescrowed(s, m, site); why != "" && site.Leaving != "" && site.Leaving != facts.LeavingForUpdate {
		return v1alpha1.ReasonNotEscrowed, fmt.Sprintf("is about to go (%s), and its eviction is refused: %s, so its pod has the only copy", site.Leaving, why)
	}
	if !mayTakeOver(v) || !v.Protected || site.Leaving == "" || site.Leaving == facts.LeavingForUpdate {
		return "", ""
	}
	if site.EscrowMissing {
		return v1alpha1.ReasonEscrowMissing, fmt.Sprintf("is about to go (%s), and its eviction is refused: its pod has the only copy of its keyring, whose escrow Secret is gone", site.Leaving)
	}
	if v.State != v1alpha1.SiteReplica {
		return v1alpha1.ReasonOnlyCandidate, fmt.Sprintf("is about to go (%s), and its eviction is refused until a site is open: it is the one to take over", site.Leaving)
	}
	return v1alpha1.ReasonOnlyCandidate, fmt.Sprintf("is about to go (%s), and its eviction is refused while no other candidate has caught up: "+
		"bring one up, or uncordon the node of another; to let it go without, delete its pod", site.Leaving)
}

// readersKeptOut says why a replica that serves lets no reader in, or "". Its own sidecar keeps them out (decision 0011).
func readersKeptOut(site facts.Site, v View) (reason facts.Reason, message string) {
	switch {
	case !v.Serves || !site.MySQL.OfflineMode:
		return "", ""
	case site.Sidecar.Report.PreparedXA > 0:
		return v1alpha1.ReasonPreparedXA, fmt.Sprintf("keeps readers out: an XA transaction is prepared (%d), which anybody could commit here; "+
			"end it on the active site with XA COMMIT or XA ROLLBACK", site.Sidecar.Report.PreparedXA)
	}
	return v1alpha1.ReasonReadersKeptOut, "keeps readers out: offline_mode is ON, as it is for a moment after a start and after prepared XA transactions"
}

// keptFenced says what it means now for a site that a person keeps it fenced. The active site stays open until it closes (I29).
func keptFenced(s facts.Snapshot, v View, site facts.Site) string {
	switch {
	case !site.KeptFenced:
		return ""
	case v.State == v1alpha1.SitePrimary:
		return "is the active site and stays open, although a person wants it kept fenced: once it closes it is not opened again; to fence it now, move the role first: " + remedy.MoveTo(s.Group, "SITE")
	}
	return "is kept fenced by a person and never takes over; to end that: " + remedy.EndFence(s.Group, site.Name)
}

func behind(site, active facts.Site) int64 {
	if !site.SQLAnswers() || !active.SQLAnswers() {
		return -1
	}
	return active.MySQL.Executed.Subtract(site.MySQL.Executed).Count()
}

func state(d Decided, site, active facts.Site) (v1alpha1.SiteState, facts.Reason, string) {
	errant := d.Memory.Of(site.Name).Diverged
	switch {
	case site.Removed && site.Name != d.Status.ActiveSite:
		return v1alpha1.SiteDetached, v1alpha1.ReasonRemoved, "left the specification; removed when no pod of another site asks it any more, and kept in sight until its own is gone"
	case site.Busy != "":
		return v1alpha1.SiteCloning, facts.Reason(site.Busy), ""
	case site.Impossible:
		return v1alpha1.SiteUnreachable, v1alpha1.ReasonImpossibleEpoch, "its sidecar reports an epoch that this group can never have reached, and is not believed: " +
			"the report is forged, or what is on its volume damaged; look who answers under the pod's address, or delete its volume claim and pod to have it cloned again"
	case !site.Provisioned && site.Name != d.Status.ActiveSite:
		return v1alpha1.SitePending, v1alpha1.ReasonNotProvisioned, "waits for its copy of the active site's data"
	case !site.Reachable():
		return v1alpha1.SiteUnreachable, v1alpha1.ReasonNoAnswer, "neither the sidecar nor MySQL answers"
	case !site.SQLAnswers():
		return v1alpha1.SiteUnreachable, v1alpha1.ReasonMySQLDown, "the sidecar answers, MySQL does not"
	case site.Writable() && site.Name == d.Status.ActiveSite && !fencingStep(d):
		return v1alpha1.SitePrimary, "", ""
	case site.Writable():
		return v1alpha1.SiteFenced, v1alpha1.ReasonForeignWriter, "is writable although it is not active; it is being fenced"
	case !errant.IsEmpty():
		return v1alpha1.SiteDiverged, v1alpha1.ReasonErrantTransactions, divergedMessage(errant, active.Name)
	case site.Name == d.Status.ActiveSite:
		return v1alpha1.SiteFenced, d.Reason, d.Message
	case active.Name != "" && site.Follows(active):
		return v1alpha1.SiteReplica, "", ""
	}
	return v1alpha1.SiteDetached, v1alpha1.ReasonNotReplicating, promotion.DetachedMessage(site)
}

func fencingStep(d Decided) bool {
	return d.Status.Transition != nil && d.Status.Transition.Step == v1alpha1.TransitionFencing
}

func divergedMessage(errant gtid.Set, active string) string {
	return fmt.Sprintf("has %s that %s lacks (%s); it stays fenced and detached until a person decides", gtid.Transactions(errant.Count()), active, errant)
}

// View is what one site is.
type View struct {
	Name    string
	State   v1alpha1.SiteState
	Reason  facts.Reason
	Message string
	Errant  gtid.Set
	// Filtered is the server_uuid with which it was seen with a replication filter; empty normally.
	Filtered string
	// Behind counts the active site's transactions that this site has not applied; negative when unknown.
	Behind  int64
	Role    string
	Healthy bool
	// Serves is true for a replica whose data is as good as any replica's now: it follows, or lost the source that all lost.
	Serves bool
	// Readable is true for a replica that takes reads; Protected for a site whose pod must not be evicted now.
	Readable, Protected bool
	// KeptFenced is what there is to say about a site that a person keeps fenced; empty for others.
	KeptFenced string
	// Gone is true for a site that left the spec and needs no more looking after.
	Gone bool
}

// earlierPod says that another pod may be left of a site whose pod answers, and what to do; empty normally.
func earlierPod(site facts.Site) (reason facts.Reason, message string) {
	r, more := site.Beside(site.Pod.UID)
	if !more || !site.Sidecar.Answered {
		return "", ""
	}
	return v1alpha1.ReasonEarlierPodMayRun, fmt.Sprintf("%s: what this one says proves nothing of it. It counts as ended once its node is Ready for %s, "+
		"is taken out of the cluster, or is tainted %s because it is down", r, memory.RunsKept, v1alpha1.OutOfServiceTaint)
}

// outsideInnoDB says that a site has rows which no clone brings, or that a replica lacks them; empty if it is not so, or not known:
// a sidecar of an older version does not look, and a silent one says nothing about now.
func outsideInnoDB(g facts.Group, site, active facts.Site) (facts.Reason, string) {
	mine, theirs := site.Sidecar.Report.Engines, active.Sidecar.Report.Engines
	if !site.Sidecar.Answered || mine == nil {
		return "", ""
	}
	if site.Name == active.Name && mine.WithRows > 0 {
		return v1alpha1.ReasonRowsNotCloned, fmt.Sprintf("has %d tables with rows outside InnoDB (MyISAM, CSV, ARCHIVE), which a clone makes empty: no site is cloned from it without an order that gives them up; "+
			"ALTER TABLE each ... ENGINE=InnoDB (%s)", mine.WithRows, g.Command("mysql", site.Name, ""))
	}
	if site.Name != active.Name && active.Sidecar.Answered && theirs != nil && mine.Tables > 0 && mine.WithRows < theirs.WithRows {
		return v1alpha1.ReasonRowsMissing, fmt.Sprintf("has rows in %d tables outside InnoDB, %s in %d: it was cloned without them, and takes over by order only; "+
			"ALTER TABLE each ... ENGINE=InnoDB on %s (%s), and then copy this site again: the ALTER alone brings it no rows", mine.WithRows, active.Name, theirs.WithRows, active.Name, g.Command("mysql", active.Name, ""))
	}
	return "", ""
}
