// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/memory"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// BehindTheSites is true if a site of the group has adopted an epoch that status does not know: status was restored from a
// backup, or edited. The active site is the open one that says that the highest epoch names it. Any other that accepts writes
// was opened by hand, and may lack what the named one has acknowledged. Volumes that are not part of the group may remember
// anything.
func BehindTheSites(s Snapshot) (writer string, behind bool) {
	highest := s.Status.Epoch
	var writers []string
	for _, site := range s.Sites {
		r := site.Sidecar.Report
		if !site.Sidecar.Answered || r.Epoch <= s.Status.Epoch || r.Epoch < highest || site.OtherVolume || site.Removed || s.Status.Epoch > 0 && !site.Provisioned {
			continue
		}
		if r.Epoch > highest {
			highest, writers = r.Epoch, nil
		}
		if r.Answered && r.Writable && r.ActiveSite == site.Name && site.MySQL.ReplicaHost == "" {
			writers = append(writers, site.Name)
		}
	}
	if len(writers) == 1 {
		writer = writers[0]
	}
	return writer, highest > s.Status.Epoch
}

// catchUp makes the site that is open under the highest epoch the active one, under the epoch after that: it stays open.
func catchUp(s Snapshot, d Decision, writer string) Decision {
	site, _ := s.Site(writer)
	d.Status.Epoch, d.Status.ActiveSite, d.Status.Transition = site.Sidecar.Report.Epoch+1, writer, nil
	d.Status.ActiveSince, d.Persist, d.Hold = s.Now, true, true
	d = d.noteRowsFound(s, site).noteEpoch(s, Transition{Kind: v1alpha1.FailoverBootstrap, To: writer, GatePassedAt: s.Now, ToExecuted: site.MySQL.Executed})
	return d.say(TopologyUninitialised, VerdictComplete, v1alpha1.ReasonStatusBehind, "%s is open under epoch %d, which status did not know", writer,
		site.Sidecar.Report.Epoch).then(Select{Site: writer}, Announce{}).within(time.Millisecond)
}

// bootstrap chooses the first active site. All candidates must have been seen: a group that was created again
// over retained volumes has a history that only the sites know.
func bootstrap(s Snapshot, d Decision) Decision {
	if s.Policy.AwaitsRestore {
		// This holds for an order too: a site opened now would be an empty database in place of a restored one.
		return d.say(TopologyUninitialised, VerdictWait, v1alpha1.ReasonRestoring,
			"a backup is being loaded, and nothing opens before it is there; see condition RestoreReady")
	}
	var best promotion.Candidate
	highest, unseen := int64(0), int64(0)
	for _, site := range s.Sites {
		if site.Role == v1alpha1.PrimaryCandidate && !site.Removed && !(site.Sidecar.Answered && site.MySQL.Direct) {
			if unseen = memory.UnseenEpochs; s.Order.To == "" {
				return awaitCandidate(s, d, site)
			}
		}
		highest = max(highest, site.Sidecar.Report.Epoch)
		c := promotion.Candidate{Site: site, All: site.All()}
		if mayBeFirst(s, site) && (best.Site.Name == "" || betterFirst(c, best) < 0) {
			best = c
		}
	}
	if best.Site.Name == "" {
		if kept, is := keptFirst(s); is {
			return d.say(TopologyUninitialised, VerdictBlocked, v1alpha1.ReasonKeptFenced, "%s is to be the first active site, and %s", kept.Name, promotion.IsKeptFenced(s, d.Memory, kept))
		}
		return d.say(TopologyUninitialised, VerdictBlocked, v1alpha1.ReasonNoFitCandidate, "the group has no primary-candidate on the volume that holds its data; bring one back on that volume, or make another site a primary-candidate in spec.sites")
	}
	if to, ordered := s.Site(s.Order.To); ordered {
		best = promotion.Candidate{Site: to, All: to.All()}
	}
	if stops, why := lacksSome(s, d, best); stops {
		return why
	}
	if why := promotion.IsUnescrowed(s, d.Memory, best.Site); why != "" {
		return d.say(TopologyUninitialised, VerdictWait, v1alpha1.ReasonKeyringNotEscrowed, "%s is to be the first active site, and %s", best.Site.Name, why).
			within(s.Policy.PollInterval / 4)
	}
	d = d.begin(s, v1alpha1.FailoverBootstrap, best.Site.Name, v1alpha1.ReasonFirstSite)
	d.Status.Epoch, d.Status.Transition.From = max(highest, s.Status.Epoch)+unseen+1, ""
	d.Status.Transition.FromExecuted = best.All // a site that takes its place before it is opened must hold that too
	return d.say(TopologyUninitialised, VerdictBootstrap, v1alpha1.ReasonFirstSite, "%s becomes active; the sites have seen epoch %d",
		best.Site.Name, highest)
}

