// SPDX-License-Identifier: Apache-2.0

// Package authority holds what the operator says about who may write: the present statement of a group, when each site
// was answered, and whether this process was stopped. It is pure, so that the simulation drives it as the poll loop does:
// time and the signature come in as arguments. It does its own locking.
package authority

import (
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/clock"
)

// releaseValidity is how long after the loop's last look its statement still permits a site to open: longer than a pass
// whose calls to the API server time out.
const releaseValidity = 8 * time.Second

// Authority is the present statement of one group, and when each site was answered.
type Authority struct {
	mu     sync.Mutex
	signer Signer
	now    wire.Statement
	// stated is when the loop last confirmed that statement.
	stated time.Time
	pushed pushed
	// sites are the names in the group's spec.
	sites map[string]bool
	// pods has, for each site, the UID of the pod that the last poll took for the site's.
	pods map[string]string

	// last is when a site was last answered under the present epoch, below under any older one, and permitted with a
	// statement on which it may open.
	last, below, permitted map[string]time.Time
}

// Signer signs with the group's key.
type Signer func(wire.Statement) (wire.Signed, error)

// New makes an Authority that has no statement yet.
func New() *Authority {
	return &Authority{last: map[string]time.Time{}, below: map[string]time.Time{}, permitted: map[string]time.Time{}}
}

// Set replaces the statement, and which pod the last poll took for each site's: no other pod of a site may open. Both change at once, for no
// pod may open on the word that was meant for an earlier one (I1). It never goes back to a lower epoch, as after a restore of status: then the old statement stays, and
// permits no site to open any more, since the loop does not confirm it and looks at pods for another one (simulation, seed 11907).
func (a *Authority) Set(s wire.Statement, pods map[string]string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = pods
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

// SetSigner sets how to sign. Without a signer no site gets an answer.
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

// HasSigner is true once there is a signer.
func (a *Authority) HasSigner() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.signer != nil
}

// Statement returns the present statement; its epoch is 0 before the first.
func (a *Authority) Statement() wire.Statement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// Answer signs for an asker. An answer without a nonce renews no lease and opens nothing (a sidecar accepts only its
// own nonce), so it is not remembered: a curious person must not delay a failover. An asker that names no site of the
// group may be any site, so its time, kept under "", counts for all.
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
	if stale, stranger := clock.Elapsed(a.stated, now) > releaseValidity, q.Pod != "" && q.Pod != a.pods[q.Site]; stale || stranger {
		// The loop has not looked for a while, or not at this pod, which was deleted by force and still runs, or came up
		// since. Then the statement permits no site to open (I3). An open site stays open.
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

// pushFor is how long a signed push is reused while its statement is unchanged: no decision depends on when it was issued,
// and a signature costs as much as half a query.
const pushFor = 10 * time.Second

// pushed is the statement that was last signed for a push.
type pushed struct {
	of     wire.Statement
	signed wire.Signed
	at     time.Time
}

// Sign signs for a push. A push renews no lease and opens nothing, so its receivers are not remembered.
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

// signLocked signs the present statement.
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
