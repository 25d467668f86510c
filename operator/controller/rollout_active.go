// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/rollout"
)

// behindAtMost is how old what the active site held may be, when another site is asked whether it holds it too.
const behindAtMost = 10 * time.Second

// mark is what the active site held at a time.
type mark struct {
	site string
	at   time.Time
	held gtid.Set
}

// sparing takes back a decision that could leave the group without a site to fail over to: the active site's pod is
// replaced in place, and until it is back whatever only it held is out of reach.
func (r *Reconciler) sparing(s *scope, d rollout.Decision) rollout.Decision {
	active := s.activeSite()
	instead := rollout.Decision{Create: d.Create, Site: active, Reason: rollout.WaitingForSite}
	if d.Reason != rollout.UpdatingActive {
		r.unmark(s.key)
	}
	switch {
	case d.Update == "":
		return d
	case d.Update != active && beingReplaced(s, active):
		// The others are what a failover would need, and that they do not follow now says nothing about them.
		instead.Message = "the pod of the active site " + active + " is being replaced; the update goes on when it is open"
		return instead
	case d.Reason == rollout.UpdatingActive && !r.caughtUp(s):
		instead.Message = "no other site that may be promoted holds what the active site " + active + " holds: " +
			"its pod is replaced when one has caught up"
		return instead
	}
	// Replacing a broken active site takes nothing away, whatever the others hold.
	return d
}

// caughtUp is true if another site that may be promoted holds what the active site held a moment ago. What it holds now
// grows faster than it can be compared.
func (r *Reconciler) caughtUp(s *scope) bool {
	active := s.activeSite()
	r.mu.Lock()
	m, ok := r.marks[s.key]
	if !ok || m.site != active || s.now.Sub(m.at) > behindAtMost {
		m = mark{site: active, at: s.now, held: s.facts.Sites[active].Executed}
		r.marks[s.key] = m
	}
	r.mu.Unlock()
	for _, site := range s.group.Spec.Sites {
		f := s.facts.Sites[site.Name]
		if site.Name != active && site.Role == v1alpha1.PrimaryCandidate && settled(s, site.Name) && !f.Diverged &&
			f.Executed.Union(f.Retrieved).Contains(m.held) {
			return true
		}
	}
	return false
}

func (r *Reconciler) unmark(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.marks, key)
}

// beingReplaced is true from when a site's Deployment was changed until the new pod does its part, for as long as such
// a replacement usually takes. After that the site has failed, and the others must not wait for it: one of them may need
// the update in order to take over.
func beingReplaced(s *scope, site string) bool {
	d, pod := s.deployments[site], s.pods[site]
	if d == nil || settled(s, site) {
		return false
	}
	if pod == nil || pod.DeletionTimestamp != nil || pod.Annotations[v1alpha1.AnnotationSpecHash] != specHash(d) {
		return s.now.Sub(unavailableSince(d, s.now)) < brokenAfter
	}
	return s.now.Sub(pod.CreationTimestamp.Time) < brokenAfter
}
