// SPDX-License-Identifier: Apache-2.0

// Package failover moves the active site: planned, ordered despite any loss, or aborted.
package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Op is `kubectl mfg failover`.
type Op struct {
	request.Request
	To             string
	Abort          bool
	AcceptDataLoss bool
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case op.Abort && (op.To != "" || op.AcceptDataLoss):
		return errors.New("--abort stands alone: it gives up the planned failover that is under way, and withdraws an order that accepts data loss")
	case !op.Abort && op.To == "":
		return errors.New("--to SITE is missing: to which site is the role to move?")
	}
	return op.Request.Validate()
}

// Run moves the role, orders that, or aborts what is under way.
func (op *Op) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	if op.Abort {
		return op.abort(ctx, env, c)
	}
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	if op.AcceptDataLoss {
		return op.force(ctx, env, c, view)
	}
	return op.planned(ctx, env, c, view)
}

// planned moves the role without loss.
func (op *Op) planned(ctx context.Context, env cli.Environment, c request.Cluster, view request.Outlook) (int, error) {
	change := map[string]string{v1alpha1.AnnotationPlannedFailover: op.To}
	check := func(g *v1alpha1.MysqlFailoverGroup) error {
		if err := op.Allowed(g); err != nil {
			return err
		}
		return op.Unmoved(g, view.Group)
	}
	if err := check(view.Group); err != nil {
		return cli.ExitError, err
	}
	if err := op.Preflight(view); err != nil {
		return cli.ExitError, err
	}
	plan := op.plan(view)
	op.ShowPlan(env, fmt.Sprintf("Planned failover of %s (namespace %s) to %s", op.Group, op.Namespace, op.To), plan)
	if err := op.Confirm(ctx, env, "Move the role to "+op.To+" now?"); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("failover", plan, change)
	rep.Site, rep.From = op.To, view.Report.ActiveSite
	before, err := op.Submit(ctx, env, c, change, check)
	if err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	if !op.Wait {
		rep.Requested("asked for", "kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w")
		return op.Finish(env, rep)
	}
	if err := (Move{To: op.To, Before: before.Status.PlannedFailover}).Follow(ctx, &op.Request, env, c, rep); err != nil {
		return cli.ExitError, err
	}
	return op.Finish(env, rep)
}

// Allowed refuses what the custom resource alone shows to be impossible. Each refusal names the next step.
func (op *Op) Allowed(g *v1alpha1.MysqlFailoverGroup) error {
	role, known := request.RoleOf(g, op.To)
	switch {
	case !known:
		return cli.Refused("refused: %s has no site %q; its sites are %s\n  see them: kubectl mfg status %s -n %s", op.Group, op.To, request.SiteNames(g), op.Group, op.Namespace)
	case g.Status.ActiveSite == op.To && g.Status.Transition == nil && !op.AcceptDataLoss:
		return op.activeAlready(g)
	case role != v1alpha1.PrimaryCandidate:
		return cli.Refused("refused: %s is %s and is never active\n  to change that, make it a primary-candidate: kubectl edit mfg %s -n %s", op.To, role, op.Group, op.Namespace)
	case op.AcceptDataLoss:
		return nil // an order may come while something else is under way: that is its purpose
	case g.Spec.Failover.Mode == v1alpha1.FailoverObserve:
		return cli.Refused("refused: spec.failover.mode is Observe\n  to let the operator act: kubectl patch mfg %s -n %s --type merge -p '{\"spec\":{\"failover\":{\"mode\":\"Manual\"}}}'", op.Group, op.Namespace)
	}
	return request.NotMoving(g)
}

// Unmoved compares with what the plan was made of: a confirmation counts for the role as it was shown, not for one that has moved since.
func (op *Op) Unmoved(g, shown *v1alpha1.MysqlFailoverGroup) error {
	was, is := shown.Status, g.Status
	look := fmt.Sprintf("nothing was changed\n  see how it is now: kubectl mfg status %s -n %s", op.Group, op.Namespace)
	switch {
	case is.Transition != nil && (was.Transition == nil || was.Transition.To != is.Transition.To):
		return cli.Refused("refused: the role began to move to %s meanwhile, and the plan was another; %s", is.Transition.To, look)
	case is.ActiveSite != was.ActiveSite, is.Epoch != was.Epoch, is.Transition == nil && was.Transition != nil:
		return cli.Refused("refused: the role moved meanwhile, and the plan was another: %s is active under epoch %d; %s", cli.OrNoSite(is.ActiveSite), is.Epoch, look)
	}
	return nil
}

