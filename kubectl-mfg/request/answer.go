// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"crypto/rand"
	"maps"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// Named gives each request among the changes an id, which its answer carries. A request that repeats a pending one shares
// its id, unless that one has its answer by now.
func (r *Request) Named(g *v1alpha1.MysqlFailoverGroup, change map[string]string) map[string]string {
	out := maps.Clone(change)
	for key, value := range change {
		kind := v1alpha1.RequestOf(key)
		if kind == "" {
			continue
		}
		if value == "" {
			out[kind.IDAnnotation()] = ""
			continue
		}
		id, last := g.Annotations[kind.IDAnnotation()], g.Status.LastRequest(kind)
		if g.Annotations[key] != value || id == "" || last != nil && last.ID == id {
			id = rand.Text()
		}
		out[kind.IDAnnotation()], r.ID = id, id
	}
	return out
}

// Stands is true while the request is on the group. Its id is the one that it has by now.
func (r *Request) Stands(g *v1alpha1.MysqlFailoverGroup, kind v1alpha1.RequestKind, value string) bool {
	now, is := g.Annotations[kind.Annotation()]
	id := g.Annotations[kind.IDAnnotation()]
	if !is || now != value || id != r.ID && r.Answer(g, kind) != nil {
		return false // another person may have asked for the same since this was answered
	}
	r.ID = cmp.Or(id, r.ID)
	return true
}

// Answer returns the operator's answer to the request; nil if it left none.
func (r *Request) Answer(g *v1alpha1.MysqlFailoverGroup, kind v1alpha1.RequestKind) *v1alpha1.LastRequest {
	if last := g.Status.LastRequest(kind); last != nil && r.ID != "" && last.ID == r.ID {
		return last
	}
	return nil
}

// WithoutAnswer is the text for a request that is gone from the group without an answer of the operator.
const WithoutAnswer = "it is gone from the group without an answer: withdrawn by a person, or replaced by another request"

// Take fills in the outcome of a request that is no planned failover, and returns true if it was carried out.
func (rep *Report) Take(a *v1alpha1.LastRequest) bool {
	if a == nil {
		rep.Outcome, rep.Reason, rep.Message = cli.OutcomeRefused, v1alpha1.ReasonNotAnswered, WithoutAnswer
		return false
	}
	rep.Outcome, rep.Reason, rep.Message = cli.OutcomeRefused, v1alpha1.Reason(a.Reason), a.Message
	if a.Outcome == v1alpha1.RequestDone {
		rep.Outcome = cli.OutcomeDone
	}
	return rep.Outcome == cli.OutcomeDone
}
