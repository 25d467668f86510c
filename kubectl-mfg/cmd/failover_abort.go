// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// abort gives up what was asked for and is not done: a planned failover, and an order that accepts data loss. The operator
// answers the former. The latter is taken off the group, also where no operator runs: an order must not outlast what it was
// meant for.
func (op *failoverOp) abort(ctx context.Context, env Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return exitError, err
	}
	order, isOrdered := g.Annotations[v1alpha1.AnnotationForceFailover]
	isPlanned := plannedUnderWay(g)
	if !isOrdered && !isPlanned {
		return exitError, refused("refused: no planned failover of %s is under way, and no order that accepts data loss is pending\n  see the last ones: kubectl mfg history %s -n %s", op.Group, op.Group, op.Namespace)
	}
	change := map[string]string{}
	var plan []planLine
	if isOrdered {
		change[v1alpha1.AnnotationForceFailover] = ""
		plan = append(plan,
			planLine{"Now", fmt.Sprintf("%s is ordered to take over, whatever is lost; the order is pending", orDash(order))},
			planLine{"After", "the order is withdrawn: the operator goes on by the rules of an emergency failover"})
	}
	if isPlanned {
		change[v1alpha1.AnnotationAbortFailover] = "true"
		plan = append(plan,
			planLine{"Now", phaseNow(g)},
			planLine{"After", "the old active site is opened again under a further epoch; if the new one is past its gate already, it is opened instead"})
	}
	plan = append(plan, planLine{"Loss", "nothing"})
	title, question := "Give up the planned failover", "Give it up?"
	if isOrdered {
		title, question = "Withdraw the order that accepts data loss", "Withdraw it?"
	}
	op.showPlan(env, fmt.Sprintf("%s of %s (namespace %s)", title, op.Group, op.Namespace), plan)
	if err := op.confirm(ctx, env, question); err != nil {
		return exitError, err
	}
	rep := op.report("failover --abort", plan, change)
	before, err := op.submit(ctx, env, c, change, func(g *v1alpha1.MysqlFailoverGroup) error {
		if now, is := g.Annotations[v1alpha1.AnnotationForceFailover]; now != order || is != isOrdered || plannedUnderWay(g) != isPlanned {
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
	if isOrdered && !isPlanned {
		rep.Epoch, rep.Site = before.Status.Epoch, before.Status.ActiveSite
		rep.Outcome, rep.Message = outcomeDone, withdrawnWords(before, order)
		return op.finish(env, rep)
	}
	return op.aborted(ctx, env, c, rep)
}

func plannedUnderWay(g *v1alpha1.MysqlFailoverGroup) bool {
	_, asked := g.Annotations[v1alpha1.AnnotationPlannedFailover]
	p := g.Status.PlannedFailover
	return asked || p != nil && !planOver(p)
}

// withdrawnWords say what the withdrawal of an order cannot undo.
func withdrawnWords(g *v1alpha1.MysqlFailoverGroup, order string) string {
	words := fmt.Sprintf("The order for %s to take over, whatever is lost, is withdrawn.", orDash(order))
	switch t := g.Status.Transition; {
	case t != nil:
		words += fmt.Sprintf(" The role is moving to %s already (%s): that goes on by the rules of an emergency failover; see kubectl mfg explain %s -n %s", t.To, t.Step, g.Name, g.Namespace)
	case order != "" && g.Status.ActiveSite == order:
		words += fmt.Sprintf(" %s is the active site under epoch %d.", order, g.Status.Epoch)
	}
	return words
}

func phaseNow(g *v1alpha1.MysqlFailoverGroup) string {
	if p := g.Status.PlannedFailover; p != nil && !planOver(p) {
		return fmt.Sprintf("%s -> %s, %s: %s", orDash(p.From), p.To, p.Phase, p.Message)
	}
	return "asked for, and not taken up yet"
}

func (op *failoverOp) aborted(ctx context.Context, env Environment, c Cluster, rep *requestReport) (int, error) {
	if !op.Wait {
		rep.Outcome, rep.Message = outcomeRequested, "asked for"
		return op.finish(env, rep)
	}
	g, err := op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		_, asked := g.Annotations[v1alpha1.AnnotationAbortFailover]
		return !asked && g.Status.Transition == nil
	})
	if err != nil {
		return exitError, err
	}
	rep.Epoch, rep.Site = g.Status.Epoch, g.Status.ActiveSite
	rep.Outcome, rep.Message = outcomeDone, fmt.Sprintf("%s is active under epoch %d.", g.Status.ActiveSite, g.Status.Epoch)
	if p := g.Status.PlannedFailover; p != nil {
		rep.Reason = p.Reason
		if p.Phase == v1alpha1.PlannedSucceeded {
			rep.Outcome, rep.Message = outcomeRefused, "it was too late: "+p.To+" had passed its gate and is active"
		}
	}
	return op.finish(env, rep)
}