// betterFirst ranks sites by transactions, then by tables with rows outside InnoDB: nothing else remembers which site has those rows (I7).
func betterFirst(a, b promotion.Candidate) int {
	return cmp.Or(cmp.Compare(b.All.Count(), a.All.Count()), cmp.Compare(rowsOf(b.Site), rowsOf(a.Site)), promotion.Better(a, b))
}

// mayBeFirst is true for a site that may become the first active one. In a restored group only the site with the backup may,
// whatever others hold; otherwise a person decides.
func mayBeFirst(s Snapshot, site Site) bool {
	if s.Policy.RestoredSite != "" && s.Policy.RestoredSite != site.Name {
		return false
	}
	return site.Role == v1alpha1.PrimaryCandidate && !site.Removed && !site.OtherVolume && !site.KeptFenced
}

// lacksSome stops a bootstrap if a site that answers has transactions or rows outside InnoDB that best lacks (I7). An order overrides it.
func lacksSome(s Snapshot, d Decision, best promotion.Candidate) (bool, Decision) {
	for _, site := range s.Sites {
		if s.Order.To != "" || !d.Memory.Of(site.Name).Diverged.IsEmpty() || site.Removed || site.OtherVolume {
			continue
		}
		var reason Reason
		var what string
		if lacks := site.All().Subtract(best.All); site.SQLAnswers() && !lacks.IsEmpty() {
			reason, what = v1alpha1.ReasonMissingTransactions, fmt.Sprintf("no site holds all transactions: %s has %s, which %s lacks", site.Name, lacks, best.Site.Name)
		} else if rowsOf(site) > rowsOf(best.Site) {
			reason, what = v1alpha1.ReasonRowsMissing, fmt.Sprintf("%s may have been cloned without rows outside InnoDB: it has them in %d tables, %s in %d",
				best.Site.Name, rowsOf(best.Site), site.Name, rowsOf(site))
		} else {
			continue
		}
		if site.KeptFenced {
			reason, what = v1alpha1.ReasonKeptFenced, fmt.Sprintf("%s; %s %s", what, site.Name, promotion.IsKeptFenced(s, d.Memory, site))
		}
		return true, d.say(TopologyUninitialised, VerdictBlocked, reason, "%s; a person must choose; %s", what, promotion.WayOut(s, d.Memory, best, promotion.Forcible(s, best.Site)))
	}
	return false, d
}

// firstPatience is how long a candidate of a group without an active site may take to come up before the operator tells people.
const firstPatience = 10 * time.Minute

// awaitCandidate waits for a candidate that was not seen: it may be the one that has the data.
func awaitCandidate(s Snapshot, d Decision, site Site) Decision {
	since := d.Memory.Of(site.Name).IndirectSince
	if since.IsZero() || s.Now.Sub(since) < firstPatience {
		return d.say(TopologyUninitialised, VerdictWait, v1alpha1.ReasonWaitingForSites,
			"waiting for MySQL of candidate %s before the first active site is chosen", site.Name)
	}
	return d.say(TopologyUninitialised, VerdictBlocked, v1alpha1.ReasonWaitingForSites, "MySQL of candidate %s does not come up, for more than %s: "+
		"which site has the data is not known without it; look at its pod and at the other conditions, and %s", site.Name, firstPatience, promotion.WithoutCandidate(s, d.Memory, ""))
}
