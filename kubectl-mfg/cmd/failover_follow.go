// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// move is a planned failover that was asked for.
type move struct {
	to string
	// before is the one that was noted last when it was asked for: what differs from it is ours.
	before *v1alpha1.PlannedFailoverStatus
}

// ours finds the note of this move.
func (m move) ours(g *v1alpha1.MysqlFailoverGroup) *v1alpha1.PlannedFailoverStatus {
	p := g.Status.PlannedFailover
	switch {
	case p == nil || p.To != m.to:
		return nil
	case m.before != nil && sameMicroTime(p, m.before) && p.Phase == m.before.Phase && p.Answered == m.before.Answered:
		return nil
	case m.before != nil && sameMicroTime(p, m.before):
		return nil // an old one that was answered just now
	}
	return p
}

func sameMicroTime(a, b *v1alpha1.PlannedFailoverStatus) bool {
	return a.StartedAt.Equal(b.StartedAt) && a.To == b.To
}

// followMove tells each phase, and fills in the outcome.
func (r *request) followMove(ctx context.Context, env Environment, c Cluster, m move, rep *requestReport) error {
	began, said := env.Now(), ""
	tell := func(words string) {
		if words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
	}
	tell("asked the operator")
	g, err := r.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		asked := r.stands(g, v1alpha1.RequestPlannedFailover, m.to)
		p := m.ours(g)
		if p != nil {
			tell(phaseWords(p, g.Status.Transition))
		}
		return !asked && (p == nil || planOver(p))
	})
	if err != nil {
		return err
	}
	settle(g, m, r.answer(g, v1alpha1.RequestPlannedFailover), rep)
	return nil
}

func phaseWords(p *v1alpha1.PlannedFailoverStatus, t *v1alpha1.Transition) string {
	words := string(p.Phase)
	if p.Phase == v1alpha1.PlannedMoving && t != nil {
		words += ", " + string(t.Step)
	}
	if p.Message != "" {
		words += ": " + p.Message
	}
	return words
}

// settle reads the outcome: from what status says of the move, or, where an other one has taken its place there, from the answer.
func settle(g *v1alpha1.MysqlFailoverGroup, m move, answer *v1alpha1.LastRequest, rep *requestReport) {
	rep.Epoch = g.Status.Epoch
	p := m.ours(g)
	if p == nil {
		rep.take(answer)
		if answer != nil && answer.Outcome == v1alpha1.RequestFailed {
			rep.Outcome = string(v1alpha1.PlannedReverted)
			if answer.Reason == v1alpha1.AnswerAborted {
				rep.Outcome = string(v1alpha1.PlannedAborted)
			}
		}
		if rep.Outcome != outcomeDone {
			rep.Next = nextStep(g.Namespace, g.Name, nil)
		}
		return
	}
	rep.Outcome, rep.Reason, rep.Message, rep.WritePauseMillis = string(p.Phase), p.Reason, p.Message, p.WritePauseMillis
	if p.Phase != v1alpha1.PlannedSucceeded {
		rep.Next = nextStep(g.Namespace, g.Name, remediesOf(p))
		return
	}
	lost := int64(0)
	for _, f := range g.Status.Failovers {
		if f.To == m.to && f.Kind == v1alpha1.FailoverPlanned {
			lost, rep.Epoch = f.LostTransactions, f.Epoch
			break
		}
	}
	rep.LostTransactions = &lost
	rep.Message = fmt.Sprintf("%s is active under epoch %d. Writes were kept out for %s, as the operator measured it: from the persisted intent to the open site. %d transactions were lost.",
		m.to, rep.Epoch, pauseOf(p), lost)
}

func pauseOf(p *v1alpha1.PlannedFailoverStatus) string {
	if p.WritePauseMillis == nil {
		return "a time that was not measured"
	}
	return (time.Duration(*p.WritePauseMillis) * time.Millisecond).String()
}

func siteNames(g *v1alpha1.MysqlFailoverGroup) string {
	names := make([]string, 0, len(g.Spec.Sites))
	for _, s := range g.Spec.Sites {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

func orDash(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}
