// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"sync"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// withdrawals are the orders whose annotation a person removed before their clone began. The zero value is ready to use.
type withdrawals struct {
	mu  sync.Mutex
	all map[scope.SiteKey]string
}

// note remembers the withdrawn order of a site; value is empty if none was withdrawn. It returns true for a new one.
func (w *withdrawals) note(key scope.SiteKey, value string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.all[key]
	if value == "" {
		delete(w.all, key)
		return false
	}
	if w.all == nil {
		w.all = map[scope.SiteKey]string{}
	}
	w.all[key] = value
	return before != value
}

func (w *withdrawals) has(key scope.SiteKey, o order) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.value != "" && w.all[key] == o.value
}

// Withdrawn is true if a person has withdrawn the order of a site, by its value in status, before its clone began.
func (r *Clones) Withdrawn(site scope.SiteKey, value string) bool {
	return r.provisioner.withdrawn.has(site, order{value: value})
}

// withdraw finds the accepted orders that a person has withdrawn. It drops none of them: only the site's MySQL knows
// whether a clone has begun, and the job that asks it lets the order lapse only if none has (I14).
func (r *Clones) withdraw(s *scope.Scope) {
	asked := parseRequest(s.Group.Annotations[v1alpha1.AnnotationRecloneSite]).site
	for _, site := range s.Group.Spec.Sites {
		o, taken := standing(s.Clones[site.Name]), ""
		if o.given() && !o.begun && o.value != orderOfPolicy && asked != site.Name {
			taken = o.value
		}
		if r.provisioner.withdrawn.note(s.SiteKey(site.Name), taken) || site.Name == s.ActiveSite() {
			// The job may wait for its turn, for hours. A site that a person had promoted meanwhile is not cloned when it is a replica again.
			r.Work.GiveUp(s.SiteKey(site.Name))
		}
	}
}
