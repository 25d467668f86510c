// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
)

var (
	eventSiteCloneWaits       = events.Warning(v1alpha1.ReasonSiteCloneWaits, "Wait")
	eventSiteCloneRefused     = events.Warning(v1alpha1.ReasonSiteCloneRefused, "Refuse")
	eventSiteStranded         = events.Warning(v1alpha1.ReasonSiteStranded, "Clone")
	eventSiteVolumeReplaced   = events.Warning(v1alpha1.ReasonSiteVolumeReplaced, "Clone")
	eventActiveVolumeReplaced = events.Warning(v1alpha1.ReasonActiveVolumeReplaced, "Hold")
	eventSiteProvisioned      = events.Normal(v1alpha1.ReasonSiteProvisioned, "Provision")
	eventRecloneDone          = events.Normal(v1alpha1.ReasonRecloneDone, "Clone")
)

// CloneOptions is what Clones is made of.
type CloneOptions struct {
	Work *Work
	// Runner runs the jobs, on the servers that Reach gets at; Wake has a group looked at.
	Runner *Runner
	Reach  Reach
	Wake   func(types.NamespacedName)
	// Paused is until when a person keeps the operator from beginning anything; empty if nobody does.
	Paused func(*scope) string
}

// Clones gives the group's data to the sites that do not have it.
type Clones struct {
	*Base
	Work        *Work
	provisioner *provisioner
	paused      func(*scope) string
}

// NewClones makes Clones.
func NewClones(base *Base, o CloneOptions) *Clones {
	return &Clones{Base: base, Work: o.Work, paused: o.Paused, provisioner: newProvisioner(base, o)}
}

// provision marks the sites that have the group's data, and has the others given it.
func (r *Clones) provision(ctx context.Context, s *scope) error {
	for _, site := range s.group.Spec.Sites {
		s.busy[site.Name], _ = r.Work.Busy(s.key.Namespace, s.key.Name, site.Name)
	}
	r.withdraw(s)
	wish, err := r.takeRequest(ctx, s)
	if err != nil {
		return err
	}
	var pending []string
	for _, site := range provisionOrder(s.group.Spec.Sites) {
		before := s.provisioned[site]
		if err := r.takeResult(ctx, s, site); err != nil {
			return err
		}
		r.provisionSite(s, site, wish, before)
		if !s.provisioned[site] {
			pending = append(pending, site+r.lastFailure(s, site))
		} else if site != s.activeSite() && !s.facts.Sites[site].Following {
			s.again = min(s.again, whenWaiting) // it may turn out that it can never follow again
		}
		r.showClone(s, site)
	}
	if len(pending) > 0 {
		s.progress(moving(v1alpha1.ReasonProvisioning, "waiting for data: "+strings.Join(pending, ", ")), whenMoving)
	}
	return nil
}

// provisionSite takes one step with one site. Whatever ends in a clone is persisted before the clone begins: one that
// ends half-way must not leave a site that passes for whole.
func (r *Clones) provisionSite(s *scope, site string, wish request, before bool) {
	o := standing(s.clones[site])
	switch {
	case site == s.activeSite():
		r.markActive(s, site)
	case wish.site == site:
		r.accept(s, site, order{value: wish.value})
	case before && s.provisioned[site] && replaced(s, site):
		// Its volume stays noted until it has the data again.
		s.provisioned[site] = false
		r.Recorder.Emit(s.group, r.related(s, site), eventSiteVolumeReplaced,
			"Site %s has another data volume than the one it was provisioned on, and is cloned anew", site)
	case before && steady(s) && stranded(site, s.facts) && r.paused(s) == "":
		s.provisioned[site] = false
		r.Recorder.Emit(s.group, r.related(s, site), eventSiteStranded,
			"Site %s lacks transactions that %s has purged, and is cloned anew", site, s.activeSite())
	case before && r.policyReclones(s, site):
		r.accept(s, site, order{value: orderOfPolicy})
	case s.provisioned[site] && s.volumes[site] == "" && s.facts.Sites[site].Following:
		// Provisioned when volumes had no names, or when this one's was not heard yet.
		s.volumes[site] = s.facts.Sites[site].VolumeID
	case !s.provisioned[site] && steady(s) && provisionable(site, s.facts, o) && r.mayClone(s, o):
		r.provisioner.begin(s.group, site, o)
	}
}

// mayClone is true unless a person has asked for a pause: then only what a person ordered is carried out.
func (r *Clones) mayClone(s *scope, o order) bool {
	return o.given() && o.value != orderOfPolicy || r.paused(s) == ""
}

// showClone puts how far a clone has come into status. An order stays there until it is carried out.
func (r *Clones) showClone(s *scope, site string) {
	o := standing(s.clones[site])
	shown := r.Work.progress(s.work(site))
	switch {
	case s.provisioned[site] || site == s.activeSite():
		delete(s.clones, site)
	case shown != nil:
		if o.given() {
			shown.Order, shown.StartedAt = o.value, s.clones[site].StartedAt
		}
		s.clones[site] = shown
	case !o.given() && s.busy[site] == "":
		delete(s.clones, site)
	}
}

