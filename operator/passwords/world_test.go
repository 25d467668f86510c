// SPDX-License-Identifier: Apache-2.0

package passwords_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/passwords"
)

// credentials are what a server takes of one account.
type credentials struct{ primary, second string }

func (c credentials) takes(password string) bool {
	return password != "" && (password == c.primary || password == c.second)
}

// change is one statement in the binary log.
type change struct {
	account string
	do      func(credentials) credentials
}

// secret is one content of the accounts Secret.
type secret struct {
	entries map[string]passwords.Entry
	serial  int64
	order   string
}

func (s secret) clone() secret { return secret{maps.Clone(s.entries), s.serial, s.order} }

// valid is what who uses one password uses: the operator's copy, or without one what there is.
func (s secret) valid(account string) string {
	e := s.entries[account]
	if e.Known != "" {
		return e.Known
	}
	return e.Current
}

// any is what who tries one after the other may try.
func (s secret) any(account string) []string {
	e := s.entries[account]
	return []string{e.Known, e.Current, e.Next, e.Previous}
}

type node struct {
	name      string
	takes     map[string]credentials
	applied   int
	reachable bool
	cloning   bool
	// mounted is the Secret as the kubelet brought it, serial what the sidecar has logged in with.
	mounted secret
	serial  int64
	// receiver is the password that the receiver of a replica has, receives its serial.
	receiver string
	receives int64
}

// world is a group whose servers, kubelets and people do as they like.
type world struct {
	t      *rapid.T
	secret secret
	// cached is what the operator's connections go by; it is renewed before settled becomes true.
	cached  secret
	settled bool
	nodes   []*node
	active  int
	open    bool
	log     []change
	order   string
	// orders counts the orders, and so is the ID of the one that stands; before is how many passwords there were when it came.
	orders, before int

	looks   map[string]map[string]passwords.Taken
	made    int
	done    int
	answers []string
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, secret: secret{entries: map[string]passwords.Entry{}, serial: 1}, open: true}
	for _, a := range passwords.Accounts {
		w.secret.entries[a] = passwords.Entry{Current: a + "-0", Known: a + "-0"}
	}
	for i := range rapid.IntRange(2, 3).Draw(t, "sites") {
		n := &node{name: fmt.Sprint("s", i), takes: map[string]credentials{}, reachable: true, mounted: w.secret.clone(), serial: 1,
			receiver: "replication-0", receives: 1}
		for _, a := range passwords.Accounts {
			n.takes[a] = credentials{primary: a + "-0"}
		}
		w.nodes = append(w.nodes, n)
	}
	w.cached = w.secret.clone()
	return w
}

func (w *world) state() passwords.State {
	s := passwords.State{Entries: maps.Clone(w.secret.entries), Serial: w.secret.serial, Open: w.open, Settled: w.settled, MadeFor: w.secret.order}
	if w.order != "" {
		s.HasOrder, s.Order, s.OrderID = true, w.order, fmt.Sprint(w.orders)
	}
	for i, n := range w.nodes {
		taken, looked := w.looks[n.name]
		site := passwords.Site{Name: n.name, Active: i == w.active, Provisioned: !n.cloning, Busy: n.cloning, Serial: n.serial, Receives: n.receives,
			Looked: looked && n.reachable, Taken: taken}
		if !n.reachable {
			site.Trouble, site.Looked = "no answer", false
		}
		s.Sites = append(s.Sites, site)
	}
	return s
}

func (w *world) put(next secret) {
	w.secret, w.settled, w.looks = next, false, nil
}

// step is one reconcile of the operator. It keeps nothing from one to the next.
func (w *world) step() {
	d := passwords.Decide(w.state())
	switch e := d.Effect.(type) {
	case passwords.Write:
		w.put(secret{e.Entries, e.Serial, w.secret.order})
	case passwords.Generate:
		next := w.secret.clone()
		next.order = e.OrderID
		for _, a := range e.Accounts {
			w.made++
			entry := next.entries[a]
			entry.Next = fmt.Sprintf("%s-%d", a, w.made)
			next.entries[a] = entry
		}
		w.put(next)
	case passwords.Look:
		w.looks = map[string]map[string]passwords.Taken{}
		for _, n := range w.nodes {
			if !n.reachable {
				continue
			}
			w.looks[n.name] = map[string]passwords.Taken{}
			for _, a := range e.Accounts {
				entry, c := w.secret.entries[a], n.takes[a]
				w.looks[n.name][a] = passwords.Taken{Current: c.takes(entry.Current), Next: c.takes(entry.Next), Previous: c.takes(entry.Previous)}
			}
		}
	case passwords.Introduce:
		w.onActive(e.Site, func(n *node) {
			for _, a := range slices.Sorted(maps.Keys(e.Secrets)) {
				p := e.Secrets[a]
				if !n.takes[a].takes(p.Stays) {
					return
				}
				w.alter(n, a, func(c credentials) credentials { return credentials{p.Stays, c.second} })
				w.alter(n, a, func(c credentials) credentials { return credentials{p.Comes, c.primary} })
			}
		})
	case passwords.Retire:
		w.onActive(e.Site, func(n *node) {
			for _, a := range e.Accounts {
				current := w.secret.entries[a].Current
				if !n.takes[a].takes(current) {
					return
				}
				w.alter(n, a, func(c credentials) credentials { return credentials{current, c.second} })
				w.alter(n, a, func(c credentials) credentials { return credentials{primary: c.primary} })
			}
		})
	case passwords.Finish:
		if e.Answered {
			w.answer(e.Entries)
		}
		w.done++
		w.put(secret{entries: e.Entries, serial: w.secret.serial})
	case passwords.Refuse:
		w.order = ""
	}
}

