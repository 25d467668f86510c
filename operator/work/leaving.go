// SPDX-License-Identifier: Apache-2.0

package work

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/operator/scope"
)

// askedFor is how long a wish lasts without being repeated. Every reconcile repeats a wish while it is wanted, so a
// wish whose reconciles ended some other way must not move roles for ever.
const askedFor = time.Minute

// wishes are the sites that should give the role of the active site away. The zero value is ready to use.
type wishes struct {
	mu  sync.Mutex
	all map[scope.SiteKey]wish
}

type wish struct {
	reason string
	until  time.Time
}

// Leaving says whether the role should move away from a site, and why.
func (w *Register) Leaving(namespace, group, site string) (string, bool) {
	w.wishes.mu.Lock()
	defer w.wishes.mu.Unlock()
	asked, ok := w.wishes.all[scope.SiteKey{Group: types.NamespacedName{Namespace: namespace, Name: group}, Site: site}]
	if !ok || time.Now().After(asked.until) {
		return "", false
	}
	return asked.reason, true
}

// AskToLeave makes a site the only one of its group that should give its role away; an empty site means none. It
// returns true if the wish is new.
func (w *Register) AskToLeave(group types.NamespacedName, site, reason string) bool {
	w.wishes.mu.Lock()
	defer w.wishes.mu.Unlock()
	key := scope.SiteKey{Group: group, Site: site}
	_, before := w.wishes.all[key]
	for other := range w.wishes.all {
		if other.Group == group {
			delete(w.wishes.all, other)
		}
	}
	if site == "" {
		return false
	}
	if w.wishes.all == nil {
		w.wishes.all = map[scope.SiteKey]wish{}
	}
	w.wishes.all[key] = wish{reason: reason, until: time.Now().Add(askedFor)}
	return !before
}
