// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// undone is what there is to give up.
type undone struct {
	// order is the site that a pending order names.
	order   string
	ordered bool
	// asked is the site of a planned failover that the operator has not taken up: only the annotation is there.
	asked   string
	isAsked bool
	// underWay is true for a planned failover that the operator has taken up.
	underWay bool
}

func undoneOf(g *v1alpha1.MysqlFailoverGroup) undone {
	var u undone
	u.order, u.ordered = g.Annotations[v1alpha1.AnnotationForceFailover]
	p := g.Status.PlannedFailover
	u.underWay = p != nil && !planOver(p)
	if to, is := g.Annotations[v1alpha1.AnnotationPlannedFailover]; is && !(u.underWay && p.To == to) {
		u.asked, u.isAsked = to, true
	}
	return u
}

// abort gives up what was asked for and is not done: a planned failover, and an order that accepts data loss. What the operator
// has taken up it must answer. What it has not is taken off the group, also where no operator runs: an order must not outlast
// what it was meant for.
func (op *failoverOp) abort(ctx context.Context, env Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return exitError, err
	}
	u := undoneOf(g)
	if u == (undone{}) {
		return exitError, refused("refused: no planned failover of %s is under way, and no order that accepts data loss is pending\n  see the last ones: kubectl mfg history %s -n %s", op.Group, op.Group, op.Namespace)
	}
	plan, change := u.plan(g), u.change()
	title, question := "Give up the planned failover", "Give it up?"
	if u.ordered {
		title, question = "Withdraw the order that accepts data loss", "Withdraw it?"
	}
	op.showPlan(env, fmt.Sprintf("%s of %s (namespace %s)", title, op.Group, op.Namespace), plan)
	if err := op.confirm(ctx, env, question); err != nil {
		return exitError, err
	}
	rep := op.report("failover --abort", plan, change)
	before, err := op.submit(ctx, env, c, change, func(g *v1alpha1.MysqlFailoverGroup) error {
		if undoneOf(g) != u {
			return refused("refused: what there is to give up has changed meanwhile: nothing was changed\n  see how it is: kubectl mfg status %s -n %s", op.Group, op.Namespace)
		}
		return nil
	})
	if err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, rep)
	}
	after := before
	switch {
	case op.Wait && u.underWay:
		after, err = op.answered(ctx, env, c)
	case op.Wait:
		after, err = op.lookedAgain(ctx, env, c, before)
	}
	if err != nil {
		return exitError, err
	}
	op.judge(u, before, after, rep)
	return op.finish(env, rep)
}

func (u undone) plan(g *v1alpha1.MysqlFailoverGroup) []planLine {
	var plan []planLine
	if u.ordered {
		plan = append(plan,
			planLine{"Now", fmt.Sprintf("%s is ordered to take over, whatever is lost; the order is pending", orDash(u.order))},
			planLine{"After", "the order is withdrawn: the operator goes on by the rules of an emergency failover"})
	}
	if u.underWay {
		p := g.Status.PlannedFailover
		plan = append(plan,
			planLine{"Now", fmt.Sprintf("%s -> %s, %s: %s", orDash(p.From), p.To, p.Phase, p.Message)},
			planLine{"After", "the old active site is opened again under a further epoch; if the new one is past its gate already, it is opened instead"})
	}
	if u.isAsked {
		plan = append(plan,
			planLine{"Now", fmt.Sprintf("a planned failover to %s is asked for, and not taken up yet", orDash(u.asked))},
			planLine{"After", "it is not asked for any more; nothing was changed"})
	}
	return append(plan, planLine{"Loss", "nothing"})
}

func (u undone) change() map[string]string {
	change := map[string]string{}
	if u.underWay {
		change[v1alpha1.AnnotationAbortFailover] = "true"
	}
	if u.isAsked {
		change[v1alpha1.AnnotationPlannedFailover] = ""
	}
	if u.ordered {
		change[v1alpha1.AnnotationForceFailover] = ""
	}
	return change
}

// wasDone is true if the operator carried an order out in the moment in which it was withdrawn.
func (u undone) wasDone(before, after *v1alpha1.MysqlFailoverGroup) bool {
	const kind = v1alpha1.RequestForceFailover
	a, former, id := after.Status.LastRequest(kind), before.Status.LastRequest(kind), before.Annotations[kind.IDAnnotation()]
	if a == nil || a.Outcome != v1alpha1.RequestDone || a.Target != u.order || a.ID != id {
		return false
	}
	return id != "" || former == nil || !former.AnsweredAt.Equal(&a.AnsweredAt) // a person who asked by hand gave it no id
}

