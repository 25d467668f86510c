// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
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

// Options holds what Clones is made of.
type Options struct {
	Work *work.Register
	// Runner runs the jobs, on the servers that Reach connects to; Wake queues a group.
	Runner *work.Runner
	Reach  work.Reach
	Wake   func(types.NamespacedName)
	// Paused says until when a person keeps the operator from beginning anything; empty if there is no pause.
	Paused func(*scope.Scope) string
}

// Clones gives the group's data to the sites that lack it.
type Clones struct {
	*scope.Base
	Work        *work.Register
	provisioner *provisioner
	paused      func(*scope.Scope) string
}

// New makes Clones.
func New(base *scope.Base, o Options) *Clones {
	return &Clones{Base: base, Work: o.Work, paused: o.Paused, provisioner: newProvisioner(base, o)}
}

// Provision marks the sites that have the group's data, and starts the jobs that give it to the others.
func (r *Clones) Provision(ctx context.Context, s *scope.Scope) error {
	for _, site := range s.Group.Spec.Sites {
		s.Busy[site.Name], _ = r.Work.Busy(s.Key.Namespace, s.Key.Name, site.Name)
	}
	r.withdraw(s)
	wish, err := r.takeRequest(ctx, s)
	if err != nil {
		return err
	}
	var pending []string
	for _, site := range provisionOrder(s.Group.Spec.Sites) {
		before := s.Provisioned[site]
		if err := r.takeResult(ctx, s, site); err != nil {
			return err
		}
		r.provisionSite(s, site, wish, before)
		if !s.Provisioned[site] {
			pending = append(pending, site+r.lastFailure(s, site))
		} else if site != s.ActiveSite() && !s.Facts.Sites[site].Following {
			s.Again = min(s.Again, scope.WhenWaiting) // it may turn out that it can never follow again
		}
		r.showClone(s, site)
	}
	if len(pending) > 0 {
		s.Progress(scope.Moving(v1alpha1.ReasonProvisioning, "waiting for data: "+strings.Join(pending, ", ")), scope.WhenMoving)
	}
	return nil
}

// provisionSite takes one step with one site. Whatever leads to a clone is persisted before the clone begins: a clone
// that ends half-way must not leave a site that passes for whole.
func (r *Clones) provisionSite(s *scope.Scope, site string, wish request, before bool) {
	o := standing(s.Clones[site])
	switch {
	case site == s.ActiveSite():
		r.markActive(s, site)
	case wish.site == site:
		r.accept(s, site, order{value: wish.value})
	case before && s.Provisioned[site] && scope.Replaced(s, site):
		// Its old volume stays noted until it has the data again.
		s.Provisioned[site] = false
		r.Recorder.Emit(s.Group, r.Related(s, site), eventSiteVolumeReplaced,
			"Site %s has another data volume than the one it was provisioned on, and is cloned again", site)
	case before && scope.Steady(s) && stranded(site, s.Facts) && !s.Terminating[site] && r.paused(s) == "":
		s.Provisioned[site] = false
		r.Recorder.Emit(s.Group, r.Related(s, site), eventSiteStranded,
			"Site %s lacks transactions that %s has purged, and is cloned again", site, s.ActiveSite())
	case before && r.policyReclones(s, site):
		r.accept(s, site, order{value: orderOfPolicy})
	case s.Provisioned[site] && s.Volumes[site] == "" && s.Facts.Sites[site].Following:
		// It was provisioned when volumes had no names, or before the name of this one was known.
		s.Volumes[site] = s.Facts.Sites[site].VolumeID
	case !s.Provisioned[site] && scope.Steady(s) && provisionable(site, s.Facts, o) && r.mayClone(s, o):
		r.provisioner.begin(s.Group, site, o)
	}
}

// mayClone is true unless a person has asked for a pause: then only clones that a person ordered are carried out.
func (r *Clones) mayClone(s *scope.Scope, o order) bool {
	return o.given() && o.value != orderOfPolicy || r.paused(s) == ""
}

// showClone puts into status how far a clone is. An order stays there until it is carried out.
func (r *Clones) showClone(s *scope.Scope, site string) {
	o := standing(s.Clones[site])
	shown := r.Work.Progress(s.SiteKey(site))
	switch {
	case s.Provisioned[site] || site == s.ActiveSite():
		delete(s.Clones, site)
	case shown != nil:
		if o.given() {
			shown.Order, shown.StartedAt = o.value, s.Clones[site].StartedAt
		}
		s.Clones[site] = shown
	case !o.given() && s.Busy[site] == "":
		delete(s.Clones, site)
	}
}

// markActive marks the active site. Once open, it has the group's data by definition. But if its volume was replaced it
// has lost the data, so markActive changes neither the mark nor the name of the volume: the poll loop compares them
// before it lets the site open again, and only a person can accept the loss.
func (r *Clones) markActive(s *scope.Scope, site string) {
	if neverOpened(s, site) {
		// The poll loop opens it once this is durable, and only on this volume. Until then the volume holds nothing to lose, so
		// if it was replaced meanwhile, the new one is noted in its place.
		if seen := s.Facts.Sites[site].VolumeID; seen != "" && s.Facts.ActiveSite == site {
			s.Volumes[site] = seen
		}
		return
	}
	if scope.Replaced(s, site) {
		r.Say(s, site, eventActiveVolumeReplaced, fmt.Sprintf("The active site %s has another data volume than the one that held the group's data: "+
			"bring the old volume back, or have another site promoted; then this one is cloned again", site))
		return
	}
	if !s.Facts.Open || s.Facts.ActiveSite != site {
		return
	}
	s.Provisioned[site] = true
	if s.Volumes[site] == "" {
		s.Volumes[site] = s.Facts.Sites[site].VolumeID
	}
}