// Preflight asks the operator's own preflight, if it can; the operator checks again later, with the facts of that time.
func (op *Op) Preflight(view request.Outlook) error {
	c, known := view.Candidate(op.To)
	// The operator waits for a target that has missed an answer or two, and refuses one that is lost.
	if !known || c.PlannedBlockedBy == "" || c.PlannedBlockedBy == string(v1alpha1.ReasonTargetSilent) {
		return nil
	}
	return &cli.Error{Code: cli.ExitRefused, Reason: v1alpha1.Reason(c.PlannedBlockedBy),
		Err: fmt.Errorf("refused (%s): %s\n  %s", c.PlannedBlockedBy, c.PlannedMessage, request.NextStep(op.Namespace, op.Group, c.PlannedRemedies))}
}

func (op *Op) plan(view request.Outlook) []screen.Line {
	r, spec := view.Report, view.Group.Spec.Failover
	pause := spec.PlannedPauseTimeout.Duration
	if pause <= 0 {
		pause = 5 * time.Second
	}
	return []screen.Line{
		{Label: "Now", Text: fmt.Sprintf("%s is active under epoch %d", cli.OrNoSite(r.ActiveSite), r.Epoch)},
		{Label: "After", Text: fmt.Sprintf("%s is active under epoch %d; %s replicates from it", op.To, r.Epoch+1, cli.OrNoSite(r.ActiveSite))},
		{Label: "Target", Text: targetWords(view, op.To)},
		{Label: "Pause", Text: PauseWords(view.Group, pause)},
		{Label: "Sessions", Text: "every client session on " + cli.OrNoSite(r.ActiveSite) + " ends; applications must reconnect to " + r.Endpoints.Writes},
		{Label: "Loss", Text: "nothing: " + op.To + " is opened only with all that " + cli.OrNoSite(r.ActiveSite) + " held, or the move is reverted"},
		{Label: "Undo", Text: fmt.Sprintf("while it is under way: kubectl mfg failover %s -n %s --abort; afterwards: kubectl mfg failover %s -n %s --to %s",
			op.Group, op.Namespace, op.Group, op.Namespace, cli.OrNoSite(r.ActiveSite))},
	}
}

func targetWords(view request.Outlook, to string) string {
	s, known := view.Site(to)
	if !known || s.LagSeconds == nil || s.Behind == nil {
		return to + ": how far it is behind is not known; the operator waits until it is close, before it stops writes"
	}
	return fmt.Sprintf("%s is %.1f s and %s behind; the operator waits until it has caught up, then stops writes", to, *s.LagSeconds, gtid.Transactions(*s.Behind))
}

// PauseWords expects what was measured before; only the bound is a promise.
func PauseWords(g *v1alpha1.MysqlFailoverGroup, bound time.Duration) string {
	var n, least, most int64
	for _, r := range g.Status.Failovers {
		if r.WritePauseMillis == nil || r.From == r.To {
			continue
		}
		if n == 0 || *r.WritePauseMillis < least {
			least = *r.WritePauseMillis
		}
		n, most = n+1, max(most, *r.WritePauseMillis)
	}
	words := fmt.Sprintf("writes stop for at most %s (plannedPauseTimeout); after that the operator opens the old site again", bound)
	switch n {
	case 0:
		return words + "; none was measured in this group yet"
	case 1:
		return fmt.Sprintf("%s; the last one took %d ms", words, least)
	}
	return fmt.Sprintf("%s; the last %d took %d to %d ms", words, n, least, most)
}

// activeAlready refuses a move to the site that has the role.
func (op *Op) activeAlready(g *v1alpha1.MysqlFailoverGroup) error {
	return cli.Refused("refused: %s is active already\n  see how it is: kubectl mfg status %s -n %s", op.To, g.Name, g.Namespace)
}

// Possible refuses a planned failover that waiting cannot make possible.
func (op *Op) Possible(g *v1alpha1.MysqlFailoverGroup) error {
	calm := g.DeepCopy()
	calm.Annotations, calm.Status.Transition, calm.Status.PlannedFailover = nil, nil, nil
	return op.Allowed(calm)
}