// markActive marks the active site. It has the group's data by definition once it is open; but one whose volume was
// replaced has lost it, so neither the mark nor the name of the volume is touched then: the poll loop compares them
// before it lets the site open again, and only a person can say that the loss is accepted.
func (r *Clones) markActive(s *scope, site string) {
	if neverOpened(s, site) {
		// The poll loop opens it once this is durable, and only on this volume. Until then there is nothing on it to lose, so a
		// volume that was replaced meanwhile is noted in its place.
		if seen := s.facts.Sites[site].VolumeID; seen != "" && s.facts.ActiveSite == site {
			s.volumes[site] = seen
		}
		return
	}
	if replaced(s, site) {
		r.say(s, site, eventActiveVolumeReplaced, fmt.Sprintf("The active site %s has another data volume than the one that held the group's data: "+
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

// neverOpened is true for a site that is to be opened for the first time, as long as the gate before that is closed: status is
// written only if it is still what was read, so nothing is noted here for a site that may be open already (I12).
func neverOpened(s *scope, site string) bool {
	t := s.group.Status.Transition
	if t != nil && t.Kind != v1alpha1.FailoverBootstrap && s.volumes[site] != "" {
		return false // it lost its mark to a clone that has not begun, and its volume is the one that was ordered
	}
	return t != nil && t.To == site && t.GatePassedAt == nil && !s.provisioned[site]
}

// takeResult takes over what came of the last job on a site.
func (r *Clones) takeResult(ctx context.Context, s *scope, site string) error {
	o, ok := r.Work.result(s.work(site))
	if !ok {
		return nil
	}
	ordered := standing(s.clones[site])
	switch {
	case s.provisioned[site] && o.verdict != verdictAdopt, ordered.value != o.order && !s.provisioned[site]:
		// It got the group's data, or the group got its, or the job knew nothing of the order: what was said of it is over.
		r.Work.drop(s.work(site))
		return nil
	case o.verdict == verdictAdopt && ordered.given():
		// Answered before it is marked: after a crash in between the order still stands, and the site is looked at again.
		if err := r.answerOrder(ctx, s, v1alpha1.RequestRecloneSite, ordered.value, asks.Done("it holds the data of "+s.activeSite())); err != nil {
			return err
		}
		r.Recorder.Emit(s.group, r.related(s, site), eventRecloneDone, "Site %s was cloned anew from %s", site, s.activeSite())
	case o.verdict == verdictLapse:
		// The site is looked at like any other again: what it holds is kept.
		if err := r.refuse(ctx, s, request{site: site, value: ordered.value}, asks.Refused(v1alpha1.AnswerOrderLapsed, o.message)); err != nil {
			return err
		}
		delete(s.clones, site)
		r.Work.drop(s.work(site))
		s.again = min(s.again, whenMoving)
		return nil
	case o.verdict == verdictRefuse && ordered.given():
		if err := r.answerOrder(ctx, s, v1alpha1.RequestRecloneSite, ordered.value, asks.Refused(v1alpha1.AnswerDataAtRisk, o.message)); err != nil {
			return err
		}
		delete(s.clones, site)
	}
	r.takeVerdict(s, site, o)
	return nil
}

func (r *Clones) takeVerdict(s *scope, site string, o outcome) {
	s.persisted = append(s.persisted, s.work(site))
	if o.verdict == verdictAdopt && !s.provisioned[site] {
		s.provisioned[site] = true
		if o.volume != "" {
			s.volumes[site] = o.volume
		}
		// The facts of this reconcile may be older than what the job saw; the next one compares the volumes.
		s.again = min(s.again, whenMoving)
		r.Recorder.Emit(s.group, r.related(s, site), eventSiteProvisioned, "Site %s: %s", site, o.message)
	}
	waits := ""
	if o.donor {
		waits = fmt.Sprintf("The clone of site %s waits: %s", site, o.message)
	}
	r.say(s, site, eventSiteCloneWaits, waits)
	if o.verdict == verdictRefuse {
		text := fmt.Sprintf("site %s is not provisioned: %s; a clone would destroy that: order it with the annotation %s=%s%s if it may",
			site, o.message, v1alpha1.AnnotationRecloneSite, site, confirmed)
		s.progress(stuck(v1alpha1.ReasonCloneRefused, text), whenWaiting)
		r.say(s, site, eventSiteCloneRefused, text)
	}
}

// lastFailure is why a site is not provisioned yet, for people.
func (r *Clones) lastFailure(s *scope, site string) string {
	if s.facts.Sites[site].Diverged && !standing(s.clones[site]).discards() {
		return " (it has diverged and is not cloned; a person decides)"
	}
	if o, ok := r.Work.result(s.work(site)); ok && (o.failed || o.donor) {
		return " (" + o.message + ")"
	}
	return ""
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

// uncloned is true for a site that waits for its data. What is durable counts: a mark that was taken off just now may not stay off.
// Another image than that of the active site could make it one that cannot be cloned.
func (r *Clones) uncloned(s *scope, name string) bool {
	active := s.pods[s.activeSite()]
	if name == s.activeSite() || active == nil || mysqlImage(active) != s.group.Spec.Image {
		return false
	}
	for _, site := range s.group.Status.Sites {
		if site.Name == name && site.Provisioned {
			return false
		}
	}
	return !s.provisioned[name] && r.mayClone(s, standing(s.clones[name]))
}
