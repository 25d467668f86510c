// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"slices"
)

// place is the place of one push, whose body is held in memory.
type place struct {
	escrow *Escrow
	host   string
	// end stops reading the body.
	end func()
	// reading is true until the body has arrived: until then the sender is unknown.
	reading bool
}

// enter takes a place for a push. A push whose body does not come must make room for another address, if its own has more places: a few
// strangers who send slowly must not keep the sites out. end makes the push end.
func (e *Escrow) enter(remote string, end func()) (*place, bool) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.from[host] >= e.limits.perAddress {
		return nil, false
	}
	if len(e.places) >= e.limits.requests {
		most := e.slowest(e.from[host] + 1)
		if most == nil {
			return nil, false
		}
		e.remove(most)
		most.end()
	}
	p := &place{escrow: e, host: host, end: end, reading: true}
	e.places = append(e.places, p)
	e.from[host]++
	return p, true
}

// slowest is the oldest push still being read from the address with the most places, if it has more than that many.
func (e *Escrow) slowest(than int) *place {
	var found *place
	for _, p := range e.places {
		if p.reading && e.from[p.host] > than {
			found, than = p, e.from[p.host]
		}
	}
	return found
}

// remove expects the lock to be held.
func (e *Escrow) remove(p *place) {
	i := slices.Index(e.places, p)
	if i < 0 {
		return // it had to make room earlier
	}
	e.places = slices.Delete(e.places, i, i+1)
	if e.from[p.host]--; e.from[p.host] == 0 {
		delete(e.from, p.host)
	}
}

// read notes that the body has arrived. It returns false for a push that had to make room.
func (p *place) read() bool {
	p.escrow.mu.Lock()
	defer p.escrow.mu.Unlock()
	p.reading = false
	return slices.Contains(p.escrow.places, p)
}

// leave gives the place back.
func (p *place) leave() {
	p.escrow.mu.Lock()
	defer p.escrow.mu.Unlock()
	p.escrow.remove(p)
}
