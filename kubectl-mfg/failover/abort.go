// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Undone is what can be aborted. Two of them are compared with ==: what a person confirmed, and what there is by then.
type Undone struct {
	// Order is the site that a pending order names.
	Order   string
	Ordered bool
	// Asked is the site of a planned failover that the operator has not taken up: only the annotation is there.
	Asked   string
	IsAsked bool
	// underWay is true for a planned failover that the operator has taken up.
	underWay bool
	// to and startedAt, in microseconds, tell that move from a later one: the annotation that aborts names none.
	to        string
	startedAt int64
}

func undoneOf(g *v1alpha1.MysqlFailoverGroup) Undone {
	var u Undone
	u.Order, u.Ordered = g.Annotations[v1alpha1.AnnotationForceFailover]
	p := g.Status.PlannedFailover
	if p != nil && !request.PlanOver(p) {
		u.underWay, u.to = true, p.To
		if p.StartedAt != nil {
			u.startedAt = p.StartedAt.UnixMicro()
		}
	}
	if to, is := g.Annotations[v1alpha1.AnnotationPlannedFailover]; is && !(u.underWay && p.To == to) {
		u.Asked, u.IsAsked = to, true
	}
	return u
}

// abort aborts requests that are not carried out yet: a planned failover, and an order that accepts data loss. The operator
// must answer what it has taken up. The rest is removed from the group, even if no operator runs: an order must not outlast its
// purpose.
func (op *Op) abort(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	u := undoneOf(g)
	if u == (Undone{}) {
		return cli.ExitError, cli.Refused("refused: no planned failover of %s is under way, and no order that accepts data loss is pending\n  see the last ones: kubectl mfg history %s -n %s", op.Group, op.Group, op.Namespace)
	}
	plan, change := u.plan(g), u.Change()
	title, question := "Give up the planned failover", "Give it up?"
	if u.Ordered {
		title, question = "Withdraw the order that accepts data loss", "Withdraw it?"
	}
	op.ShowPlan(env, fmt.Sprintf("%s of %s (namespace %s)", title, op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, question); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("failover --abort", plan, change)
	before, err := op.Submit(ctx, env, c, change, func(g *v1alpha1.MysqlFailoverGroup) error {
		if undoneOf(g) != u {
			return cli.Refused("refused: what there is to give up has changed meanwhile: nothing was changed\n  see how it is: kubectl mfg status %s -n %s", op.Group, op.Namespace)
		}
		return nil
	})
	if err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	after := before
	switch {
	case op.Wait && u.underWay:
		after, err = op.answered(ctx, env, c)
	case op.Wait:
		after, err = op.lookedAgain(ctx, env, c, before)
	}
	if err != nil {
		return cli.ExitError, err
	}
	op.judge(u, before, after, rep)
	return op.Finish(env, rep)
}

func (u Undone) plan(g *v1alpha1.MysqlFailoverGroup) []screen.Line {
	var plan []screen.Line
	if u.Ordered {
		plan = append(plan,
			screen.Line{Label: "Now", Text: fmt.Sprintf("%s is ordered to take over at the price of data loss; the order is pending", cli.OrNoSite(u.Order))},
			screen.Line{Label: "After", Text: "the order is withdrawn: the operator follows the rules of an emergency failover again"})
	}
	if u.underWay {
		p := g.Status.PlannedFailover
		plan = append(plan,
			screen.Line{Label: "Now", Text: fmt.Sprintf("%s -> %s, %s: %s", cli.OrNoSite(p.From), p.To, p.Phase, p.Message)},
			screen.Line{Label: "After", Text: "the old active site is opened again under a further epoch; if the new one is past its gate already, it is opened instead"})
	}
	if u.IsAsked {
		plan = append(plan,
			screen.Line{Label: "Now", Text: fmt.Sprintf("a planned failover to %s is asked for, and not taken up yet", cli.OrNoSite(u.Asked))},
			screen.Line{Label: "After", Text: "it is not asked for any more; nothing was changed"})
	}
	return append(plan, screen.Line{Label: "Loss", Text: "nothing"})
}

// Change returns the annotations that abort it.
func (u Undone) Change() map[string]string {
	change := map[string]string{}
	if u.underWay {
		change[v1alpha1.AnnotationAbortFailover] = "true"
	}
	if u.IsAsked {
		change[v1alpha1.AnnotationPlannedFailover] = ""
	}
	if u.Ordered {
		change[v1alpha1.AnnotationForceFailover] = ""
	}
	return change
}

// WasDone is true if the operator carried out an order at the moment of its withdrawal.
func (u Undone) WasDone(before, after *v1alpha1.MysqlFailoverGroup) bool {
	const kind = v1alpha1.RequestForceFailover
	a, former, id := after.Status.LastRequest(kind), before.Status.LastRequest(kind), before.Annotations[kind.IDAnnotation()]
	if a == nil || a.Outcome != v1alpha1.RequestDone || a.Target != u.Order || a.ID != id {
		return false
	}
	return id != "" || former == nil || !former.AnsweredAt.Equal(&a.AnsweredAt) // a person who asked by hand gave it no id
}

// answered waits for the operator's answer to the end of a planned failover.
func (op *Op) answered(ctx context.Context, env cli.Environment, c request.Cluster) (*v1alpha1.MysqlFailoverGroup, error) {
	return op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		_, asked := g.Annotations[v1alpha1.AnnotationAbortFailover]
		return !asked && g.Status.Transition == nil
	})
}

