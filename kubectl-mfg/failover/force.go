// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// force orders an emergency failover that something blocks.
func (op *Op) force(ctx context.Context, env cli.Environment, c request.Cluster, view request.Outlook) (int, error) {
	if err := op.forceAllowed(view); err != nil {
		return cli.ExitError, err
	}
	change := map[string]string{v1alpha1.AnnotationForceFailover: op.To}
	plan := op.forcePlan(view)
	op.ShowPlan(env, fmt.Sprintf("Failover of %s (namespace %s) to %s that ACCEPTS DATA LOSS", op.Group, op.Namespace, op.To), plan)
	if err := op.ConfirmName(ctx, env, "Acknowledged writes may be lost for good."); err != nil {
		return cli.ExitError, err
	}
	if err := op.stillNeeded(ctx, c, view.Group); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("failover --accept-data-loss", plan, change)
	rep.Site, rep.From = op.To, view.Report.ActiveSite
	_, err := op.Submit(ctx, env, c, change, func(g *v1alpha1.MysqlFailoverGroup) error { return op.orderable(g, view.Group) })
	if err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	if !op.Wait {
		rep.Requested("ordered", "kubectl mfg explain "+op.Group+" -n "+op.Namespace+"; to withdraw it: "+request.Withdrawal(op.Group, op.Namespace))
		return op.Finish(env, rep)
	}
	if err := op.followForce(ctx, env, c, rep); err != nil {
		return cli.ExitError, err
	}
	return op.Finish(env, rep)
}

// forceAllowed refuses an order that is not needed, and one that cannot be carried out.
func (op *Op) forceAllowed(view request.Outlook) error {
	if err := op.Allowed(view.Group); err != nil {
		return err
	}
	for _, s := range view.Report.Sites {
		if s.Active && s.Writable != nil && *s.Writable && !stalled(view.Report) {
			return cli.Refused("refused: %s accepts writes, so nothing needs to be lost\n  move the role without loss: kubectl mfg failover %s -n %s --to %s",
				s.Name, op.Group, op.Namespace, op.To)
		}
	}
	if s, known := view.Site(op.To); known && s.Reachable != nil && !*s.Reachable {
		return cli.Refused("refused: %s does not answer and could not be opened\n  see why: kubectl describe pods -n %s -l %s", op.To, op.Namespace, pods.Selector(op.Group, op.To))
	}
	return nil
}

// stillNeeded looks again once a person has typed the name, which may take minutes: by then the active site may be back, or the operator may
// move the role without loss, and the order would take it elsewhere.
func (op *Op) stillNeeded(ctx context.Context, c request.Cluster, shown *v1alpha1.MysqlFailoverGroup) error {
	now, err := op.Look(ctx, c)
	if err != nil {
		return err
	}
	if err := op.Unmoved(now.Group, shown); err != nil {
		return err
	}
	return op.forceAllowed(now)
}

// orderable refuses what the custom resource alone shows, in the moment in which the order is sent.
func (op *Op) orderable(g, shown *v1alpha1.MysqlFailoverGroup) error {
	if err := op.Allowed(g); err != nil {
		return err
	}
	if other := g.Annotations[v1alpha1.AnnotationForceFailover]; other != "" && other != op.To {
		return cli.Refused("refused: another person already ordered %s\n  to withdraw that: %s", other, request.Withdrawal(op.Group, op.Namespace))
	}
	return op.Unmoved(g, shown)
}

// stalled is true while the active site is open and its volume takes no writes: it acknowledges none, and only an order moves the role if the
// rules keep it there.
func stalled(r report.MysqlFailoverGroupReport) bool {
	return slices.ContainsFunc(r.Conditions, func(c report.Condition) bool {
		return c.Type == v1alpha1.ConditionAvailable && c.Status == string(metav1.ConditionFalse) &&
			(c.Reason == wire.WriteDiskStalled || c.Reason == wire.WriteDiskFailed)
	})
}

