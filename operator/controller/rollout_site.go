// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/restoring"
	"github.com/mysql-mfg/mfg/operator/rollout"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// lateAfter is how long a site with the wanted pod may take to settle before people are told.
const lateAfter = 2 * time.Minute

// unsettled says since when a site with a pod of one template has not been settled.
type unsettled struct {
	hash  string
	since time.Time
}

func (r *Reconciler) rolloutSite(s *scope.Scope, spec v1alpha1.Site, want *appsv1.Deployment) rollout.Site {
	name := spec.Name
	_, busy := r.Work.Busy(s.Key.Namespace, s.Key.Name, name)
	// A clone that an earlier operator began gets its job only after the first look at the pods.
	busy = busy || s.Facts.Sites[name].Cloning
	site := rollout.Site{
		Name: name, Active: name == s.ActiveSite(), Busy: busy, Candidate: spec.Role == v1alpha1.PrimaryCandidate,
		Diverged: s.Facts.Sites[name].Diverged, Refused: s.Refused[name],
	}
	if v1alpha1.KeptFenced(s.Group, name) {
		site.Fenced = fmt.Sprintf("a person keeps it fenced; to end that: kubectl mfg fence off %s %s -n %s", s.Key.Name, name, s.Key.Namespace)
	}
	if t := s.Group.Status.Transition; t != nil {
		site.Moving = name == t.From || name == t.To
	}
	current := s.Deployments[name]
	if current == nil {
		return site
	}
	site.Exists, site.Kept = true, s.Keyrings.Kept[name]
	site.UpToDate = scope.SpecHash(current) == scope.SpecHash(want)
	site.Settled = scope.Settled(s, name) && !busy
	site.Held = (site.Diverged || otherSeries(s, name)) && scope.Serves(s, name) && !busy
	site.Uncloned = scope.Encrypted(s.Group) && r.clones.Uncloned(s, name)
	site.Starting = scope.BeingReplaced(s, name)
	// While nothing is known of the sites, as after a restart, a site that is not ready may still serve.
	// While a backup is loaded the pod is not ready and MySQL does not answer: that is no failure.
	loads := restoring.Loading(s, name)
	site.Loading = loads && restoring.SameOrder(current, want)
	if !loads && s.Known && !s.Facts.Sites[name].MysqlUp && s.Now.Sub(scope.UnavailableSince(current, s.Now)) >= scope.BrokenAfter {
		site.MayServe = scope.MayServe(s, name)
		site.Broken = site.MayServe == ""
	}
	switch {
	case s.Terminating[name] && !site.Active:
		site.Doomed = fmt.Sprintf("its volume claim %s is being deleted; once you delete its pod, it gets a new volume with the data", v1alpha1.DataVolumeName(s.Key.Name, name))
	case s.Terminating[name]:
		site.Broken = false // its data would be gone with the pod, and may be the newest
		site.Doomed = fmt.Sprintf("its volume claim %s is being deleted, and the data would be gone with the pod: add a site that can take its role, "+
			"or make a backup and restore it into another group", v1alpha1.DataVolumeName(s.Key.Name, name))
	}
	// A site that does not come up, or has no data, loses nothing by a new pod, and may need exactly this one.
	templates := scope.Templates{Has: scope.SpecHash(current), Want: scope.SpecHash(want), Ordered: scope.Ordered(s, name, want)}
	if s.Upgrade.Sort(s.Group, name, templates) && !site.Broken && !site.Uncloned {
		site.UpToDate = true
	}
	site.Late = r.late(s, site)
	if !site.Settled {
		site.Trouble = trouble(s, name)
	}
	return site
}

// late is true if a site has had the wanted pod for so long that it should be settled. Provisioning takes care of a site
// that waits for its data.
func (r *Reconciler) late(s *scope.Scope, site rollout.Site) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, hash := s.SiteKey(site.Name), scope.SpecHash(s.Deployments[site.Name])
	// No one can say how long loading a backup takes; the condition RestoreReady says what prevents it.
	if site.Settled || site.Busy || s.RestorePending || (!s.Provisioned[site.Name] && s.Facts.Sites[site.Name].MysqlUp) {
		delete(r.unsettled, key)
		return false
	}
	if r.unsettled[key].hash != hash {
		r.unsettled[key] = unsettled{hash: hash, since: s.Now}
	}
	return site.UpToDate && s.Now.Sub(r.unsettled[key].since) >= lateAfter
}

func (r *Reconciler) forgetUnsettled(group types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.unsettled {
		if key.Group == group {
			delete(r.unsettled, key)
		}
	}
}

// otherSeries is true for a site that waits for its data and whose MySQL is of another series than the active site's: MySQL
// clones within one series only.
func otherSeries(s *scope.Scope, name string) bool {
	f, active := s.Facts.Sites[name], s.Facts.Sites[s.ActiveSite()]
	if s.Provisioned[name] || !f.MysqlUp || f.Version == "" || active.Version == "" {
		return false // an unknown version must not hold up the other sites
	}
	return series(f.Version) != series(active.Version)
}

// series is the part of a MySQL version within which servers clone from each other, such as 9.7.
func series(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// trouble tells people what is known about why a site is not settled. It has nothing in it that changes while nothing
// happens.
func trouble(s *scope.Scope, name string) string {
	pod, f := s.Pods[name], s.Facts.Sites[name]
	switch {
	case pod == nil:
		return "it has no pod; see the events of its Deployment"
	case scope.PodTrouble(pod) != "":
		return scope.PodTrouble(pod)
	case pod.DeletionTimestamp != nil || f.PodUID != string(pod.UID):
		return ""
	case !f.MysqlUp:
		return "MySQL does not answer"
	case f.Diverged:
		return "it has transactions that the group's history lacks, and waits for a person"
	case otherSeries(s, name):
		return fmt.Sprintf("its MySQL %s cannot be given the data of %s, which runs %s: it gets it once %s is updated too; or put the older image "+
			"back and delete its PersistentVolumeClaim and its pod, since the older MySQL does not start on that volume",
			f.Version, s.ActiveSite(), s.Facts.Sites[s.ActiveSite()].Version, s.ActiveSite())
	case name != s.ActiveSite() && s.ActiveSite() != "" && !f.Following:
		return "MySQL runs, but does not replicate from " + s.ActiveSite()
	}
	return ""
}
