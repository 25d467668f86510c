// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Site is what is known of a site. Unknown is false: a site counts as what is shown.
type Site struct {
	Name string
	// Candidate is true for the role primary-candidate.
	Candidate   bool
	Active      bool
	Reachable   bool
	Replicating bool
	// Lag is how far it is behind; it counts only with LagKnown.
	Lag      time.Duration
	LagKnown bool
	// HasData is true once it has its data.
	HasData  bool
	Cloning  bool
	Rotating bool
	// Leaving is true if it will be removed or restarted, or has left the specification.
	Leaving bool
	// Diverged is true if it holds transactions that the active site does not have.
	Diverged bool
	// Filtered is true if it skips transactions of the active site, or did.
	Filtered bool
	// PreparedXA is true if an XA transaction is prepared on it: then it keeps everybody out, and a dump would lack rows.
	PreparedXA bool
}

// Group is what is known of a group.
type Group struct {
	Sites []Site
	// Target is the site that is being promoted; empty if none is.
	Target string
	// ActiveInDoubt is true from the first failed look at the active site on, long before a failover is due.
	ActiveInDoubt bool
	Paused        bool
}

// Source says which site is wanted.
type Source struct {
	Prefer v1alpha1.BackupPrefer
	MaxLag time.Duration
	// Avoid are sites where this backup had to yield before: they come last.
	Avoid []string
}

// Choice is a site, or why there is none.
type Choice struct {
	Site    string
	Reason  v1alpha1.Reason
	Message string
}

// unfit are the reasons not to take a site, each enough on its own, in the order in which they are told.
var unfit = []struct {
	text string
	is   func(Site, Source) bool
}{
	{"it has no data yet", func(s Site, _ Source) bool { return !s.HasData }},
	{"it is being cloned", func(s Site, _ Source) bool { return s.Cloning }},
	{"its keyring is being rotated", func(s Site, _ Source) bool { return s.Rotating }},
	{"it is about to go", func(s Site, _ Source) bool { return s.Leaving }},
	{"it is not reachable", func(s Site, _ Source) bool { return !s.Reachable }},
	{"it has diverged", func(s Site, _ Source) bool { return s.Diverged }},
	{"it has or had a replication filter and may lack rows: repair it with kubectl mfg reclone", func(s Site, _ Source) bool { return !s.Active && s.Filtered }},
	{"an XA transaction is prepared on it: end it on the active site", func(s Site, _ Source) bool { return s.PreparedXA }},
	{"it is the active site, and source.prefer is not Active", func(s Site, o Source) bool { return s.Active && o.Prefer != v1alpha1.BackupPreferActive }},
	{"it does not replicate", func(s Site, _ Source) bool { return !s.Active && !s.Replicating }},
	{"its lag is not known", func(s Site, _ Source) bool { return !s.Active && !s.LagKnown }},
	{"it lags more than source.maxLag", func(s Site, o Source) bool { return !s.Active && s.Lag > o.MaxLag }},
}

// Choose picks the site to take a backup from.
func Choose(g Group, o Source) Choice {
	if g.Target != "" || g.ActiveInDoubt {
		// The safe answer: begin nothing on a site that may be needed at once.
		return Choice{Reason: v1alpha1.ReasonBackupWaitsForFailover, Message: "the backup waits until it is clear which site is active"}
	}
	var fit []Site
	var why []string
	for _, s := range g.Sites {
		if text := whyUnfit(s, o); text != "" {
			why = append(why, s.Name+": "+text)
			continue
		}
		fit = append(fit, s)
	}
	if len(fit) == 0 {
		slices.Sort(why)
		return Choice{Reason: v1alpha1.ReasonNoBackupSource, Message: "no site can be backed up: " + strings.Join(why, "; ")}
	}
	best := slices.MinFunc(fit, func(a, b Site) int {
		return cmp.Or(
			cmp.Compare(avoided(a, o), avoided(b, o)),
			cmp.Compare(rank(a, o.Prefer), rank(b, o.Prefer)),
			cmp.Compare(a.Lag, b.Lag),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return Choice{Site: best.Name, Reason: v1alpha1.ReasonBackupSourceChosen, Message: fmt.Sprintf("the backup is taken from %s", best.Name)}
}

func whyUnfit(s Site, o Source) string {
	for _, u := range unfit {
		if u.is(s, o) {
			return u.text
		}
	}
	return ""
}

func avoided(s Site, o Source) int {
	if slices.Contains(o.Avoid, s.Name) {
		return 1
	}
	return 0
}

// rank is smaller for a preferred site.
func rank(s Site, prefer v1alpha1.BackupPrefer) int {
	switch {
	case s.Active:
		return 0 // it is fit only if it is preferred
	case s.Candidate == (prefer == v1alpha1.BackupPreferReplica):
		return 1
	default:
		return 2
	}
}

// Yield says whether a backup that runs on a site must end now, its sessions first: they hold metadata locks that block the applier, and
// nothing may delay a failover. An empty reason means that it continues.
func Yield(g Group, site string, prefer v1alpha1.BackupPrefer) (v1alpha1.Reason, string) {
	i := slices.IndexFunc(g.Sites, func(s Site) bool { return s.Name == site })
	if i < 0 {
		return v1alpha1.ReasonBackupYielded, "the site has left the group"
	}
	s := g.Sites[i]
	switch {
	case g.Target == site:
		return v1alpha1.ReasonBackupYielded, "the site is being promoted"
	case g.ActiveInDoubt && s.Candidate && !s.Active:
		// The failover is not decided yet. Then it must find the applier free.
		return v1alpha1.ReasonBackupYielded, "the active site is in doubt, and this one may have to take its role"
	case s.Active && prefer != v1alpha1.BackupPreferActive:
		return v1alpha1.ReasonBackupYielded, "the site has become active"
	case s.Cloning:
		return v1alpha1.ReasonBackupYielded, "the site is being cloned"
	case s.Rotating:
		return v1alpha1.ReasonBackupYielded, "the keyring of the site is being rotated"
	case s.Leaving:
		return v1alpha1.ReasonBackupYielded, "the site is about to go"
	case s.Diverged:
		return v1alpha1.ReasonBackupYielded, "the site has diverged: what it holds may be lost"
	}
	// A site that does not answer or lags is no reason: the backup ends on its own if it cannot continue.
	return "", ""
}
