// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report"
)

// provision marks the sites that have the group's data, and has the others given it.
func (r *Reconciler) provision(_ context.Context, s *scope) error {
	var pending []string
	for _, site := range provisionOrder(s.group.Spec.Sites) {
		before := s.provisioned[site]
		r.takeResult(s, site)
		switch {
		case site == s.activeSite():
			r.markActive(s, site)
		case before && s.provisioned[site] && replaced(s, site):
			// Persisted before the clone begins, as below. Its volume stays noted until it has the data again.
			s.provisioned[site] = false
			r.Recorder.Emit(s.group, r.related(s, site), report.SiteVolumeReplaced,
				"Site %s has another data volume than the one it was provisioned on, and is cloned anew", site)
		case before && steady(s) && stranded(site, s.facts):
			// Persisted before the clone begins: one that ends half-way must not leave a site that passes for whole.
			s.provisioned[site] = false
			r.Recorder.Emit(s.group, r.related(s, site), report.SiteStranded,
				"Site %s lacks transactions that %s has purged, and is cloned anew", site, s.activeSite())
		case s.provisioned[site] && s.volumes[site] == "" && s.facts.Sites[site].Following:
			// Provisioned when volumes had no names, or when this one's was not heard yet.
			s.volumes[site] = s.facts.Sites[site].VolumeID
		case !s.provisioned[site] && steady(s) && provisionable(site, s.facts):
			r.provisioner.begin(s.group, site)
		}
		if !s.provisioned[site] {
			pending = append(pending, site+r.lastFailure(s, site))
		}
	}
	if len(pending) > 0 {
		s.progress(moving(report.ReasonProvisioning, "waiting for data: "+strings.Join(pending, ", ")), whenMoving)
	}
	return nil
}

// markActive marks the active site. It has the group's data by definition once it is open; but one whose volume was
// replaced has lost it, so neither the mark nor the name of the volume is touched then: the poll loop compares them
// before it lets the site open again, and only a person can say that the loss is accepted.
func (r *Reconciler) markActive(s *scope, site string) {
	if replaced(s, site) {
		r.say(s, site, report.ActiveVolumeReplaced, fmt.Sprintf("The active site %s has another data volume than the one that held the group's data: "+
			"bring the old volume back, or have another site promoted; then this one is cloned anew", site))
		return
	}
	if !s.facts.Open || s.facts.ActiveSite != site {
		return
	}
	s.provisioned[site] = true
	if s.volumes[site] == "" {
		s.volumes[site] = s.facts.Sites[site].VolumeID
	}
}

// replaced is true if a site is seen on another volume than the one it was provisioned on. One that is not known may
// be the same.
func replaced(s *scope, site string) bool {
	noted, seen := s.volumes[site], s.facts.Sites[site].VolumeID
	return noted != "" && seen != "" && noted != seen
}

// takeResult takes over what came of the last job on a site.
func (r *Reconciler) takeResult(s *scope, site string) {
	o, ok := r.Work.result(s.work(site))
	if !ok {
		return
	}
	if s.provisioned[site] && o.verdict != verdictAdopt {
		// It got the group's data, or the group got its: what was said of it before is over.
		r.Work.drop(s.work(site))
		return
	}
	s.persisted = append(s.persisted, s.work(site))
	if o.verdict == verdictAdopt && !s.provisioned[site] {
		s.provisioned[site] = true
		if o.volume != "" {
			s.volumes[site] = o.volume
		}
		// The facts of this reconcile may be older than what the job saw; the next one compares the volumes.
		s.again = min(s.again, whenMoving)
		r.Recorder.Emit(s.group, r.related(s, site), report.SiteProvisioned, "Site %s: %s", site, o.message)
	}
	if o.verdict == verdictRefuse {
		text := fmt.Sprintf("site %s is not provisioned: %s; a clone would destroy that", site, o.message)
		s.progress(stuck(report.ReasonCloneRefused, text), whenWaiting)
		r.say(s, site, report.SiteCloneRefused, text)
	}
}

// lastFailure is why a site is not provisioned yet, for people.
func (r *Reconciler) lastFailure(s *scope, site string) string {
	if s.facts.Sites[site].Diverged {
		return " (it has diverged and is not cloned; a person decides)"
	}
	if o, ok := r.Work.result(s.work(site)); ok && o.failed {
		return " (" + o.message + ")"
	}
	return ""
}

// steady is true if the facts are those of the active site that status names, and it is not changing.
func steady(s *scope) bool {
	return s.facts.ActiveSite == s.activeSite() && s.group.Status.Transition == nil
}

// provisionOrder puts candidates first: the sooner there is one, the sooner the group survives a failure.
func provisionOrder(sites []v1alpha1.Site) []string {
	var first, last []string
	for _, site := range sites {
		if site.Role == v1alpha1.PrimaryCandidate {
			first = append(first, site.Name)
		} else {
			last = append(last, site.Name)
		}
	}
	return append(first, last...)
}
