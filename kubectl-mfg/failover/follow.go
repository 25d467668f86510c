// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Move is a requested planned failover.
type Move struct {
	To string
	// Before is the last one in status at the time of the request: one that differs from it is ours.
	Before *v1alpha1.PlannedFailoverStatus
}

// ours finds the note of this move.
func (m Move) ours(g *v1alpha1.MysqlFailoverGroup) *v1alpha1.PlannedFailoverStatus {
	p := g.Status.PlannedFailover
	switch {
	case p == nil || p.To != m.To:
		return nil
	case m.Before != nil && sameMicroTime(p, m.Before) && p.Phase == m.Before.Phase && p.Answered == m.Before.Answered:
		return nil
	case m.Before != nil && sameMicroTime(p, m.Before):
		return nil // an old one that was answered just now
	}
	return p
}

func sameMicroTime(a, b *v1alpha1.PlannedFailoverStatus) bool {
	return a.StartedAt.Equal(b.StartedAt) && a.To == b.To
}

// Follow reports each phase, and fills in the outcome.
func (m Move) Follow(ctx context.Context, r *request.Request, env cli.Environment, c request.Cluster, rep *request.Report) error {
	began, said := env.Now(), ""
	tell := func(words string) {
		if words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
	}
	tell("asked the operator")
	g, err := r.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		asked := r.Stands(g, v1alpha1.RequestPlannedFailover, m.To)
		p := m.ours(g)
		if p != nil {
			tell(phaseWords(p, g.Status.Transition))
		}
		return !asked && (p == nil || request.PlanOver(p))
	})
	if err != nil {
		return err
	}
	Settle(g, m, r.Answer(g, v1alpha1.RequestPlannedFailover), rep)
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

// Settle reads the outcome: from what status says of the move or, if another has replaced it there, from the answer.
func Settle(g *v1alpha1.MysqlFailoverGroup, m Move, answer *v1alpha1.LastRequest, rep *request.Report) {
	rep.Epoch = g.Status.Epoch
	p := m.ours(g)
	if p == nil {
		rep.Take(answer)
		if answer != nil && answer.Outcome == v1alpha1.RequestFailed {
			rep.Outcome = string(v1alpha1.PlannedReverted)
			if answer.Reason == v1alpha1.AnswerAborted {
				rep.Outcome = string(v1alpha1.PlannedAborted)
			}
		}
		if rep.Outcome != cli.OutcomeDone {
			rep.Next = request.NextStep(g.Namespace, g.Name, nil)
		}
		return
	}
	rep.Outcome, rep.Reason, rep.Message, rep.WritePauseMillis = string(p.Phase), p.Reason, p.Message, p.WritePauseMillis
	if p.Phase != v1alpha1.PlannedSucceeded {
		rep.Next = request.NextStep(g.Namespace, g.Name, remediesOf(p))
		return
	}
	lost := int64(0)
	for _, f := range g.Status.Failovers {
		if f.To == m.To && f.Kind == v1alpha1.FailoverPlanned {
			lost, rep.Epoch = f.LostTransactions, f.Epoch
			break
		}
	}
	rep.LostTransactions = &lost
	rep.Message = fmt.Sprintf("%s is active under epoch %d. Writes were kept out for %s, as the operator measured it: from the persisted intent to the open site. Lost: %s.",
		m.To, rep.Epoch, pauseOf(p), gtid.Transactions(lost))
}

func pauseOf(p *v1alpha1.PlannedFailoverStatus) string {
	if p.WritePauseMillis == nil {
		return "a time that was not measured"
	}
	return (time.Duration(*p.WritePauseMillis) * time.Millisecond).String()
}

// remediesOf returns the remedies of a planned failover in the form of api/wire.
func remediesOf(p *v1alpha1.PlannedFailoverStatus) (all []wire.Remedy) {
	for _, r := range p.Remedies {
		all = append(all, wire.Remedy(r))
	}
	return all
}
