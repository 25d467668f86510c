// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/facts"
)

// MarkUnsettled marks every site that is unsettled, once memory has what was seen of all sites. All other code reads the mark, so one
// decision has one answer.
func MarkUnsettled(s facts.Snapshot, m *facts.Memory) {
	for _, site := range s.Sites {
		m.At(site.Name).Unsettled = unsettled(s, *m, site)
	}
}

// unsettled is true while it is not known what a replaced active site alone holds. It says nothing while the role
// still moves away from a site: then that is the transition's From.
func unsettled(s facts.Snapshot, m facts.Memory, site facts.Site) bool {
	r, replaced := lastChange(s, site.Name)
	switch t := s.Status.Transition; {
	case !replaced, site.Name == s.Status.ActiveSite, t != nil && t.From == site.Name:
		return false
	case r.LossExact:
		return holdsLost(s, m, r, site)
	}
	return sameServer(r, m.Of(site.Name).UUID)
}

// lastChange is the newest change of the role that involved a site, and whether that took the role from it.
func lastChange(s facts.Snapshot, site string) (r v1alpha1.FailoverRecord, replaced bool) {
	for _, c := range s.Status.Records {
		if c.To == site || c.From == site {
			return c, c.To != site // one that opened the site again took nothing from it
		}
	}
	return v1alpha1.FailoverRecord{}, false
}

// holdsLost is true while a site still has transactions that its record calls lost, as far as can be seen. It says so even
// while there is no site to compare with, and after the operator has forgotten that the site had diverged (I9). What the
// active site is known to have is no longer lost: a site that had it too may have become active since.
func holdsLost(s facts.Snapshot, m facts.Memory, r v1alpha1.FailoverRecord, site facts.Site) bool {
	if r.LostTransactions == 0 {
		return false
	}
	lost, err := gtid.Parse(r.LostSet)
	return err != nil || !site.All().Intersect(lost).Subtract(m.Of(s.Status.ActiveSite).Executed).IsEmpty()
}

// sameServer is false if a site is known to be another server than the one in a record: its data was replaced,
// and with it all that it alone had.
func sameServer(r v1alpha1.FailoverRecord, uuid string) bool {
	return r.FromServerUUID == "" || uuid == "" && r.FromServerUUID != ServerReplaced || r.FromServerUUID == uuid
}

// successorHad is what the successor of a replaced active site had when it was promoted: that much of what the old one holds
// is the group's.
func successorHad(s facts.Snapshot, site string) gtid.Set {
	r, replaced := lastChange(s, site)
	if !replaced {
		return gtid.Set{}
	}
	had, err := gtid.Parse(r.ToExecuted)
	if err != nil {
		return gtid.Set{} // an unreadable set counts as nothing: then no site must have it, and the site is not attached
	}
	return had
}

// Missing is what reachable provisioned sites have and a candidate lacks, and on which site. Diverged sites
// do not count, and unsettled ones only with what is known to be good: the rest was written off, and is held for a person.
func Missing(s facts.Snapshot, m facts.Memory, c facts.Site) (gtid.Set, string) {
	for _, site := range s.Sites {
		if lacks := held(s, m, site).Subtract(c.All()); !lacks.IsEmpty() {
			return lacks, site.Name
		}
	}
	return gtid.Set{}, ""
}

// Obtainable is the part of Missing that can still be fetched: no site fetches from a relay log, and a broken applier applies none.
func Obtainable(s facts.Snapshot, m facts.Memory, c facts.Site) (gtid.Set, string) {
	for _, site := range s.Sites {
		has := held(s, m, site)
		if BrokenApplier(site) {
			has = has.Intersect(site.MySQL.Executed)
		}
		if lacks := has.Subtract(c.All()); !lacks.IsEmpty() {
			return lacks, site.Name
		}
	}
	return gtid.Set{}, ""
}

