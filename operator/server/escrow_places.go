// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"slices"
)

// place is that of one push: its body is held in memory.
type place struct {
	escrow *Escrow
	host   string
	// end has the body read no further.
	end func()
	// reading is true until the body is there: nobody knows yet who sends it.
	reading bool
}

// enter takes a place for a push. Whose body does not come has to make room for somebody else, if its address has more places: a few strangers
// who send slowly must not keep the sites out. end is how to make a push end.
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

// slowest is the oldest push that is still read of the address that has most places, if it has more than that many.
func (e *Escrow) slowest(than int) *place {
	var found *place
	for _, p := range e.places {
		if p.reading && e.from[p.host] > than {
			found, than = p, e.from[p.host]
		}
	}
	return found
}

// remove is called with the lock held.
func (e *Escrow) remove(p *place) {
	i := slices.Index(e.places, p)
	if i < 0 {
		return // it had to go before
	}
	e.places = slices.Delete(e.places, i, i+1)
	if e.from[p.host]--; e.from[p.host] == 0 {
		delete(e.from, p.host)
	}
}

// read tells that the body is there. It is false for a push that had to make room.
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
