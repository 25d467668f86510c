// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/lineage"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// returned handles an active site that answers but is read-only: it restarted, or fenced itself when it was isolated.
func returned(s Snapshot, d Decision, a Site, old Memory) Decision {
	if a.KeptFenced {
		return keptFenced(s, d, a)
	}
	if s.Order.To != "" {
		return reopened(s, d, a) // the order names this site: a person accepted what it lacks, and all else is checked of every order
	}
	if lacks, where := lineage.Missing(s, d.Memory, a); !lacks.IsEmpty() {
		d = due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
		d.Message = fmt.Sprintf("%s came back without %s, which %s has: %s", a.Name, lacks, where, d.Message)
		return d
	}
	if known := old.Of(a.Name).Executed; !known.Subtract(a.MySQL.Executed).IsEmpty() || a.OtherVolume {
		// What it had is gone: its volume was replaced or rolled back. If it were opened now, it would be a copy from the
		// past. A site that was replaced before is compared with what it had.
		d.Memory.At(a.Name).Executed = known
		lineage.MarkUnsettled(s, &d.Memory)
		d = due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
		d.Message = fmt.Sprintf("%s %s: %s", a.Name, lostItself(a, known), d.Message)
		return d
	}
	if promotion.IsBusy(s, d.Memory, a) != "" {
		return due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteBehind)
	}
	return reopened(s, d, a)
}

// lostItself says what an active site that came back has lost.
func lostItself(a Site, known gtid.Set) string {
	if a.OtherVolume {
		return "is on another volume than the one that holds its data"
	}
	return fmt.Sprintf("came back without %s, which it had", known.Subtract(a.MySQL.Executed))
}

// reopened opens the active site again, under the same epoch.
func reopened(s Snapshot, d Decision, a Site) Decision {
	if r, may := a.WritesBeside(a.Pod.UID); may {
		return anew(s, d, a, r)
	}
	if d.Memory.ReopenSince.IsZero() {
		d.Memory.ReopenSince = s.Now
	}
	stuck := late(s, d.Memory.ReopenSince)
	if stuck {
		if next := due(s, d, TopologyActiveReadOnly, v1alpha1.ReasonActiveSiteCannotOpen); next.Verdict != VerdictBlocked {
			return next
		}
	}
	if why := promotion.IsUnescrowed(s, d.Memory, a); why != "" {
		return d.keptShut(s, TopologyActiveReadOnly, a.Name, why)
	}
	d.Hold = false
	why, message := v1alpha1.ReasonReturnedWhole, fmt.Sprintf("%s is back and holds everything seen; it is opened again under epoch %d", a.Name, s.Status.Epoch)
	if s.Order.To != "" {
		why, message = v1alpha1.ReasonForced, fmt.Sprintf("a person ordered %s, and accepted what it lacks; it is opened again under epoch %d", a.Name, s.Status.Epoch)
	}
	d = d.say(TopologyActiveReadOnly, VerdictReopen, why, "%s", message)
	if stuck {
		d = d.triedOn(s, a) // no other site may take over
	}
	return d.then(Select{Site: a.Name}).then(toOpen(s, a)...).within(s.Policy.PollInterval / 4)
}

// anew opens a site that has the role under an epoch of its own, behind the promotion gate, because an earlier pod of it may be open
// under the present one. It skips the next epoch: a site that the very next epoch names again stays open (I1, I2).
func anew(s Snapshot, d Decision, a Site, earlier Run) Decision {
	d = d.begin(s, v1alpha1.FailoverEmergency, a.Name, v1alpha1.ReasonEarlierPodMayRun)
	d.Status.Epoch++
	d.Effects = []Effect{Select{Site: a.Name}, Announce{}}
	return d.say(TopologyActiveReadOnly, VerdictFailover, v1alpha1.ReasonEarlierPodMayRun, "%s is back in another pod, and %s: it is opened under epoch %d once that one is proven fenced",
		a.Name, earlier, d.Status.Epoch)
}

// triedOn says why no site takes the place of one that does not open, and what a person can do; the operator keeps trying to open it.
func (d Decision) triedOn(s Snapshot, site Site) Decision {
	trouble := ""
	if said := site.Sidecar.Report.Message; said != "" {
		trouble = " (" + said + ")"
	}
	best, found := promotion.Choose(s, d.Memory, site.Name)
	forbids := promotion.FirstAgainst(promotion.Permissions, promotion.Ask(s, d.Memory, best, found)).Message
	out := promotion.WithoutCandidate(s, d.Memory, site.Name)
	if found {
		out = promotion.HowToOrder(best.Site.Name)
	}
	return d.say(d.Topology, VerdictBlocked, v1alpha1.ReasonActiveSiteCannotOpen, "%s does not open%s; the operator keeps trying, and no site takes its place: %s; %s",
		site.Name, trouble, forbids, out)
}

// toOpen returns the effects that open a site that has the role, after another look at its relay log, which Detach throws
// away (I8). A sidecar opens no site with a source, which a person or a status from another time may have left it.
func toOpen(s Snapshot, target Site) []Effect {
	left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed)
	switch {
	case target.MySQL.ReplicaHost == "":
		return []Effect{Open{Site: target.Name}}
	case !left.IsEmpty() && !s.Order.Accepted, !target.MySQL.ReceiverStopped:
		return []Effect{Drain{Site: target.Name}}
	}
	return []Effect{Detach{Site: target.Name}, Open{Site: target.Name}}
}