// LeftBehind is all that reachable sites have and a candidate lacks when it is opened.
func LeftBehind(s facts.Snapshot, m facts.Memory, c facts.Site) (all gtid.Set, where []string) {
	for _, site := range s.Sites {
		if lacks := held(s, m, site).Subtract(c.All()); !lacks.IsEmpty() {
			all, where = all.Union(lacks), append(where, site.Name)
		}
	}
	return all, where
}

// BrokenApplier is true for a site that has something to apply and whose applier has stopped with an error. One that merely takes
// long is not broken: it will finish, and what it applies can be fetched.
func BrokenApplier(site facts.Site) bool {
	left := site.MySQL.Retrieved.Subtract(site.MySQL.Executed)
	return site.MySQL.Direct && !left.IsEmpty() && !site.MySQL.SQLRunning && site.MySQL.SQLError != ""
}

// Identity is how the data of a site relates to the data of the group.
type Identity string

// The identities.
const (
	// IdentityNone is a site that holds no data of the group, or is on another volume than the one that does.
	IdentityNone Identity = "None"
	// IdentityDiverged is a site that has transactions that an open active site lacks.
	IdentityDiverged Identity = "Diverged"
	// IdentityUnsettled is a site that was replaced as the active one, and may have what was written off.
	IdentityUnsettled Identity = "Unsettled"
	// IdentityGroup is a site whose data is a part of the group's history, or all of it.
	IdentityGroup Identity = "Group"
)

// IdentityOf says how one site's data relates to the group's. If that is not known, it is never IdentityGroup: no channel is set up with
// such a site, and what it has counts for no site.
func IdentityOf(s facts.Snapshot, m facts.Memory, site facts.Site) Identity {
	switch {
	case IsNotProvisioned(s, m, site) != "":
		return IdentityNone
	case !m.Of(site.Name).Diverged.IsEmpty():
		return IdentityDiverged
	case m.Of(site.Name).Unsettled:
		return IdentityUnsettled
	}
	return IdentityGroup
}

// held is what a site has that counts for what a successor must have (I7).
func held(s facts.Snapshot, m facts.Memory, site facts.Site) gtid.Set {
	if !site.SQLAnswers() || site.ThrownAway() {
		return gtid.Set{}
	}
	switch IdentityOf(s, m, site) {
	case IdentityGroup:
		return site.All()
	case IdentityUnsettled:
		// What it alone may have was written off, but what its successor had when it was promoted is good.
		return site.All().Intersect(successorHad(s, site.Name))
	default:
		return gtid.Set{}
	}
}

// ServerReplaced takes the place of the server UUID in the record of an old active site whose data was replaced before it was compared.
const ServerReplaced = "replaced"

// SettleLoss makes the loss of a failover exact once its old active site is seen again as the server it was: only then
// is all that it accepted known.
func SettleLoss(s facts.Snapshot, m facts.Memory, a facts.Site) []v1alpha1.FailoverRecord {
	records := s.Status.Records
	if !a.MySQL.Direct || a.OtherVolume {
		return records
	}
	seen := map[string]bool{}
	for i, r := range records {
		if seen[r.From] || Reopens(r) {
			continue // only its newest change says what a site had that no other has
		}
		seen[r.From] = true
		from, known := s.Site(r.From)
		if known && !r.LossExact && (!from.Provisioned || from.ThrownAway() || from.OtherVolume) && r.FromServerUUID != ServerReplaced {
			// Its data is being thrown away before it was compared. A server that an earlier version cloned keeps its UUID, so
			// what comes back would pass for what was there, and for a loss of nothing.
			records = slices.Clone(records)
			records[i].FromServerUUID = ServerReplaced
			continue
		}
		before := m.Of(r.From).PreviousAll
		if r.LossExact || !known || before == nil || !from.MySQL.Direct || !from.Fenced() || from.Busy != "" || receives(from) {
			continue // what it receives now would be taken for what it had accepted
		}
		if !sameServer(r, from.MySQL.ServerUUID) || from.OtherVolume {
			continue // its data was replaced: what it had accepted is no longer known
		}
		lost := before.Subtract(a.MySQL.Executed)
		records = slices.Clone(records)
		records[i].LostTransactions, records[i].LostSet, records[i].LossExact = lost.Count(), lost.String(), true
		if !lost.IsEmpty() {
			m.At(r.From).Diverged = lost // in this very poll: from now on the record no longer keeps it from being a candidate (I10)
		}
	}
	return records
}

