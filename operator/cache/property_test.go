// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// machine is a group whose caches crash, hang and cannot be reached, and whose operator ends between any two steps.
type machine struct {
	world
	t      *rapid.T
	number int
	// cut are sites that the operator does not reach; hung are those that answer nobody; full are those that take no connection more, of nobody.
	cut, hung, full map[string]bool
	// keys is how many keys were written, of those that nobody was told are lost.
	keys int64
}

var names = []string{"a", "b", "c"}

func newMachine(t *rapid.T) *machine {
	m := &machine{world: *newWorld(), t: t, cut: map[string]bool{}, hung: map[string]bool{}, full: map[string]bool{}}
	for _, name := range names {
		m.s.Pods = append(m.s.Pods, Pod{Site: name})
		m.start(name)
	}
	m.s.MySQL = MySQL{Active: "a", Epoch: 1}
	return m
}

func (m *machine) start(site string) {
	m.number++
	p := m.pod(site)
	role := v1alpha1.CacheMaster
	if m.number%2 == 0 {
		role = v1alpha1.CacheReplica // of nobody, as the pods are configured
	}
	*p = Pod{Site: site, Exists: true, Reachable: true, Role: role, Run: fmt.Sprint(site, m.number), Began: m.s.Now, RoleLabel: p.RoleLabel, Traffic: p.Traffic && p.Exists}
}

// happen does one thing to the group.
func (m *machine) happen() {
	site := rapid.SampledFrom(names).Draw(m.t, "site")
	p := m.pod(site)
	switch rapid.SampledFrom([]string{"nothing", "nothing", "crash", "replaced", "gone", "back", "cut", "heal", "hang", "wake", "fill", "empty", "mysql", "settled", "letGo", "handsOver", "loads", "operator", "ask", "write", "route", "unlisted", "listed"}).Draw(m.t, "event") {
	case "crash":
		if p.Exists {
			m.start(site)
		}
	case "replaced":
		*p = Pod{Site: site}
		m.start(site)
	case "gone":
		*p = Pod{Site: site}
	case "back":
		if !p.Exists {
			m.start(site)
		}
	case "cut":
		m.cut[site] = true
	case "heal":
		delete(m.cut, site)
	case "hang":
		m.hung[site] = true
	case "wake":
		delete(m.hung, site)
	case "fill":
		m.full[site] = true
	case "empty":
		delete(m.full, site)
	case "mysql":
		kind := rapid.SampledFrom([]v1alpha1.FailoverKind{v1alpha1.FailoverPlanned, v1alpha1.FailoverEmergency}).Draw(m.t, "kind")
		m.s.MySQL = MySQL{Active: site, Epoch: m.s.MySQL.Epoch + 1, Moving: true, Kind: kind, From: m.s.MySQL.Active}
	case "settled":
		m.s.MySQL.Moving = false
	case "letGo":
		if p.Role == v1alpha1.CacheMaster && p.Traffic {
			m.keys = 0 // by order of another client: what that costs is not the operator's to know
			p.Role, p.FailingOver, p.Linked, p.Following = v1alpha1.CacheReplica, true, false, rapid.SampledFrom(names).Draw(m.t, "to")
		}
	case "handsOver": // by order of another client, and waits for the other
		p.FailingOver = p.Exists && p.Role == v1alpha1.CacheMaster
	case "loads":
		p.Loading = p.Exists
	case "operator":
		m.m = Memory{}
	case "ask":
		m.s.Request = &Request{Site: site, ID: fmt.Sprint(m.s.Now.UnixNano())}
	case "unlisted":
		p.Unlisted = "an odd address"
	case "listed":
		p.Unlisted = ""
	case "route":
		m.s.Route = rapid.SampledFrom([]string{"a", "b", "c", ByLabels, NoRoute}).Draw(m.t, "route")
	case "write":
		for i := range m.s.Pods {
			if w := &m.s.Pods[i]; w.Traffic && w.Role == v1alpha1.CacheMaster {
				w.Keys, w.Offset = w.Keys+1, w.Offset+10
				m.keys = max(m.keys, w.Keys)
			}
		}
	}
}

// reached is true if the operator gets through to the engine of a site.
func (m *machine) reached(site string) bool {
	return m.pod(site).Exists && !m.cut[site] && !m.hung[site] && !m.full[site]
}

// look decides once and performs until something fails, or the operator ends.
func (m *machine) look(faults bool) Decision {
	seen := m.s
	seen.Pods = nil
	for _, p := range m.s.Pods {
		p.Reachable = m.reached(p.Site)
		p.Full = m.full[p.Site] && p.Exists && !m.cut[p.Site] && !m.hung[p.Site]
		if !p.Reachable {
			p.Role, p.Following, p.Linked, p.FailingOver, p.Offset, p.Keys, p.Run = "", "", false, false, 0, 0, ""
		}
		if master := p.Following; p.Role == v1alpha1.CacheReplica && master != "" && p.Reachable {
			at := m.pod(master)
			p.Linked = p.Linked && at.Exists && !m.hung[master] && at.Role == v1alpha1.CacheMaster
			if at.Exists && !m.hung[master] && at.Role == v1alpha1.CacheMaster && !p.FailingOver { // replication goes on by itself
				p.Linked, p.Offset, p.Keys = true, at.Offset, at.Keys
				*m.pod(p.Site) = withLink(*m.pod(p.Site), *at)
			}
		}
		seen.Pods = append(seen.Pods, p)
	}
	d := Decide(seen, m.m)
	if err := d.Check(seen); err != nil {
		m.t.Fatalf("%s: %v", d.describe(seen), err)
	}
	m.fullStays(seen, d)
	m.m = d.Memory
	if d.Answer != nil {
		m.s.Request = nil
	}
	if d.Persist {
		if faults && rapid.IntRange(0, 9).Draw(m.t, "unwritten") == 0 {
			return d
		}
		before := m.s.Status.Last
		m.s.Status = d.Status
		m.recorded(before, d)
	}
	for _, a := range d.Actions {
		if faults && rapid.IntRange(0, 9).Draw(m.t, "ends") == 0 {
			return d
		}
		if !m.works(a) {
			if asideOf(a) {
				continue
			}
			return d
		}
		m.act(a)
		m.check(d)
	}
	return d
}