// answer takes the order off the group. No password that was there when it came may be in use still (I21): it may be the one for whose
// sake it was given.
func (w *world) answer(entries map[string]passwords.Entry) {
	accounts, _ := passwords.ParseOrder(w.order)
	for _, a := range accounts {
		var number int
		if _, err := fmt.Sscanf(entries[a].Current, a+"-%d", &number); err != nil || number <= w.before {
			w.t.Fatalf("I21: order %q is done, and %s has password number %d of %d that were there before", w.order, a, number, w.before)
		}
	}
	w.answers, w.order = append(w.answers, w.order), ""
}

func (w *world) onActive(site string, do func(*node)) {
	w.looks = nil
	if n := w.nodes[w.active]; n.name == site && n.reachable && w.open {
		do(n)
	}
}

func (w *world) alter(n *node, account string, do func(credentials) credentials) {
	w.log = append(w.log, change{account, do})
	n.takes[account] = do(n.takes[account])
	n.applied = len(w.log)
}

// replicate applies one change on one replica.
func (w *world) replicate(n *node) {
	if n.applied < len(w.log) && n != w.nodes[w.active] && n.reachable && w.nodes[w.active].takes[v1alpha1.AccountReplication].takes(n.receiver) {
		c := w.log[n.applied]
		n.takes[c.account] = c.do(n.takes[c.account])
		n.applied++
	}
}

// kubelet brings the newest Secret into a pod, and its sidecar logs in.
func (w *world) kubelet(n *node) {
	if !n.reachable {
		return
	}
	n.mounted = w.secret.clone()
	if n.takes[v1alpha1.AccountSidecar].takes(n.mounted.valid(v1alpha1.AccountSidecar)) {
		n.serial = n.mounted.serial
	}
}

// receive has the operator give a replica the password, as the poll loop does.
func (w *world) receive(n *node) {
	if n.reachable && n != w.nodes[w.active] {
		n.receiver, n.receives = w.cached.valid(v1alpha1.AccountReplication), w.cached.serial
	}
}

// settle is the passing of half a minute: what was read before is forgotten.
func (w *world) settle() {
	w.cached, w.settled = w.secret.clone(), true
}

// failover makes another site active. What the old one alone had is gone; it comes back as a clone.
func (w *world) failover(to int) {
	if to == w.active || !w.nodes[to].reachable || w.nodes[to].cloning {
		return
	}
	old := w.nodes[w.active]
	w.active = to
	n := w.nodes[to]
	w.log = w.log[:n.applied]
	w.looks = nil
	for _, other := range w.nodes {
		if other.applied > n.applied || other == old && old.applied != n.applied {
			other.cloning = true
		}
	}
	for _, other := range w.nodes {
		if other != n {
			w.receive(other)
		}
	}
}

// clone ends the clone of a site: it has everything of the active one.
func (w *world) clone(n *node) {
	if n.cloning && n.reachable && n != w.nodes[w.active] {
		n.takes, n.applied, n.cloning = maps.Clone(w.nodes[w.active].takes), w.nodes[w.active].applied, false
		w.receive(n)
	}
}

// check is I21: whoever may have to log in can, with what they hold at this moment.
func (w *world) check() {
	for i, n := range w.nodes {
		for _, a := range passwords.Accounts {
			if !n.takes[a].takes(w.cached.valid(a)) && !slices.ContainsFunc(w.cached.any(a), n.takes[a].takes) && !n.cloning {
				w.t.Fatalf("I21: %s refuses all that the operator has of %s: %+v", n.name, a, n.takes[a] == credentials{})
			}
			if !slices.ContainsFunc(w.secret.any(a), n.takes[a].takes) && !n.cloning {
				w.t.Fatalf("I21: %s refuses all that the Secret has of %s", n.name, a)
			}
		}
		if !slices.ContainsFunc(n.mounted.any(v1alpha1.AccountSidecar), n.takes[v1alpha1.AccountSidecar].takes) && !n.cloning {
			w.t.Fatalf("I21: the sidecar of %s cannot log in with what its pod has", n.name)
		}
		if i == w.active || n.cloning || !n.reachable {
			continue
		}
		if active := w.nodes[w.active]; !active.takes[v1alpha1.AccountReplication].takes(n.receiver) {
			w.t.Fatalf("I21: the receiver of %s cannot connect to %s", n.name, active.name)
		}
	}
	if a := w.nodes[w.active]; !a.takes[v1alpha1.AccountClone].takes(w.cached.valid(v1alpha1.AccountClone)) {
		w.t.Fatal("I21: no clone could log in at the active site")
	}
}

// calm lets everything come to its end.
func (w *world) calm() {
	w.open = true
	for range 200 {
		for _, n := range w.nodes {
			n.reachable = true
			w.clone(n)
			for n.applied < len(w.log) && n != w.nodes[w.active] {
				before := n.applied
				if w.replicate(n); n.applied == before {
					break
				}
			}
			w.kubelet(n)
			w.receive(n)
		}
		w.settle()
		w.looks = nil
		for range 3 {
			w.step()
			w.check()
		}
	}
}

func tokens(w *world) []string {
	var out []string
	for _, a := range passwords.Accounts {
		e := w.secret.entries[a]
		if e.Next != "" || e.Previous != "" || e.Current != e.Known || e.Current == "" {
			out = append(out, a)
		}
	}
	return out
}

func mustSettle(t *testing.T, w *world) {
	t.Helper()
	if left := tokens(w); len(left) > 0 || w.order != "" {
		t.Errorf("not at its end: %v, order %q", left, w.order)
	}
}