// receives is true if a site may get transactions from another.
func receives(site facts.Site) bool {
	return site.MySQL.ReplicaHost != "" && !site.MySQL.ReceiverStopped
}

// RecordsDiffer is true if two lists of records say different things about who was replaced and what was lost.
func RecordsDiffer(a, b []v1alpha1.FailoverRecord) bool {
	return !slices.EqualFunc(a, b, func(x, y v1alpha1.FailoverRecord) bool {
		return x.Epoch == y.Epoch && x.LossExact == y.LossExact && x.FromServerUUID == y.FromServerUUID
	})
}

// IsHistory is true for an active site that is open under the present epoch, as after an order to accept the loss. The others
// are compared with what it has, and that was acknowledged. If it were still called diverged, it would not count for what a
// successor lacks once it is lost (I7).
func IsHistory(s facts.Snapshot, site facts.Site) bool {
	if t := s.Status.Transition; t != nil && t.Step == v1alpha1.TransitionFencing {
		return false // it may be any site that is yet to be opened, or never will be
	}
	r := site.Sidecar.Report
	return site.Name == s.Status.ActiveSite && site.Sidecar.Answered && r.Epoch == s.Status.Epoch && r.Answered && r.Writable && !site.OtherVolume
}

// IsCovered is true for a site that has nothing but what the present active site had when it was opened: what it alone had under an
// earlier one is part of the history by now. If it were still called diverged because the active site fell silent before the two
// could be compared, it would not count for what a successor lacks (I7).
func IsCovered(s facts.Snapshot, site facts.Site) bool {
	if s.Status.Transition != nil || len(s.Status.Records) == 0 || !site.SQLAnswers() || site.OtherVolume {
		return false // not known: what was found stays found
	}
	r := s.Status.Records[0]
	if r.To != s.Status.ActiveSite || r.Epoch != s.Status.Epoch {
		return false // of another opening
	}
	had, err := gtid.Parse(r.ToExecuted)
	return err == nil && site.All().Subtract(had).IsEmpty()
}

// ErrantOf compares what a site had in the poll before with what the active site has executed now. Reading the replica
// first and the primary last keeps a transaction in flight from looking errant.
func ErrantOf(site, active facts.Site, old facts.Memory, s facts.Snapshot) (gtid.Set, bool) {
	previous := old.Of(site.Name).PreviousAll
	switch {
	case site.Name == active.Name, active.Name == "", s.Status.Transition != nil:
		return gtid.Set{}, false
	case active.OtherVolume:
		return gtid.Set{}, false // what it lacks it has lost: that makes no other site diverge
	case !active.SQLAnswers() || !active.Writable() || previous == nil || !site.Provisioned || !site.SQLAnswers():
		return gtid.Set{}, false
	}
	return previous.Subtract(active.MySQL.Executed), true
}

// MayHold is false for a site that is known not to have any of what a record calls lost. The site that took over lacked
// it: that is what lost means.
func MayHold(m facts.Memory, r v1alpha1.FailoverRecord, site facts.Site, lost gtid.Set) bool {
	if site.Name == r.To || site.NeverRan() {
		return false
	}
	if site.SQLAnswers() && !site.OtherVolume {
		return !site.All().Intersect(lost).IsEmpty()
	}
	held := m.Of(site.Name).Held
	return held == nil || site.OtherVolume || !held.Intersect(lost).IsEmpty() // not seen, or not as it will come back
}

// Reopens is true for the record of a change that gave the role again to the site that had it.
func Reopens(r v1alpha1.FailoverRecord) bool { return r.From == r.To }
