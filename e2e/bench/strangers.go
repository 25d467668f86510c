// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// What strangers do to each listener: they hold connections with half a request open, and ask as often as they may be expected to.
const (
	// floodHeld is how many connections are held open, floodRate how many requests a second are sent.
	floodHeld = 300
	floodRate = 200
	// floodHands is how many ask at a time.
	floodHands = 10
	// floodPlace is how often one that was refused a place tries again: more often, and what is measured is what it costs to be a stranger.
	floodPlace = 2 * time.Second
)

// floodTarget is a listener that strangers are sent to.
type floodTarget struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Secure  bool   `json:"secure,omitempty"`
}

// strangers are a process that floods. Real ones have machines of their own; these share the processors of the sites, so they
// are a process of the least priority: what is measured is what a flood costs those who are flooded, not what it costs to make one.
type strangers struct {
	cmd    *exec.Cmd
	stop   io.Closer
	counts io.Reader
}

// sendStrangers starts the flood. It goes on until end, or until this process ends.
func sendStrangers(ctx context.Context, listeners []*flooded) (*strangers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "nice", "-n", "19", self, "-strangers")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // Ctrl-C ends the bench first, which reads the counts
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to the strangers: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe from the strangers: %w", err)
	}
	var targets []floodTarget
	for _, l := range listeners {
		targets = append(targets, floodTarget{Name: l.Name, Address: l.address, Secure: l.secure})
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the strangers: %w", err)
	}
	if err := json.NewEncoder(in).Encode(targets); err != nil {
		_ = in.Close()
		return nil, errors.Join(fmt.Errorf("tell the strangers where to go: %w", err), cmd.Wait())
	}
	return &strangers{cmd: cmd, stop: in, counts: out}, nil
}

// end stops the flood, and returns what it did to each listener.
func (s *strangers) end() ([]flooded, error) {
	_ = s.stop.Close()
	var did []flooded
	err := json.NewDecoder(s.counts).Decode(&did)
	if err = errors.Join(err, s.cmd.Wait()); err != nil {
		return did, fmt.Errorf("end the strangers: %w", err)
	}
	return did, nil
}

// beStrangers is that process: it reads its targets from in, floods them until in ends, and writes its counts to out.
func beStrangers(ctx context.Context, in io.Reader, out io.Writer) error {
	var targets []floodTarget
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&targets); err != nil {
		return fmt.Errorf("read where to go: %w", err)
	}
	flooding, stop := context.WithCancel(ctx)
	var hands sync.WaitGroup
	var all []*stranger
	for _, t := range targets {
		s := &stranger{floodTarget: t}
		s.flood(flooding, &hands)
		all = append(all, s)
	}
	_, err := io.Copy(io.Discard, io.MultiReader(decoder.Buffered(), in))
	stop()
	hands.Wait()
	var did []flooded
	for _, s := range all {
		did = append(did, flooded{Name: s.Name, Asked: s.asked.Load(), Answered: s.answered.Load(), Opened: s.opened.Load()})
	}
	return errors.Join(err, json.NewEncoder(out).Encode(did))
}

// stranger is what floods one listener.
type stranger struct {
	floodTarget

	asked, answered, opened atomic.Int64
}

// flood sends requests and holds connections until ctx ends.
func (s *stranger) flood(ctx context.Context, hands *sync.WaitGroup) {
	client := &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, // a stranger trusts nobody and sends no secret
			MaxIdleConnsPerHost: floodHands,
		},
	}
	for range floodHands {
		hands.Go(func() { s.ask(ctx, client) })
	}
	for range floodHeld {
		hands.Go(func() { s.hold(ctx) })
	}
}

// ask sends what strangers send: long names, questions for reports, bodies.
func (s *stranger) ask(ctx context.Context, client *http.Client) {
	scheme := "http"
	if s.Secure {
		scheme = "https"
	}
	long := strings.Repeat("<", 2000)
	for {
		for _, q := range []struct{ method, path, body string }{
			{http.MethodPut, wire.PathActiveSite, `{}`},
			{http.MethodGet, wire.PathPeerActiveSite + "?site=" + url.QueryEscape(long), ""},
			{http.MethodGet, wire.PathStatus, ""},
			{http.MethodGet, wire.PathMetrics, ""},
			{http.MethodPost, "/" + long, long},
		} {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second * floodHands / floodRate):
			}
			req, err := http.NewRequestWithContext(ctx, q.method, scheme+"://"+s.Address+q.path, strings.NewReader(q.body))
			if err != nil {
				return
			}
			s.asked.Add(1)
			resp, err := client.Do(req)
			if err != nil {
				continue
			}
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close()
			s.answered.Add(1)
		}
	}
}

// hold opens a connection, says half a line, and waits until it is cut.
func (s *stranger) hold(ctx context.Context) {
	for {
		conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", s.Address)
		if err == nil {
			s.opened.Add(1)
			over := context.AfterFunc(ctx, func() { _ = conn.Close() })
			_, _ = conn.Write([]byte("GET /healthz HT"))
			_, _ = conn.Read(make([]byte, 1))
			over()
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(floodPlace):
		}
	}
}
