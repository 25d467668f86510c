// SPDX-License-Identifier: Apache-2.0

// Package authority holds what the operator says of who may write: the statement of a group that stands, when each site
// was answered, and whether this process stood still. It is pure, so that the simulation drives it as the poll loop does:
// time and the signature come in as arguments. It locks itself.
package authority

import (
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// releaseValidity is how long after the loop last looked its word still permits a site to open: longer than a pass whose
// calls to the API server time out.
const releaseValidity = 8 * time.Second

// Authority is the statement of one group that stands, and when each site was answered.
type Authority struct {
	mu     sync.Mutex
	signer Signer
	now    wire.Statement
	// stated is when the loop last stood by that statement.
	stated time.Time
	pushed pushed
	// sites are the names in the group's spec.
	sites map[string]bool
	// pods holds, for each site, the UID of the pod that the last poll took for the site's.
	pods map[string]string

	// last is when a site was last answered under the present epoch; below, under any older one; permitted, with a
	// statement on which it may open.
	last, below, permitted map[string]time.Time
}

// Signer signs with the group's key.
type Signer func(wire.Statement) (wire.Signed, error)

// New makes an authority that has nothing to say yet.
func New() *Authority {
	return &Authority{last: map[string]time.Time{}, below: map[string]time.Time{}, permitted: map[string]time.Time{}}
}

// Set replaces the statement. It never goes back to a lower epoch, as after a restore of status: the statement stays then, and
// permits nobody to open any more, since the loop does not stand by it and looks at pods for another one (simulation, seed 11907).
func (a *Authority) Set(s wire.Statement, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.Epoch < a.now.Epoch {
		a.now.Hold = true
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
	a.now, a.stated = s, now
}

// SetSigner says how to sign. Without a signer nobody is answered.
func (a *Authority) SetSigner(signer Signer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.signer, a.pushed = signer, pushed{}
}

// SetSites names the sites of the group's spec.
func (a *Authority) SetSites(names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sites = map[string]bool{}
	for _, name := range names {
		a.sites[name] = true
	}
}

// SetPods says which pod the last poll took for each site's. Nobody but it is let open.
func (a *Authority) SetPods(uids map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = uids
}

// HasSigner is true once it is known how to sign.
func (a *Authority) HasSigner() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.signer != nil
}

// Statement is the one that stands; its epoch is 0 before the first.
func (a *Authority) Statement() wire.Statement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// Answer signs for an asker. What is answered without a nonce renews no lease and opens nothing (a sidecar accepts only
// its own), so it is not remembered: a curious person must not delay a failover. An asker that does not name a site of
// the group may be any of them, so its time, kept under "", counts for all.
func (a *Authority) Answer(q wire.Ask, now time.Time) (wire.Signed, error) {
	site, nonce := q.Site, q.Nonce
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.signer == nil || a.now.Epoch == 0 {
		return "", wire.ErrNoStatement
	}
	if nonce == "" {
		return a.signLocked(nonce, now)
	}
	if !a.sites[site] {
		site = ""
	}
	a.last[site] = now
	if stale, stranger := now.Sub(a.stated) > releaseValidity, q.Pod != "" && q.Pod != a.pods[q.Site]; stale || stranger {
		// The loop has not looked for a while, or not at this pod: one that was deleted by force and still runs, or one that
		// came up since. What was said permits nobody to open then (I3). Who is open stays open.
		s := a.now
		s.Hold, s.Nonce, s.IssuedAt = true, nonce, now.UTC()
		return a.signer(s)
	}
	if !a.now.Hold && (site == a.now.ActiveSite || site == "") {
		a.permitted[a.now.ActiveSite] = now
	}
	return a.signLocked(nonce, now)
}

// Renewed returns, per site, when it was last answered under any epoch.
func (a *Authority) Renewed(sites []string) map[string]time.Time {
	below, _ := a.Answered(sites)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, site := range sites {
		for _, at := range []time.Time{a.last[site], a.last[""]} {
			if at.After(below[site]) {
				below[site] = at
			}
		}
	}
	return below
}

// pushFor is for how long what was signed for a push is pushed again while it is still so: nothing is decided by when it was
// issued, and a signature costs as much as half a query.
const pushFor = 10 * time.Second

// pushed is what was last signed for a push.
type pushed struct {
	of     wire.Statement
	signed wire.Signed
	at     time.Time
}

// Sign signs for a push. A push renews no lease and opens nothing, so whom it reaches is not remembered.
func (a *Authority) Sign(now time.Time) (wire.Signed, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.signer == nil || a.now.Epoch == 0 {
		return "", wire.ErrNoStatement
	}
	if age := now.Sub(a.pushed.at); age >= 0 && age < pushFor && reflect.DeepEqual(a.pushed.of, a.now) {
		return a.pushed.signed, nil
	}
	signed, err := a.signLocked("", now)
	if err != nil {
		return "", err
	}
	a.pushed = pushed{of: a.now, signed: signed, at: now}
	return signed, nil
}

// signLocked signs the statement as it stands.
func (a *Authority) signLocked(nonce string, now time.Time) (wire.Signed, error) {
	s := a.now
	s.Nonce, s.IssuedAt = nonce, now.UTC()
	return a.signer(s)
}

// Answered returns, per site, when it was last answered under an epoch below the present one, and when last permitted.
func (a *Authority) Answered(sites []string) (below, permitted map[string]time.Time) {
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
