// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"crypto/ed25519"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Answer implements the server's Authority: the statement that stands, signed with the asker's nonce. The moment of the
// answer is remembered before it is given, so that no lease can be renewed unseen (I4).
func (m *Monitor) Answer(namespace, group, site, nonce string) (wire.Signed, error) {
	m.mu.Lock()
	leading := m.running != nil && m.running.Err() == nil
	l := m.loops[types.NamespacedName{Namespace: namespace, Name: group}]
	m.mu.Unlock()
	switch {
	case !leading:
		return "", wire.ErrNotLeading
	case l == nil:
		return "", wire.ErrUnknownGroup
	case !m.pulse.steady(time.Now()):
		return "", wire.ErrNotLeading
	}
	return l.authority.answer(site, nonce, time.Now())
}

// authority holds the statement of one group that stands, and when each site was answered.
type authority struct {
	mu  sync.Mutex
	key ed25519.PrivateKey
	now wire.Statement
	// sites are the names in the group's spec.
	sites map[string]bool

	// last is when a site was last answered under the present epoch; below, under any older one; permitted, with a
	// statement on which it may open.
	last, below, permitted map[string]time.Time
}

func newAuthority() *authority {
	return &authority{last: map[string]time.Time{}, below: map[string]time.Time{}, permitted: map[string]time.Time{}}
}

// set replaces the statement. It never goes back to a lower epoch.
func (a *authority) set(s wire.Statement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.Epoch < a.now.Epoch {
		return
	}
	if s.Epoch > a.now.Epoch {
		for site, at := range a.last {
			if at.After(a.below[site]) {
				a.below[site] = at
			}
		}
		a.last = map[string]time.Time{}
	}
	a.now = s
}

func (a *authority) setKey(key ed25519.PrivateKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.key = key
}

func (a *authority) setSites(names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sites = map[string]bool{}
	for _, name := range names {
		a.sites[name] = true
	}
}

func (a *authority) hasKey() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.key != nil
}

func (a *authority) statement() wire.Statement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// answer signs for an asker. What is answered without a nonce renews no lease and opens nothing (a sidecar accepts only
// its own), so it is not remembered: a curious person must not delay a failover. An asker that does not name a site of
// the group may be any of them, so its time, kept under "", counts for all.
func (a *authority) answer(site, nonce string, now time.Time) (wire.Signed, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.key == nil || a.now.Epoch == 0 {
		return "", wire.ErrNoStatement
	}
	if nonce == "" {
		return a.signLocked(nonce, now)
	}
	if !a.sites[site] {
		site = ""
	}
	a.last[site] = now
	if !a.now.Hold && (site == a.now.ActiveSite || site == "") {
		a.permitted[a.now.ActiveSite] = now
	}
	return a.signLocked(nonce, now)
}

// sign signs for a push. A push renews no lease and opens nothing, so it is not remembered.
func (a *authority) sign(now time.Time) (wire.Signed, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.key == nil || a.now.Epoch == 0 {
		return "", wire.ErrNoStatement
	}
	return a.signLocked("", now)
}

func (a *authority) signLocked(nonce string, now time.Time) (wire.Signed, error) {
	s := a.now
	s.Nonce, s.IssuedAt = nonce, now.UTC()
	return wire.Sign(a.key, s)
}

// answered returns, per site, when it was last answered under an epoch below the present one, and when last permitted.
func (a *authority) answered(sites []string) (below, permitted map[string]time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	below = map[string]time.Time{}
	for _, site := range sites {
		below[site] = a.below[site]
		if anyone := a.below[""]; anyone.After(below[site]) {
			below[site] = anyone
		}
	}
	return below, maps.Clone(a.permitted)
}
