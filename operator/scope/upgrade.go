// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/mysql-mfg/mfg/api/pace"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/upgrade"
)

// Upgrade is what a reconcile knows of pods that differ only because of another operator version. The zero value holds nothing back.
type Upgrade struct {
	// Revision identifies this program and its installation's settings; empty if upgrades are not paced.
	Revision string
	// Turn is true while it is the group's turn.
	Turn bool

	before, after map[string]v1alpha1.UpgradeSite
	// known is the revision that wrote the kept status, and seen the generation that it compared the pods with.
	known string
	seen  int64
}

// NewUpgrade begins with what status says.
func NewUpgrade(group *v1alpha1.MysqlFailoverGroup, revision string, turn bool) Upgrade {
	u := Upgrade{Revision: revision, Turn: turn, before: map[string]v1alpha1.UpgradeSite{}, after: map[string]v1alpha1.UpgradeSite{}}
	// A look that ended before it came to the pods may have acknowledged a change: what counts is the one that they were compared with.
	u.seen = group.Status.ObservedGeneration
	if kept := group.Status.Upgrade; kept != nil {
		u.known = kept.Revision
		u.seen = cmp.Or(kept.Generation, u.seen)
		for _, site := range kept.Sites {
			u.before[site.Name] = site
		}
	}
	return u
}

// Held says whether a site keeps its pod until it is the group's turn, by what was persisted before this look: want is the wanted template.
// Whatever waits for an update to end treats such a site as up to date.
func (u Upgrade) Held(site, want string) bool {
	kept, known := u.before[site]
	return u.Revision != "" && !u.Turn && known && u.known == u.Revision && !kept.Asked && kept.Template == want
}

// Templates are those of a site's pod: the hash of the one in place, and of the wanted one. See Ordered.
type Templates struct {
	Has, Want string
	Ordered   bool
}

// Sort compares the template of a site, keeps what it compared with, and says whether the site waits only for the group's turn.
func (u Upgrade) Sort(group *v1alpha1.MysqlFailoverGroup, site string, of Templates) bool {
	if u.Revision == "" {
		return false
	}
	old, known := u.before[site]
	revision := u.known
	if !known {
		revision = ""
	}
	keep, behind := upgrade.Sort(upgrade.Known{Revision: revision, Template: old.Template, Asked: old.Asked},
		upgrade.Look{Revision: u.Revision, Has: of.Has, Wants: of.Want, Changed: u.seen != group.Generation, Ordered: of.Ordered})
	u.after[site] = v1alpha1.UpgradeSite{Name: site, Template: keep.Template, Asked: keep.Asked, Behind: behind}
	return behind && !u.Turn
}

// Status returns what status will say. Before a look at the pods of MySQL that is what it says now: to note only those of the cache would
// forget what was asked for.
func (u Upgrade) Status(group *v1alpha1.MysqlFailoverGroup) *v1alpha1.UpgradeStatus {
	looked := slices.ContainsFunc(slices.Collect(maps.Keys(u.after)), func(name string) bool { return !strings.HasPrefix(name, v1alpha1.UpgradeCache) })
	if u.Revision == "" || !looked {
		return group.Status.Upgrade
	}
	out := &v1alpha1.UpgradeStatus{Revision: u.Revision, Generation: group.Generation}
	for _, site := range Sorted(u.after) {
		out.Sites = append(out.Sites, u.after[site])
	}
	return out
}

// Same is true if status already says it.
func (u Upgrade) Same(group *v1alpha1.MysqlFailoverGroup) bool {
	return equality.Semantic.DeepEqual(u.Status(group), group.Status.Upgrade)
}

// Apply puts the upgrade into the controller's part of status.
func (u Upgrade) Apply(group *v1alpha1.MysqlFailoverGroup, to *applyv1alpha1.MysqlFailoverGroupStatusApplyConfiguration) {
	status := u.Status(group)
	if status == nil {
		return
	}
	out := applyv1alpha1.UpgradeStatus().WithRevision(status.Revision).WithGeneration(status.Generation)
	for _, site := range status.Sites {
		s := applyv1alpha1.UpgradeSite().WithName(site.Name)
		if site.Template != "" {
			s.WithTemplate(site.Template)
		}
		if site.Behind {
			s.WithBehind(true)
		}
		if site.Asked {
			s.WithAsked(true)
		}
		out.WithSites(s)
	}
	to.WithUpgrade(out)
}

// TellUpgrade sets a condition if pods are behind; without such pods there is none.
func (s *Scope) TellUpgrade() {
	var behind []string
	for name, site := range s.Upgrade.after {
		if site.Behind {
			behind = append(behind, name)
		}
	}
	if len(behind) == 0 {
		return
	}
	slices.SortFunc(behind, cmp.Compare[string])
	sites := strings.Join(behind, ", ")
	reason, message := v1alpha1.ReasonUpgradeWaiting, "the pods of "+sites+" are those of an older version of the operator; they are replaced when it is the group's turn (docs/upgrades.md)"
	switch {
	case s.Upgrade.Turn:
		reason, message = v1alpha1.ReasonUpgradeUnderWay, "it is the group's turn; still to be replaced: the pods of "+sites
	case s.Group.Annotations[v1alpha1.AnnotationUpgradePin] != "":
		reason, message = v1alpha1.ReasonUpgradePinned, "the pods of "+sites+" are those of an older version of the operator; the annotation "+v1alpha1.AnnotationUpgradePin+" keeps them"
	}
	if _, err := pace.ParseWindow(s.Group.Annotations[v1alpha1.AnnotationUpgradeWindow]); err != nil && reason == v1alpha1.ReasonUpgradeWaiting {
		reason, message = v1alpha1.ReasonUpgradeWindowUnreadable, "the annotation "+v1alpha1.AnnotationUpgradeWindow+" cannot be read, and the group's turn does not come: "+err.Error()
	}
	s.Condition(conditions.True(v1alpha1.ConditionUpgradePending, reason, message))
}
