// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"github.com/mysql-mfg/mfg/operator/gate"
	"github.com/mysql-mfg/mfg/operator/promotion"
)

// asked is what the gate is asked of a site that loses the role.
func asked(s Snapshot, m Memory, x string) gate.Question {
	t := Transition{}
	if s.Status.Transition != nil {
		t = *s.Status.Transition
	}
	t.From, s.Status.Transition = x, &t
	return questionOf(promotion.WithOrder(s), m)
}

// fenceProof is the gate's proof that a site accepts no commits, in words.
func fenceProof(s Snapshot, m Memory, x string) string {
	q := asked(s, m, x)
	proof, epoch := q.Fenced(q.Old)
	if proof == "" {
		return ""
	}
	return inWords(q, gate.Answer{Proof: proof, Epoch: epoch}).Evidence[0]
}

// leaseRunOut is its answer by time alone.
func leaseRunOut(s Snapshot, m Memory, x string) Gate {
	q := asked(s, m, x)
	return inWords(q, q.LeaseRunOut(q.Old))
}
