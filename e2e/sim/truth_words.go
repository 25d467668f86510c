// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// heard keeps what a sidecar knows by right: the greatest epoch, and when its lease was renewed last.
func (x *truth) heard(s *sidecar, w fence.Word) {
	st := w.Statement
	own := st.Namespace == namespace && st.Group == group
	if !own || w.Origin == fence.Operator && st.Nonce != w.Nonce {
		return
	}
	m := s.pod.mysqld
	if m != nil && m.openEpoch > 0 && st.Epoch == m.openEpoch+1 && st.ActiveSite == s.pod.site.name {
		m.openEpoch = st.Epoch
		if x.newest.m == m {
			x.newest.epoch = st.Epoch
		}
	}
	s.heardEpoch = max(s.heardEpoch, st.Epoch)
	lease := time.Duration(st.LeaseTimeoutMillis) * time.Millisecond
	if st.Epoch == s.heardEpoch && s.state.Newest().LeaseTimeoutMillis == st.LeaseTimeoutMillis && s.told != lease {
		s.told, s.toldAt = lease, x.w.now
	}
	if m != nil && w.Origin != fence.Push && st.Epoch == s.heardEpoch {
		sent := s.w.now - s.host.clock.real(s.mono()-w.SentAt)
		m.goodAt = max(m.goodAt, sent)
	}
}

// unmoved checks I3 against a stranger who sends a recorded statement: within an epoch, only what the sidecar asked the operator for changes whether
// it may open, until when its window is open, and its lease.
func (x *truth) unmoved(s *sidecar, before wire.Statement, w fence.Word) {
	after := s.state.Newest()
	if w.Origin == fence.Operator || after.Epoch != before.Epoch {
		return
	}
	was, had := before.WindowFor(s.pod.site.name, s.wall())
	is, has := after.WindowFor(s.pod.site.name, s.wall())
	if after.Hold != before.Hold || after.LeaseTimeoutMillis != before.LeaseTimeoutMillis || had != has || !was.Deadline.Equal(is.Deadline) {
		x.w.fail("I3", "%s changes what it knows of epoch %d by %s: hold %v, then %v; window %v, then %v",
			s.pod, before.Epoch, w.Origin, before.Hold, after.Hold, had, has)
	}
}

// vouches holds I5: what was acknowledged is never vouched below.
func (x *truth) vouches(s *sidecar, st wire.Statement) {
	if st.Epoch < s.pod.vol.acked {
		x.w.fail("I5", "%s vouches for epoch %d and has acknowledged %d", s.pod, st.Epoch, s.pod.vol.acked)
	}
}

// reports holds I5 and the truth of proofs.
func (x *truth) reports(s *sidecar, r wire.Report) {
	v := s.pod.vol
	if r.Epoch < v.acked || r.Epoch > v.kept.Statement.Epoch {
		x.w.fail("I5", "%s acknowledges epoch %d; %d is on its volume, %d was acknowledged", s.pod, r.Epoch, v.kept.Statement.Epoch, v.acked)
	}
	v.acked = max(v.acked, r.Epoch)
	m := s.pod.mysqld
	if m.running() && !m.doomed && m.opensToCome > 0 && r.FencedUnder(r.Epoch) {
		x.w.fail("I1", "%s reports itself fenced under epoch %d while a statement that opens it is under way", s.pod, r.Epoch)
	}
	if m != nil && r.FencedUnder(r.Epoch) && m.accepts() && !m.tampered {
		x.w.fail("I1", "%s reports itself fenced under epoch %d and accepts commits", s.pod, r.Epoch)
	}
}

// states holds that nothing is said before it is durable, and that an epoch has one site.
func (x *truth) states(s wire.Statement) {
	if s.Epoch > x.epoch {
		x.w.fail("I2", "epoch %d is stated before it is persisted; %d is", s.Epoch, x.epoch)
	}
	if known, was := x.sites[s.Epoch]; was && known != s.ActiveSite {
		x.w.fail("I1", "epoch %d is stated for %s and for %s", s.Epoch, known, s.ActiveSite)
	}
	x.sites[s.Epoch] = s.ActiveSite
}

// persisted holds that epochs only grow.
func (x *truth) persisted(d failover.Durable) {
	if d.Epoch < x.standing {
		x.w.fail("I2", "epoch %d is persisted after %d", d.Epoch, x.standing)
	}
	x.standing = d.Epoch
	x.epoch = max(x.epoch, d.Epoch)
	if d.Transition != nil {
		x.changes[d.Epoch] = *d.Transition
	} else {
		x.completed[d.Epoch] = true
		x.past = append(x.past, d)
	}
}
