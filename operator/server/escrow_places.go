// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	// goodFor is how long a token that was the site's gives its pushes a share of their own. A sidecar pushes every five minutes while its
	// site is unsealed.
	goodFor = 15 * time.Minute
	// goodMax bounds how many such tokens are remembered.
	goodMax = 4096
	// bodyFor is how long a stranger keeps its place for sure while its body comes. A sidecar's keyring is a few kilobytes, and comes in far less.
	bodyFor = time.Second
)

// digest stands for a token: the token itself is not remembered (I19).
type digest [sha256.Size]byte

func digestOf(token string) digest { return sha256.Sum256([]byte(token)) }

// place is the place of one push, whose body is held in memory.
type place struct {
	escrow *Escrow
	// share is what the push counts for: its address, or its token if that was good a moment ago.
	share string
	token digest
	// end ends what the push waits for: its body, and its turn to have its token looked at.
	end func()
	// stranger is true for a push whose token was not good a moment ago, proven is false for any push until its token is found good. A proven
	// push is no stranger, and makes room for nobody.
	stranger, proven bool
	// of is set once it is proven.
	of pusher
	// since is when the push came, and read is true once its whole body has come.
	since time.Time
	read  bool
}

// enter takes a place for a push. Strangers have some of the places only, each address a few, and those of the address with most of
// them make room: for another address that has fewer, and for anyone whose token was good a moment ago. If none has more, the slowest makes room
// whose body has not come within bodyFor. So strangers from a few addresses keep no site out, whether they send slowly or have many tokens looked
// at, and slow ones from many addresses keep none out either. end makes the push end.
func (e *Escrow) enter(remote, token string, end func()) (*place, bool) {
	p := &place{escrow: e, share: hostOf(remote), token: digestOf(token), end: end, stranger: true, since: time.Now()}
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.good[p.token]) < goodFor {
		p.share, p.stranger = string(p.token[:]), false
	}
	if e.from[p.share] >= e.limits.perAddress {
		return nil, false
	}
	if len(e.places) >= e.limits.requests || p.stranger && e.strangers() >= e.limits.strangers {
		out := e.makesRoomFor(p)
		if out == nil {
			return nil, false
		}
		e.remove(out)
		out.end()
	}
	e.places = append(e.places, p)
	e.from[p.share]++
	return p, true
}

// strangers expects the lock to be held.
func (e *Escrow) strangers() (n int) {
	for _, p := range e.places {
		if p.stranger {
			n++
		}
	}
	return n
}

// makesRoomFor returns the push that must go; nil if none must.
func (e *Escrow) makesRoomFor(p *place) *place {
	fewer := e.from[p.share] + 1
	if p.stranger {
		if out := e.crowded(true, fewer); out != nil {
			return out
		}
		return e.slowest()
	}
	if out := e.crowded(true, 0); out != nil {
		return out
	}
	return e.crowded(false, fewer)
}

// crowded is the oldest push that is not proven of the share with most places, if it has more than that many.
func (e *Escrow) crowded(stranger bool, than int) *place {
	var found *place
	for _, p := range e.places {
		if !p.proven && p.stranger == stranger && e.from[p.share] > than {
			found, than = p, e.from[p.share]
		}
	}
	return found
}

// slowest is the stranger that has waited longest for its body, if that is longer than bodyFor.
func (e *Escrow) slowest() *place {
	for _, p := range e.places { // the oldest comes first
		if p.stranger && !p.read && time.Since(p.since) >= bodyFor {
			return p
		}
	}
	return nil
}

// remove expects the lock to be held.
func (e *Escrow) remove(p *place) {
	i := slices.Index(e.places, p)
	if i < 0 {
		return // it had to make room earlier
	}
	e.places = slices.Delete(e.places, i, i+1)
	if e.from[p.share]--; e.from[p.share] == 0 {
		delete(e.from, p.share)
	}
}

// prove has the token of a push looked at. Strangers take turns: what storing asks of the API server must not queue behind all of them.
func (p *place) prove(ctx context.Context, push wire.KeyringEscrow, token string) error {
	e := p.escrow
	if p.stranger {
		select {
		case e.turns <- struct{}{}:
			defer func() { <-e.turns }()
		case <-ctx.Done():
			return errTooMany
		}
	}
	err := e.keeper.Authenticate(ctx, push, token)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case errors.Is(err, wire.ErrUnauthorized):
		delete(e.good, p.token) // it was replaced or removed
	case err == nil:
		e.remember(p.token)
	}
	if !slices.Contains(e.places, p) {
		return errTooMany // it had to make room
	}
	if err == nil {
		p.stranger, p.proven, p.of = false, true, pusher{push.Namespace, push.Group}
	}
	return err
}

// remember expects the lock to be held.
func (e *Escrow) remember(token digest) {
	if len(e.good) >= goodMax {
		for other, at := range e.good {
			if time.Since(at) >= goodFor {
				delete(e.good, other)
			}
		}
	}
	if _, known := e.good[token]; known || len(e.good) < goodMax {
		e.good[token] = time.Now()
	}
}

// stays is false for a push that had to make room.
func (p *place) stays() bool {
	p.escrow.mu.Lock()
	defer p.escrow.mu.Unlock()
	return slices.Contains(p.escrow.places, p)
}

// hasBody notes that the whole body has come: what the push waits for from now on is no fault of the sender.
func (p *place) hasBody() {
	p.escrow.mu.Lock()
	defer p.escrow.mu.Unlock()
	p.read = true
}

// leave gives the place back.
func (p *place) leave() {
	p.escrow.mu.Lock()
	defer p.escrow.mu.Unlock()
	p.escrow.remove(p)
}