// lookedAgain returns the group after a look of the operator that ended after the withdrawal: a look under way then may have begun what was
// withdrawn. Without an operator there is no look; a user who may not ask it waits for the time of a few looks.
func (op *Op) lookedAgain(ctx context.Context, env cli.Environment, c request.Cluster, before *v1alpha1.MysqlFailoverGroup) (*v1alpha1.MysqlFailoverGroup, error) {
	op.Stays = "it is withdrawn, and may have begun before"
	poll := before.Spec.Failover.PollInterval.Duration
	if poll <= 0 {
		poll = 2 * time.Second
	}
	unseen := env.Now().Add(3 * poll)
	var since time.Time // by the operator's clock
	_, err := op.Follow(ctx, env, c, func(*v1alpha1.MysqlFailoverGroup) bool {
		list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group)
		if err != nil {
			_, down := live.WhyNot(err, op.OperatorNamespace)
			return down || env.Now().After(unseen)
		}
		if since.IsZero() {
			since = list.IssuedAt
		}
		return len(list.Groups) == 1 && list.Groups[0].ObservedAt.After(since)
	})
	if err != nil {
		return nil, err
	}
	return c.Group(ctx, op.Namespace, op.Group) // the one that follow read may be older than that look
}

// judge says what came of the withdrawal, which does not undo what had already begun.
func (op *Op) judge(u Undone, before, after *v1alpha1.MysqlFailoverGroup, rep *request.Report) {
	rep.Epoch, rep.Site, rep.Outcome = after.Status.Epoch, after.Status.ActiveSite, cli.OutcomeDone
	if u.underWay {
		op.judgeAnswer(after, rep)
	} else if u.IsAsked {
		rep.Message = fmt.Sprintf("The planned failover to %s is not asked for any more.", cli.OrNoSite(u.Asked))
		if p := (Move{To: u.Asked, Before: before.Status.PlannedFailover}).ours(after); p != nil && (p.Phase == v1alpha1.PlannedMoving || p.Phase == v1alpha1.PlannedSucceeded) {
			rep.TooLate("the planned failover to %s had begun (%s); to give it up while it is under way: %s", p.To, p.Phase, request.Withdrawal(op.Group, op.Namespace))
		}
	}
	if !u.Ordered {
		return
	}
	goesOn := "follows the rules of an emergency failover again; see kubectl mfg explain " + op.Group + " -n " + op.Namespace
	withdrawn := fmt.Sprintf("The order for %s to take over at the price of data loss is withdrawn.", cli.OrNoSite(u.Order))
	switch t := after.Status.Transition; {
	case t != nil && t.To == u.Order:
		rep.TooLate("the role is moving to %s already (%s): that %s", t.To, t.Step, goesOn)
	case u.Order != "" && after.Status.ActiveSite == u.Order && (before.Status.ActiveSite != u.Order || u.WasDone(before, after)):
		rep.TooLate("%s is active under epoch %d", u.Order, after.Status.Epoch)
	case rep.Outcome != cli.OutcomeDone || u.underWay && !op.Wait: // the planned failover decides the outcome
	case t != nil:
		rep.Message = withdrawn + fmt.Sprintf(" The role is moving to %s (%s): that %s", t.To, t.Step, goesOn)
	case u.Order != "" && after.Status.ActiveSite == u.Order:
		rep.Message = withdrawn + fmt.Sprintf(" %s is the active site under epoch %d.", u.Order, after.Status.Epoch)
	default:
		rep.Message = strings.TrimSpace(withdrawn + " " + rep.Message)
	}
}

// judgeAnswer reads the operator's answer about the end of a planned failover.
func (op *Op) judgeAnswer(g *v1alpha1.MysqlFailoverGroup, rep *request.Report) {
	if !op.Wait {
		rep.Outcome, rep.Message = cli.OutcomeRequested, "asked for"
		return
	}
	rep.Message = fmt.Sprintf("%s is active under epoch %d.", g.Status.ActiveSite, g.Status.Epoch)
	if p := g.Status.PlannedFailover; p != nil {
		rep.Reason = p.Reason
		if p.Phase == v1alpha1.PlannedSucceeded {
			rep.Outcome, rep.Message = cli.OutcomeRefused, "it was too late: "+p.To+" had passed its gate and is active"
		}
	}
}
