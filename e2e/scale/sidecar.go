// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
)

// sidecars are the sidecars of all sites: one server that is pushed to, and one asker for each site that asks the
// operator as often as real ones do.
type sidecars struct {
	world    *world
	operator string // URL

	pushes atomic.Int64
	dials  atomic.Int64
	asks   atomic.Int64
	failed atomic.Int64
	done   sync.WaitGroup
}

// askEvery is spec.sidecar.peerCheckInterval's default.
const askEvery = 2 * time.Second

func (c *sidecars) server() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.PathHealthz, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET "+wire.PathReadyz, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("PUT "+wire.PathActiveSite, c.push)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 15 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				c.dials.Add(1)
			}
		},
	}
}

func (c *sidecars) push(w http.ResponseWriter, r *http.Request) {
	c.pushes.Add(1)
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	var s *site
	if ok {
		s = c.world.siteOf(local)
	}
	if s == nil {
		http.Error(w, "no such site", http.StatusNotFound)
		return
	}
	var body wire.ActiveSite
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, wire.MaxBodyBytes)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if st, err := statement(body.Statement); err == nil && s.hear(st, false) {
		// As the real one: what was pushed may be old, and only the operator's own answer opens.
		c.ask(context.WithoutCancel(r.Context()), s, client.New(nil))
	}
	w.Header().Set("Content-Type", "application/json")
	// A client that hung up has no use for the rest.
	_ = json.NewEncoder(w).Encode(s.answer(body.Challenge, s.report(time.Now())))
}

// answer authenticates a report as the real sidecar does.
func (s *site) answer(challenge string, r wire.Report) any {
	s.mu.Lock()
	key := s.reportKey
	s.mu.Unlock()
	if challenge == "" || len(key) == 0 {
		return r
	}
	signed, err := wire.SignReport(key, challenge, r)
	if err != nil {
		return r
	}
	return wire.AuthenticAnswer{Signed: signed}
}

// statement reads a statement without verifying it: the key of the relaying side is none of the benchmark's business.
func statement(signed wire.Signed) (wire.Statement, error) {
	var st wire.Statement
	parts := strings.Split(string(signed), ".")
	if len(parts) != 3 {
		return st, errors.New("no statement")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(body, &st)
}

// ask asks the operator for the statement, as every sidecar does every two seconds for its lease.
func (c *sidecars) ask(ctx context.Context, s *site, asker *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, askEvery)
	defer cancel()
	c.asks.Add(1)
	signed, err := asker.OperatorActiveSite(ctx, c.operator, client.ActiveSiteQuery{
		Namespace: s.namespace, Group: s.group, Site: s.name, Nonce: rand.Text(),
	})
	if err != nil {
		c.failed.Add(1)
		return
	}
	if st, err := statement(signed); err == nil {
		s.hear(st, true)
	}
}

// follow asks for one site until the end. Every site has a connection of its own, as sidecars have.
func (c *sidecars) follow(ctx context.Context, s *site) {
	asker := client.NewFrugal(nil)
	defer asker.Close()
	timer := time.NewTimer(mathrand.N(askEvery))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(askEvery)
		c.ask(ctx, s, asker)
	}
}

// begin starts the asker of a site that has its pod now.
func (c *sidecars) begin(ctx context.Context, s *site) {
	c.done.Go(func() { c.follow(ctx, s) })
}
