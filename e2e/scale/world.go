// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	maxSites = 16
	// maxAddresses is how many sites have a place in 127.1.0.0 and up.
	maxAddresses = 60_000

	// commitsPerSecond is how fast the set of a group's active site grows: every poll sees another one.
	commitsPerSecond = 100
	// replicaBehind is how far the replicas are behind it.
	replicaBehind = 300 * time.Millisecond
)

// world is every site there is.
type world struct {
	sites map[netip.Addr]*site
	all   []*site
}

// site is one MySQL with its sidecar.
type site struct {
	namespace, group, name string
	addr                   netip.Addr
	uuid                   string
	shared                 *groupState
	// peers are all sites of the group, this one too.
	peers []*site
	cache cacheState

	mu       sync.Mutex
	password string
	// reportKey authenticates the reports of the pod; empty if it has none.
	reportKey []byte
	podUID    string
	epoch     int64
	writable  bool
	source    string
	running   bool
}

// groupState is what the sites of a group know of each other: what the active one has committed.
type groupState struct {
	mu sync.Mutex
	// origin is the server UUID under which history began, which all sites share.
	origin string
	// active is the UUID of the site that was opened last, opened when.
	active string
	opened time.Time
}

// state is a site at one moment.
type state struct {
	uuid, source, sourceUUID string
	executed, retrieved      string
	writable, running        bool
}

func newWorld(s size) *world {
	w := &world{sites: map[netip.Addr]*site{}}
	for g := range s.groups {
		name := fmt.Sprintf("g%04d", g)
		shared := &groupState{origin: uuidOf(g, 99)}
		first := len(w.all)
		for i := range s.sites {
			one := &site{
				namespace: groupNamespace, group: name, name: siteName(i), addr: address(g*s.sites + i), uuid: uuidOf(g, i), shared: shared,
			}
			w.sites[one.addr] = one
			w.all = append(w.all, one)
		}
		for _, one := range w.all[first:] {
			one.peers = w.all[first:len(w.all):len(w.all)]
		}
	}
	return w
}

func siteName(i int) string { return "s" + string(rune('a'+i)) }

func uuidOf(group, site int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", group, site) }

// address is the nth address from 127.1.0.1 on.
func address(n int) netip.Addr {
	n++
	return netip.AddrFrom4([4]byte{127, byte(1 + n>>16), byte(n >> 8), byte(n)})
}

// at finds the site with an address, nil if it has no pod.
func (w *world) at(addr netip.Addr) *site {
	s := w.sites[addr.Unmap()]
	if s == nil || s.pod() == "" {
		return nil
	}
	return s
}

func (s *site) pod() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.podUID
}

// start gives a site its pod.
func (s *site) start(podUID, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.podUID, s.password = podUID, password
}

// authenticate gives the pod of a site the key for its reports.
func (s *site) authenticate(key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportKey = key
}

func (s *site) accepts(user string, scramble, nonce []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return user == operatorAccount && string(scrambled(s.password, nonce)) == string(scramble)
}

// operatorAccount is the account with which the operator comes.
const operatorAccount = "mfg_operator"

// look tells how a site is.
func (s *site) look(now time.Time) state {
	s.mu.Lock()
	st := state{uuid: s.uuid, source: s.source, writable: s.writable, running: s.running}
	s.mu.Unlock()
	behind := now
	if !st.writable {
		behind = now.Add(-replicaBehind)
	}
	history, own, active := s.shared.committed(behind)
	switch {
	case st.writable, st.running:
		st.executed = join(history, own)
	default:
		// A site that was the active one keeps what it had; the benchmark moves no roles.
		st.executed = history
	}
	if st.running {
		st.retrieved, st.sourceUUID = own, active
	}
	return st
}

// committed is what the group had committed at a moment: the history that every site has, and the active site's own.
func (g *groupState) committed(at time.Time) (history, own, active string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	history = g.origin + ":1-100000"
	if n := int64(at.Sub(g.opened).Seconds() * commitsPerSecond); g.active != "" && n > 0 {
		own = fmt.Sprintf("%s:1-%d", g.active, n)
	}
	return history, own, g.active
}

func (g *groupState) open(uuid string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.active == uuid {
		return
	}
	g.active, g.opened = uuid, now
}

func join(sets ...string) string {
	var some []string
	for _, s := range sets {
		if s != "" {
			some = append(some, s)
		}
	}
	return strings.Join(some, ",")
}

// execute does what a statement asks for that changes something.
func (s *site) execute(statement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	upper := strings.ToUpper(strings.TrimSpace(statement))
	switch {
	case strings.HasPrefix(upper, "CHANGE REPLICATION SOURCE"):
		s.source = quotedAfter(statement, "SOURCE_HOST = ")
	case strings.HasPrefix(upper, "START REPLICA"):
		s.running = s.source != ""
	case strings.HasPrefix(upper, "STOP REPLICA"):
		s.running = false
	case strings.HasPrefix(upper, "RESET REPLICA ALL"):
		s.source, s.running = "", false
	case strings.Contains(upper, "SUPER_READ_ONLY = ON"), strings.Contains(upper, "SUPER_READ_ONLY=ON"):
		s.writable = false
	}
}

func quotedAfter(text, key string) string {
	_, rest, ok := strings.Cut(text, key)
	if !ok {
		return ""
	}
	rest = strings.TrimPrefix(rest, "'")
	host, _, _ := strings.Cut(rest, "'")
	return host
}

// hear takes a statement in as a sidecar does: a newer epoch counts, another site's turn fences, and only the operator's
// own answer opens. It tells whether the site may be the one to open.
func (s *site) hear(st wire.Statement, answer bool) (due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.Epoch < s.epoch {
		return false
	}
	s.epoch = st.Epoch
	if st.ActiveSite != s.name {
		s.writable = false
		return false
	}
	if st.Hold || s.writable {
		return false
	}
	if answer && s.source == "" {
		s.writable = true
		s.shared.open(s.uuid, time.Now())
	}
	return true
}

// report is what the site's sidecar says.
func (s *site) report(now time.Time) wire.Report {
	st := s.look(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := wire.Report{
		Site: s.name, BootID: "boot-" + s.podUID, PodUID: s.podUID, VolumeID: "volume-" + s.group + "-" + s.name,
		Epoch: s.epoch, MysqldRunning: true, Answered: true, Writable: st.writable, SuperReadOnly: !st.writable,
		GTIDExecuted: st.executed, ServerUUID: s.uuid, UptimeMillis: 3_600_000, ObservedAt: now.UTC(),
	}
	if !st.writable {
		r.FenceCause = wire.FenceStartup
	}
	return r
}

// host is the name of a site's Service.
func (s *site) host() string { return v1alpha1.SiteName(s.group, s.name) }
