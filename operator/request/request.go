// SPDX-License-Identifier: Apache-2.0

package request

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Anyone may write any length into an annotation; these bound how many bytes of it status keeps.
const (
	maxID      = 64
	maxTarget  = 256
	maxReason  = 64
	maxMessage = 2048
)

// Request is what a person asks for by an annotation.
type Request struct {
	Kind v1alpha1.RequestKind
	// Value is the value of the annotation.
	Value string
	// ID tells it apart from others of its kind; empty if it has no id yet.
	ID string
}

// Of returns the request of a kind that is on a group, answered or not.
func Of(g *v1alpha1.MysqlFailoverGroup, kind v1alpha1.RequestKind) (q Request, stands bool) {
	value, stands := g.Annotations[kind.Annotation()]
	return Request{Kind: kind, Value: value, ID: cut(g.Annotations[kind.IDAnnotation()], maxID)}, stands
}

// Open is Of, but leaves out a request that is answered and only still has to be removed.
func Open(g *v1alpha1.MysqlFailoverGroup, kind v1alpha1.RequestKind) (q Request, stands bool) {
	q, stands = Of(g, kind)
	return q, stands && !q.IsAnswered(g)
}

// IsAnswered is true if status has the answer to this very request. A request without an id cannot be told from the one before.
func (q Request) IsAnswered(g *v1alpha1.MysqlFailoverGroup) bool {
	last := g.Status.LastRequest(q.Kind)
	return last != nil && q.ID != "" && last.ID == q.ID && last.Target == cut(q.Value, maxTarget)
}

// Answer is the outcome of a request.
type Answer struct {
	Outcome v1alpha1.RequestOutcome
	// Reason is one CamelCase word; Message explains it to people.
	Reason, Message string
}

// Done answers a request that was carried out.
func Done(message string) Answer {
	return Answer{v1alpha1.RequestDone, v1alpha1.AnswerCompleted, message}
}

// Refused answers a request for which nothing was done.
func Refused(reason, message string) Answer {
	return Answer{v1alpha1.RequestRefused, reason, message}
}

// String returns the answer as events show it.
func (a Answer) String() string {
	return strings.ToLower(string(a.Outcome)) + " (" + a.Reason + "): " + a.Message
}

// entry returns the answer as status has it.
func (a Answer) entry(q Request, now metav1.MicroTime) v1alpha1.LastRequest {
	return v1alpha1.LastRequest{
		Kind: q.Kind, ID: q.ID, Target: cut(q.Value, maxTarget), Outcome: a.Outcome,
		Reason: cut(a.Reason, maxReason), Message: cut(a.Message, maxMessage), AnsweredAt: now,
	}
}

// note puts an answer into a copy of status, as the API server does.
func note(s *v1alpha1.MysqlFailoverGroupStatus, entry v1alpha1.LastRequest) {
	if last := s.LastRequest(entry.Kind); last != nil {
		*last = entry
		return
	}
	s.LastRequests = append(s.LastRequests, entry)
}

// cut shortens a text that goes into status.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}