// fullStays: no cache takes the place of a master that is full and lives, unless MySQL moves.
func (m *machine) fullStays(seen Snapshot, d Decision) {
	t, before := d.Status.Transition, seen.Status.Transition
	if t == nil || before != nil || seen.MySQL.Moving || t.From != seen.Status.ActiveSite {
		return
	}
	if p := seen.Pod(t.From); p.Full && p.Run == "" && m.pod(t.From).Run == seen.Status.ActiveRun {
		m.t.Fatalf("the master of %s is full and lives, and another takes its place: %s", t.From, d.describe(seen))
	}
}

// recorded holds a record of a change of the master against what the new one has: sessions that it says were preserved are there.
func (m *machine) recorded(before *Promotion, d Decision) {
	last := m.s.Status.Last
	if last == before {
		return
	}
	has := m.pod(last.To).Keys
	if last.SessionsPreserved && last.Kind != v1alpha1.CacheMoveFirst && has < m.keys {
		m.t.Fatalf("the record says that every key was preserved, and %s has %d of %d: %s%+v", last.To, has, m.keys, d.describe(m.s), m.s.Pods)
	}
	m.keys = has
}

func withLink(p, master Pod) Pod {
	p.Linked, p.Offset, p.Keys = true, master.Offset, master.Keys
	return p
}

func asideOf(a Action) bool {
	switch a.(type) {
	case Follow, CutClients, Label:
		return true
	}
	return false
}

func (m *machine) works(action Action) bool {
	switch a := action.(type) {
	case TrafficOff:
		return true
	case TrafficOn:
		return m.pod(a.Site).Exists
	case Label:
		return m.pod(a.Site).Exists
	case Route:
		return true
	case TakeOver:
		return m.reached(a.From) && m.reached(a.To) && m.pod(a.From).Role == v1alpha1.CacheMaster && m.pod(a.To).Following == a.From && m.pod(a.To).Unlisted == ""
	case Promote:
		return m.reached(a.Site)
	case Follow:
		return m.reached(a.Site)
	case CutClients:
		return m.reached(a.Site)
	}
	return true
}

// check is what must hold after every single step: at most one pod takes traffic.
func (m *machine) check(d Decision) {
	with := ""
	for _, p := range m.s.Pods {
		if !p.Traffic {
			continue
		}
		if with != "" {
			m.t.Fatalf("%s and %s take traffic after %s", with, p.Site, d.describe(m.s))
		}
		with = p.Site
	}
}

// I22: whatever happens, no two caches take the traffic, and nobody takes it that status does not name. Once all is well again there is
// one master, it takes the traffic and is at home, and everybody follows it.
func TestOneMasterWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for range steps {
			m.happen()
			m.s.Now = m.s.Now.Add(time.Duration(rapid.SampledFrom([]int{5, 100, 500, 2000, 6000}).Draw(t, "ms")) * time.Millisecond)
			m.look(true)
			m.check(Decision{})
		}
		m.cut, m.hung, m.full = map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, name := range names {
			m.pod(name).Loading, m.pod(name).Unlisted = false, ""
			if !m.pod(name).Exists {
				m.start(name)
			}
		}
		m.s.MySQL.Moving, m.s.Request = false, nil
		if last := m.s.Status.Last; last != nil && last.Kind == v1alpha1.CacheMoveRequested {
			m.s.MySQL.Epoch++ // or the master stays where a person put it
		}
		var d Decision
		for i := range 300 {
			m.s.Now = m.s.Now.Add(500 * time.Millisecond)
			if d = m.look(false); d.Ready && i > 260 {
				break
			}
			if last := m.s.Status.Last; last != nil && last.Kind == v1alpha1.CacheMoveRequested && last.Epoch == m.s.MySQL.Epoch && m.s.Status.Transition == nil {
				m.s.MySQL.Epoch++
			}
		}
		home := m.pod(m.s.MySQL.Active)
		if !d.Ready || m.s.Route != ByLabels || !home.Traffic || home.Role != v1alpha1.CacheMaster || home.RoleLabel != v1alpha1.CacheMaster || m.s.Status.ActiveSite != home.Site {
			t.Fatalf("the group does not come to rest: %sroute %q %+v", d.describe(m.s), m.s.Route, m.s.Pods)
		}
		for _, p := range m.s.Pods {
			if p.Site != home.Site && (p.Role != v1alpha1.CacheReplica || p.Following != home.Site || p.Traffic || p.RoleLabel != v1alpha1.CacheReplica) {
				t.Fatalf("%s does not follow: %+v", p.Site, p)
			}
		}
	})
}