// neverOpened is true for a site that is about to be opened for the first time, until the gate before that is passed: status
// is written only if it is unchanged since it was read, so nothing is noted here for a site that may already be open (I12).
func neverOpened(s *scope.Scope, site string) bool {
	t := s.Group.Status.Transition
	if t != nil && t.Kind != v1alpha1.FailoverBootstrap && s.Volumes[site] != "" {
		return false // it lost its mark to a clone that has not begun, and its noted volume is the one that was ordered
	}
	return t != nil && t.To == site && t.GatePassedAt == nil && !s.Provisioned[site]
}

// takeResult takes over the result of the last job on a site.
func (r *Clones) takeResult(ctx context.Context, s *scope.Scope, site string) error {
	o, ok := r.Work.Result(s.SiteKey(site))
	if !ok {
		return nil
	}
	ordered := standing(s.Clones[site])
	switch {
	case s.Provisioned[site] && o.Verdict != work.VerdictAdopt, ordered.value != o.Order && !s.Provisioned[site]:
		// The site got the group's data, or the group got the site's, or the job did not know the order: its result is outdated.
		r.Work.Drop(s.SiteKey(site))
		return nil
	case o.Verdict == work.VerdictAdopt && ordered.given():
		// The answer comes before the mark: after a crash in between the order is still there, and the site is examined again.
		if err := r.AnswerOrder(ctx, s, v1alpha1.RequestRecloneSite, ordered.value, asks.Done("it holds the data of "+s.ActiveSite())); err != nil {
			return err
		}
		r.Recorder.Emit(s.Group, r.Related(s, site), eventRecloneDone, "Site %s was cloned again from %s", site, s.ActiveSite())
	case o.Verdict == work.VerdictLapse:
		// The site is examined like any other again: its data is kept.
		if err := r.refuse(ctx, s, request{site: site, value: ordered.value}, asks.Refused(v1alpha1.AnswerOrderLapsed, o.Message)); err != nil {
			return err
		}
		delete(s.Clones, site)
		r.Work.Drop(s.SiteKey(site))
		s.Again = min(s.Again, scope.WhenMoving)
		return nil
	case o.Verdict == work.VerdictRefuse && ordered.given():
		if err := r.AnswerOrder(ctx, s, v1alpha1.RequestRecloneSite, ordered.value, asks.Refused(v1alpha1.AnswerDataAtRisk, o.Message)); err != nil {
			return err
		}
		delete(s.Clones, site)
	}
	r.takeVerdict(s, site, o)
	return nil
}

func (r *Clones) takeVerdict(s *scope.Scope, site string, o work.Outcome) {
	s.Persisted = append(s.Persisted, s.SiteKey(site))
	if o.Verdict == work.VerdictAdopt && !s.Provisioned[site] {
		s.Provisioned[site] = true
		if o.Volume != "" {
			s.Volumes[site] = o.Volume
		}
		// The facts of this reconcile may be older than what the job saw; the next one compares the volumes.
		s.Again = min(s.Again, scope.WhenMoving)
		r.Recorder.Emit(s.Group, r.Related(s, site), eventSiteProvisioned, "Site %s: %s", site, o.Message)
	}
	waits := ""
	if o.Donor {
		waits = fmt.Sprintf("The clone of site %s waits: %s", site, o.Message)
	}
	r.Say(s, site, eventSiteCloneWaits, waits)
	waits = ""
	if o.Copy {
		waits = o.Message
	}
	r.Say(s, site, eventRecloneWaits, waits)
	if o.Verdict == work.VerdictRefuse {
		text := fmt.Sprintf("site %s is not provisioned: %s; a clone would destroy that: order it with the annotation %s=%s%s if it may",
			site, o.Message, v1alpha1.AnnotationRecloneSite, site, confirmed)
		s.Progress(scope.Stuck(v1alpha1.ReasonCloneRefused, text), scope.WhenWaiting)
		r.Say(s, site, eventSiteCloneRefused, text)
	}
}

// lastFailure tells people why a site is not provisioned yet.
func (r *Clones) lastFailure(s *scope.Scope, site string) string {
	if s.Facts.Sites[site].Diverged && !standing(s.Clones[site]).discards() {
		return " (it has diverged and is not cloned; a person decides)"
	}
	if s.Terminating[site] {
		return " (" + volumeGoes(s.Group, site) + ")"
	}
	if o, ok := r.Work.Result(s.SiteKey(site)); ok && (o.Failed || o.Donor || o.Copy) {
		return " (" + o.Message + ")"
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

// Uncloned is true for a site that waits for its data. Only durable facts count: a mark that was removed just now may come back.
// With another image than the active site's, the site might become one that cannot be cloned.
func (r *Clones) Uncloned(s *scope.Scope, name string) bool {
	active := s.Pods[s.ActiveSite()]
	if name == s.ActiveSite() || active == nil || scope.MySQLImage(active) != s.Group.Spec.Image {
		return false
	}
	for _, site := range s.Group.Status.Sites {
		if site.Name == name && site.Provisioned {
			return false
		}
	}
	return !s.Provisioned[name] && r.mayClone(s, standing(s.Clones[name]))
}
