// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// object is the group as the API server holds it: the part of the poll loop, the part of the controller, and what a
// person writes.
type object struct {
	version int64
	durable failover.Durable
	// provisioned and volumes are the controller's, errant what the loop found diverged.
	provisioned map[string]bool
	volumes     map[string]string
	// nodes are where the pods that held the noted volumes ran.
	nodes map[string]string
	// unlisted are the new sites that nobody's sidecar was told of yet.
	unlisted map[string]bool
	errant   map[string]gtid.Set

	// kept are the sites that a person keeps fenced.
	kept map[string]bool

	forceTo, plannedTo string
	abort              bool
	pausedUntil        time.Time
	maxLost            *int64
}

// apiserver is the API server: objects behind optimistic locking, on a machine of its own that may be out of reach.
type apiserver struct {
	w     *world
	host  *node
	group object
	pods  []*pod
	// ended are the pods that were seen to go after their kubelet had told that they ended, in order.
	ended []string
	lease lease
	// away: it answers nobody, in doubt: it does what it is asked and the answer is lost.
	away, inDoubt bool
}

// lease is the Lease of the leader election.
type lease struct {
	holder  string
	renewed int64
}

const apiTimeout = 3 * time.Second

// call is one request of a task; f runs at the API server, on the objects as they are there.
func (a *apiserver) call(t *task, f func()) bool { return a.callWithin(t, apiTimeout, f) }

func (a *apiserver) callWithin(t *task, d time.Duration, f func()) bool {
	return t.ask(a.host, d, func(reply func()) {
		if a.away {
			return
		}
		f()
		if a.inDoubt && a.w.chance(0.5) {
			a.w.count("api outcome unknown")
			return
		}
		reply()
	})
}

// change writes the group. Written maps are never changed in place, so that a copy of the object stays what it was.
func (a *apiserver) change(f func(*object)) {
	a.group.version++
	f(&a.group)
	a.w.truth.persisted(a.group.durable)
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	out := make(map[string]V, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	out[key] = value
	return out
}

func without[V any](m map[string]V, key string) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// podView is a pod object as a watcher sees it.
type podView struct {
	pod       *pod
	hasIP     bool
	phase     phase
	bootstrap bool
}

func (a *apiserver) tellEnded(p *pod) { a.ended = append(a.ended, p.uid) }

// podsOf lists the pods of a site, the newest first.
func (a *apiserver) view() []podView {
	out := make([]podView, 0, len(a.pods))
	for i := len(a.pods) - 1; i >= 0; i-- {
		p := a.pods[i]
		out = append(out, podView{pod: p, hasIP: p.hasIP, phase: p.phase, bootstrap: p.bootstrapped})
	}
	return out
}
