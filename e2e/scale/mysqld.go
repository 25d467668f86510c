// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// mysqlds are the MySQL servers of all sites behind one listener: which one is meant follows from the address that a
// client called.
type mysqlds struct {
	world *world
	tls   *tls.Config // nil: none

	connections atomic.Int64
	logins      atomic.Int64
	queries     atomic.Int64
	ids         atomic.Uint32
	plans       sync.Map // text of the query to plan
}

// Commands of the protocol.
const (
	comQuit  = 1
	comQuery = 3
	comPing  = 14
	comReset = 31
)

func (m *mysqlds) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed
		}
		go func() {
			m.connections.Add(1)
			defer m.connections.Add(-1)
			defer func() { _ = conn.Close() }()
			// The client's end is the normal end.
			_ = m.session(conn)
		}()
	}
}

// siteOf finds the site that a connection was made to.
func (w *world) siteOf(local net.Addr) *site {
	addr, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return nil
	}
	return w.at(addr.Addr())
}

func (m *mysqlds) session(conn net.Conn) error {
	s := m.world.siteOf(conn.LocalAddr())
	if s == nil {
		return nil
	}
	p, err := m.login(conn, s)
	if err != nil {
		return err
	}
	for {
		packet, err := p.read()
		if err != nil || len(packet) == 0 || packet[0] == comQuit {
			return err
		}
		switch packet[0] {
		case comQuery:
			m.query(p, s, string(packet[1:]))
		case comPing, comReset:
			p.ok()
		default:
			p.refuse(1047, "08S01", "Unknown command")
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
}

// buffered is a connection of which something was read already: the client's first words of TLS may come with its request
// for it.
type buffered struct {
	net.Conn
	in io.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

var errDenied = errors.New("access denied")

// loginTimeout bounds a handshake.
const loginTimeout = 10 * time.Second

// login greets, goes over to TLS, and lets the operator's account in as a server does that knows its password already.
func (m *mysqlds) login(conn net.Conn, s *site) (*packets, error) {
	if err := conn.SetDeadline(time.Now().Add(loginTimeout)); err != nil {
		return nil, err
	}
	var nonce [20]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, err
	}
	for i := range nonce {
		nonce[i] = nonce[i]&0x7f | 1 // no zero, which would end it
	}
	caps := uint32(capabilities)
	if m.tls != nil {
		caps |= capTLS
	}
	p := newPackets(conn)
	p.greeting(m.ids.Add(1), nonce, caps)
	if err := p.flush(); err != nil {
		return nil, err
	}
	packet, err := p.read()
	if err != nil {
		return nil, err
	}
	if m.tls != nil {
		if !sslRequest(packet) {
			return nil, fmt.Errorf("%w: it asks for no TLS", errProtocol)
		}
		p = newPackets(tls.Server(buffered{Conn: conn, in: p.in}, m.tls))
		if packet, err = p.read(); err != nil {
			return nil, err
		}
	}
	who, err := parseLogin(packet)
	if err != nil {
		return nil, err
	}
	if who.plugin != authPlugin || !s.accepts(who.user, who.scramble, nonce[:]) {
		p.refuse(1045, "28000", "Access denied for user '"+who.user+"'")
		return nil, errors.Join(errDenied, p.flush())
	}
	m.logins.Add(1)
	p.write(1, 3) // the password is the one that is cached
	p.ok()
	if err := p.flush(); err != nil {
		return nil, err
	}
	return p, p.conn.SetDeadline(time.Time{})
}

func (m *mysqlds) query(p *packets, s *site, query string) {
	m.queries.Add(1)
	if !strings.HasPrefix(query, "SELECT") {
		s.execute(query)
		p.ok()
		return
	}
	known, ok := m.plans.Load(query)
	if !ok {
		known, _ = m.plans.LoadOrStore(query, planOf(query))
	}
	parsed, ok := known.(plan)
	if !ok {
		p.refuse(1105, "HY000", "no plan")
		return
	}
	now := time.Now()
	p.result(parsed.names, parsed.answers(s.look(now), now))
}