// answered waits for the operator's answer to the end of a planned failover.
func (op *failoverOp) answered(ctx context.Context, env Environment, c Cluster) (*v1alpha1.MysqlFailoverGroup, error) {
	return op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		_, asked := g.Annotations[v1alpha1.AnnotationAbortFailover]
		return !asked && g.Status.Transition == nil
	})
}

// lookedAgain is the group after a look of the operator that ended after the withdrawal: one that was under way then may have
// begun what was withdrawn. Where no operator runs nobody looks; who may not ask it waits for as long as a few looks take.
func (op *failoverOp) lookedAgain(ctx context.Context, env Environment, c Cluster, before *v1alpha1.MysqlFailoverGroup) (*v1alpha1.MysqlFailoverGroup, error) {
	op.stays = "it is withdrawn, and may have begun before"
	poll := before.Spec.Failover.PollInterval.Duration
	if poll <= 0 {
		poll = 2 * time.Second
	}
	unseen := env.Now().Add(3 * poll)
	var since time.Time // by the operator's clock
	_, err := op.follow(ctx, env, c, func(*v1alpha1.MysqlFailoverGroup) bool {
		list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group)
		if err != nil {
			_, down := whyNotLive(err, op.OperatorNamespace)
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
	return c.Group(ctx, op.Namespace, op.Group) // the one that follow has read may be older than that look
}

// judge says what came of it. What had begun before is not undone by a withdrawal.
func (op *failoverOp) judge(u undone, before, after *v1alpha1.MysqlFailoverGroup, rep *requestReport) {
	rep.Epoch, rep.Site, rep.Outcome = after.Status.Epoch, after.Status.ActiveSite, outcomeDone
	if u.underWay {
		op.judgeAnswer(after, rep)
	} else if u.isAsked {
		rep.Message = fmt.Sprintf("The planned failover to %s is not asked for any more.", orDash(u.asked))
		if p := (move{to: u.asked, before: before.Status.PlannedFailover}).ours(after); p != nil && (p.Phase == v1alpha1.PlannedMoving || p.Phase == v1alpha1.PlannedSucceeded) {
			rep.tooLate("the planned failover to %s had begun (%s); to give it up while it is under way: %s", p.To, p.Phase, withdrawal(op.Group, op.Namespace))
		}
	}
	if !u.ordered {
		return
	}
	goesOn := "goes on by the rules of an emergency failover; see kubectl mfg explain " + op.Group + " -n " + op.Namespace
	withdrawn := fmt.Sprintf("The order for %s to take over, whatever is lost, is withdrawn.", orDash(u.order))
	switch t := after.Status.Transition; {
	case t != nil && t.To == u.order:
		rep.tooLate("the role is moving to %s already (%s): that %s", t.To, t.Step, goesOn)
	case u.order != "" && after.Status.ActiveSite == u.order && (before.Status.ActiveSite != u.order || u.wasDone(before, after)):
		rep.tooLate("%s is active under epoch %d", u.order, after.Status.Epoch)
	case rep.Outcome != outcomeDone || u.underWay && !op.Wait: // the planned failover has the word
	case t != nil:
		rep.Message = withdrawn + fmt.Sprintf(" The role is moving to %s (%s): that %s", t.To, t.Step, goesOn)
	case u.order != "" && after.Status.ActiveSite == u.order:
		rep.Message = withdrawn + fmt.Sprintf(" %s is the active site under epoch %d.", u.order, after.Status.Epoch)
	default:
		rep.Message = strings.TrimSpace(withdrawn + " " + rep.Message)
	}
}

// judgeAnswer reads what the operator made of the end of a planned failover.
func (op *failoverOp) judgeAnswer(g *v1alpha1.MysqlFailoverGroup, rep *requestReport) {
	if !op.Wait {
		rep.Outcome, rep.Message = outcomeRequested, "asked for"
		return
	}
	rep.Message = fmt.Sprintf("%s is active under epoch %d.", g.Status.ActiveSite, g.Status.Epoch)
	if p := g.Status.PlannedFailover; p != nil {
		rep.Reason = p.Reason
		if p.Phase == v1alpha1.PlannedSucceeded {
			rep.Outcome, rep.Message = outcomeRefused, "it was too late: "+p.To+" had passed its gate and is active"
		}
	}
}

// tooLate is the outcome of what could not be kept from happening any more.
func (rep *requestReport) tooLate(format string, args ...any) {
	rep.Outcome, rep.Reason, rep.Message = outcomeRefused, "TooLate", "it was too late: "+fmt.Sprintf(format, args...)
}
