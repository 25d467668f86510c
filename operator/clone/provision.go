// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

// States of a clone that MySQL knows.
const (
	cloneNotStarted = "Not Started"
	cloneInProgress = "In Progress"
	cloneCompleted  = "Completed"
)

// examine decides what to do with a site. The site was read before the active site, so that a transaction that the
// active site lacks is really missing there. A clone destroys the site's data, so every answer that leads to one comes
// after the guard that the active site holds all of it, or that an order lets the operator throw it away.
func examine(site, active mysql.Status, last mysql.CloneStatus, o order) (work.Verdict, string) {
	// Retrieved transactions count as much as executed ones: if the source is dead, a relay log may be the only copy.
	holds := site.Executed.Union(site.Retrieved)
	if o.carriedOutBy(last) {
		o = o.carriedOut()
	}
	errant := holds.Subtract(active.Executed)
	lacks := active.Purged.Subtract(holds)
	switch {
	case !active.Writable():
		// Another site may be about to become active, and hold more or less than this one.
		return work.VerdictWait, "the active site is not open"
	case site.Writable():
		// Writes to it now would be lost or missed.
		return work.VerdictWait, "the site is not fenced"
	case underWay(last) || site.Cloning:
		return work.VerdictWait, "a clone into the site is under way"
	case !errant.IsEmpty() && !(o.given() && o.discards()):
		return work.VerdictRefuse, fmt.Sprintf("the site has %s that the active site lacks (%s)", gtid.Transactions(errant.Count()), errant)
	case last.State != "" && last.State != cloneCompleted:
		// A clone that ended half-way leaves a server that starts, with part of the data: its sets prove nothing.
		return again(site, fmt.Sprintf("the last clone ended as %s (error %d)", last.State, last.ErrorNo))
	case o.given() && !o.discards() && site.Executed.IsEmpty() && site.HasDatabases:
		// The order does not let the operator throw it away.
		return work.VerdictRefuse, unknownData
	case o.given():
		return again(site, o.why())
	case !lacks.IsEmpty():
		return again(site, fmt.Sprintf("the active site has purged %s that the site lacks", gtid.Transactions(lacks.Count())))
	case last.State == cloneCompleted || !site.Executed.IsEmpty():
		return work.VerdictAdopt, "the site's data is part of the active site's"
	case site.HasDatabases:
		return work.VerdictRefuse, unknownData
	}
	return work.VerdictClone, "the site is empty"
}

// unknownData says that the origin of a site's data is unknown: it was written without transaction identifiers.
const unknownData = "the site has databases but no transactions"

// underWay is true while a server receives a clone.
func underWay(last mysql.CloneStatus) bool {
	return last.State == cloneInProgress || last.State == cloneNotStarted
}

// again chooses how to clone: MySQL refuses to clone over databases unless a window lifts super_read_only.
func again(site mysql.Status, why string) (work.Verdict, string) {
	if site.HasDatabases {
		return work.VerdictReclone, why
	}
	return work.VerdictClone, why
}

// provisionable is true if the facts allow a closer look at a site that is not provisioned. A diverged site is left to
// a person: the loop remembers what it has seen there, even if a look shows less.
func provisionable(site string, g scope.GroupFacts, o order) bool {
	f := g.Sites[site]
	return g.Open && site != g.ActiveSite && f.MysqlUp && !f.Writable && (!f.Diverged || o.discards()) && f.AdminAddr != "" &&
		g.Sites[g.ActiveSite].AdminAddr != ""
}

// stranded is true if a provisioned site can never catch up: its receiver has stopped with an error, and the active
// site has purged what comes next. The active site must hold everything that the site has, since a clone would follow.
// In doubt the site is not stranded: then it only stays behind.
func stranded(site string, g scope.GroupFacts) bool {
	f, active := g.Sites[site], g.Sites[g.ActiveSite]
	if !provisionable(site, g, order{}) || !active.MysqlUp || f.Following || f.IOErrno == 0 || f.Cloning {
		return false
	}
	holds := f.Executed.Union(f.Retrieved)
	return active.Executed.Contains(holds) && !holds.Contains(active.Purged)
}