func (op *Op) forcePlan(view request.Outlook) []screen.Line {
	r, loss, blocked := view.Report, "not known: the operator could not be asked", ""
	if e := view.Explanation; e != nil {
		blocked = e.Message
		if c, known := view.Candidate(op.To); known && c.LostTransactions != nil {
			loss = fmt.Sprintf("%s all that %s accepted after it was last seen", atLeast(*c.LostTransactions), cli.OrNoSite(r.ActiveSite))
		} else {
			loss = "not known: nothing was seen of what " + cli.OrNoSite(r.ActiveSite) + " holds"
		}
	}
	plan := []screen.Line{
		{Label: "Now", Text: nowForce(r)},
		{Label: "After", Text: op.afterForce(r.ActiveSite)},
		{Label: "Overrides", Text: "mode, pause, cooldown, loss budget, and sites that may still vouch for the old active site"},
		{Label: "Keeps", Text: "the operator still waits for the lease of the old active site; but while a site that may still vouch answers it, the old one keeps accepting writes, and those are lost: first power it off, or cut its clients off"},
		{Label: "Loss", Text: loss},
		{Label: "Undo", Text: "until it is carried out the order stays on the group; " + request.Withdrawal(op.Group, op.Namespace) + " withdraws it. Afterwards none: what was lost can only be taken from " + cli.OrNoSite(r.ActiveSite) + " by hand once it is back (kubectl mfg history " + op.Group + " -n " + op.Namespace + ")"},
	}
	if blocked != "" {
		plan = append(plan[:1], append([]screen.Line{{Label: "Blocked", Text: blocked}}, plan[1:]...)...)
	}
	return plan
}

// lossOf says what a failover lost, as far as it is known.
func lossOf(f v1alpha1.FailoverRecord) string {
	switch {
	case f.LossExact:
		return "exactly " + gtid.Transactions(f.LostTransactions)
	case f.LostTransactions == 0:
		return "not known yet"
	}
	return "at least " + gtid.Transactions(f.LostTransactions)
}

// atLeast says the known loss, with a word that hints at the unknown.
func atLeast(transactions int64) string {
	if transactions == 0 {
		return "none that is known, but"
	}
	return fmt.Sprintf("at least %s, and", gtid.Transactions(transactions))
}

// nowForce claims only what was seen: without the operator no one has checked whether the active site accepts writes.
func nowForce(r report.MysqlFailoverGroupReport) string {
	now := fmt.Sprintf("%s is active under epoch %d", cli.OrNoSite(r.ActiveSite), r.Epoch)
	if r.Facts.Source != report.Live {
		return now + "; whether it accepts writes cannot be seen: " + r.Facts.Message
	}
	return now + " and accepts no writes that can be seen"
}

// afterForce says what an order leads to. One for the active site itself opens it again as it is.
func (op *Op) afterForce(active string) string {
	if op.To == active {
		return op.To + " accepts writes again, without what it may lack; what another site alone holds stays there, for a person to look at"
	}
	return fmt.Sprintf("%s is active under a further epoch; what %s alone holds stays there, for a person to look at", op.To, cli.OrNoSite(active))
}

func (op *Op) followForce(ctx context.Context, env cli.Environment, c request.Cluster, rep *request.Report) error {
	began, said := env.Now(), ""
	op.Stays = "the order stays on the group and is carried out as soon as that is possible\n  to withdraw it: " + request.Withdrawal(op.Group, op.Namespace)
	g, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if words := op.forceWords(ctx, c, g); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return !op.Stands(g, v1alpha1.RequestForceFailover, op.To)
	})
	if err != nil {
		return err
	}
	answer := op.Answer(g, v1alpha1.RequestForceFailover)
	rep.Epoch = g.Status.Epoch
	if rep.Take(answer) && g.Status.ActiveSite != op.To {
		rep.Outcome, rep.Reason = cli.OutcomeRefused, v1alpha1.ReasonOvertaken
		rep.Message += fmt.Sprintf("; by now it is %s", cli.OrNoSite(g.Status.ActiveSite))
	}
	if rep.Outcome != cli.OutcomeDone {
		rep.Next = fmt.Sprintf("see what the operator decides, and why: kubectl mfg explain %s -n %s", op.Group, op.Namespace)
		if answer != nil && g.Status.ActiveSite != "" && g.Status.ActiveSite != op.To {
			rep.Next = fmt.Sprintf("to move the role without loss: kubectl mfg failover %s -n %s --to %s", op.Group, op.Namespace, op.To)
		}
		return nil
	}
	rep.Message = fmt.Sprintf("%s is active under epoch %d.", op.To, g.Status.Epoch)
	if len(g.Status.Failovers) > 0 && g.Status.Failovers[0].To == op.To {
		f := g.Status.Failovers[0]
		rep.LostTransactions = &f.LostTransactions
		rep.Message += fmt.Sprintf(" Lost: %s; see kubectl mfg history %s -n %s", lossOf(f), op.Group, op.Namespace)
	}
	return nil
}

// forceWords says what the operator waits for, or how far it is by the status.
func (op *Op) forceWords(ctx context.Context, c request.Cluster, g *v1alpha1.MysqlFailoverGroup) string {
	if list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group); err == nil && len(list.Groups) == 1 {
		return list.Groups[0].Verdict + ": " + list.Groups[0].Message
	}
	if t := g.Status.Transition; t != nil {
		return fmt.Sprintf("%s -> %s, %s", cli.OrNoSite(t.From), t.To, t.Step)
	}
	return "ordered"
}
