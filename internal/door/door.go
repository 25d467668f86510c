// SPDX-License-Identifier: Apache-2.0

// Package door bounds what anyone on the network can make a listener hold and do. Clients do not prove who they are before the
// door lets them in, so every address has a share of its own: a flood from one takes nothing from the others. Only if all places
// are taken does the door close a connection, and then one of the address that has most of them.
//
// Only the total bounds connections from the same machine (a container of the same pod, or a port-forward, which the API server
// allowed).
package door

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Limits are the shares.
type Limits struct {
	// Connections is how many connections there may be at a time in all, PerAddress how many of one address.
	Connections, PerAddress int
	// Rate is how many requests a second of one address are answered, Burst how many at once after a pause.
	Rate, Burst float64
}

// Reasons of refusals, for a metric.
const (
	// TooManyOfOne: an address had its share of connections.
	TooManyOfOne = "TooManyOfOneAddress"
	// TooManyOfAll: every place was taken, and no address had more than the one that came.
	TooManyOfAll = "TooManyConnections"
	// MadeRoom: a connection was closed, because its address had most and another address came.
	MadeRoom = "MadeRoom"
	// TooOften: an address asked more often than it may.
	TooOften = wire.ReasonTooManyRequests
)

// Door decides what one server lets in. It is safe for concurrent use.
type Door struct {
	limits  Limits
	refused func(reason string)

	mu     sync.Mutex
	total  int
	guests map[netip.Addr]*guest
}

// guest is one address: its connections, oldest first, and how many requests it may still make.
type guest struct {
	conns  []*conn
	tokens float64
	asked  time.Time
}

// New makes a door. The door calls refused for each refusal; it must not block.
func New(l Limits, refused func(reason string)) *Door {
	return &Door{limits: l, refused: refused, guests: map[netip.Addr]*guest{}}
}

// Listen lets connections of l in, within the limits.
func (d *Door) Listen(l net.Listener) net.Listener { return &listener{Listener: l, door: d} }

type listener struct {
	net.Listener
	door *Door
}

// Accept implements net.Listener. A refused connection costs no more than that: nothing is read from it.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if in := l.door.enter(c); in != nil {
			return in, nil
		}
	}
}

// enter returns nil for a connection that was refused, and closed.
func (d *Door) enter(c net.Conn) net.Conn {
	from := addrOf(c.RemoteAddr().String())
	in := &conn{Conn: c, door: d, from: from}
	reason, out := d.place(in)
	if reason != "" {
		d.refused(reason)
	}
	if out != nil {
		_ = out.Conn.Close() // its server notices, and closes it too; its place is gone already
	}
	if out == in {
		return nil
	}
	return in
}

// place takes a place for a connection. It returns the connection to close, which may be this one, and why.
func (d *Door) place(in *conn) (reason string, out *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.guest(in.from)
	switch {
	case !OwnPod(in.from) && len(g.conns) >= d.limits.PerAddress:
		return TooManyOfOne, in
	case d.total >= d.limits.Connections:
		if out = d.oldestOfMost(len(g.conns) + 1); out == nil {
			d.forget(in.from, g)
			return TooManyOfAll, in
		}
		reason = MadeRoom
		d.remove(out)
	}
	g.conns = append(g.conns, in)
	d.total++
	return reason, out
}

// oldestOfMost is the oldest connection of the address that has most connections, if it has more than the given number.
func (d *Door) oldestOfMost(than int) *conn {
	var most *guest
	for _, g := range d.guests {
		if len(g.conns) > than {
			most, than = g, len(g.conns)
		}
	}
	if most == nil {
		return nil
	}
	return most.conns[0]
}

// guest is called with the lock held.
func (d *Door) guest(from netip.Addr) *guest {
	g := d.guests[from]
	if g == nil {
		if len(d.guests) >= 2*d.limits.Connections {
			d.sweep()
		}
		g = &guest{tokens: d.limits.Burst, asked: time.Now()}
		d.guests[from] = g
	}
	return g
}

// sweep forgets every address without a connection, so that there are at most twice as many addresses as places.
func (d *Door) sweep() {
	for from, g := range d.guests {
		if len(g.conns) == 0 {
			delete(d.guests, from)
		}
	}
}

// forget forgets an address that has no open connection and its full burst of requests.
func (d *Door) forget(from netip.Addr, g *guest) {
	if len(g.conns) == 0 && g.fill(d.limits) >= d.limits.Burst {
		delete(d.guests, from)
	}
}

func (d *Door) remove(c *conn) {
	g := d.guests[c.from]
	if g == nil {
		return
	}
	for i, known := range g.conns {
		if known == c {
			g.conns = append(g.conns[:i:i], g.conns[i+1:]...)
			d.total--
			d.forget(c.from, g)
			return
		}
	}
}

// fill is how many requests a guest may make now.
func (g *guest) fill(l Limits) float64 {
	now := time.Now()
	g.tokens = min(l.Burst, g.tokens+now.Sub(g.asked).Seconds()*l.Rate)
	g.asked = now
	return g.tokens
}

// May is true if an address may make a request now, and counts it.
func (d *Door) May(remote string) bool {
	from := addrOf(remote)
	if OwnPod(from) || d.limits.Rate == 0 {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.guest(from)
	if g.fill(d.limits) < 1 {
		return false
	}
	g.tokens--
	return true
}

// Handler refuses the requests of addresses that ask too often, before anything reads them.
func (d *Door) Handler(next http.Handler) http.Handler {
	body, _ := json.Marshal(wire.Error{Reason: wire.ReasonTooManyRequests, Error: "this address asks too often"})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.May(r.RemoteAddr) {
			next.ServeHTTP(w, r)
			return
		}
		d.refused(TooOften)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write(body)
	})
}

type conn struct {
	net.Conn
	door *Door
	from netip.Addr
	once sync.Once
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.door.mu.Lock()
		defer c.door.mu.Unlock()
		c.door.remove(c)
	})
	return c.Conn.Close()
}

// OwnPod is true for the address of a container of the same pod, or of a port-forward. Other loopback addresses are not: the proxy of a service
// mesh brings everybody from one of them (Istio's from 127.0.0.6).
func OwnPod(from netip.Addr) bool {
	from = from.Unmap()
	return from == netip.IPv6Loopback() || from == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// addrOf is the address without its port and zone; all remotes without an address share one.
func addrOf(remote string) netip.Addr {
	ap, _ := netip.ParseAddrPort(remote)
	return ap.Addr().Unmap().WithZone("")
}
