// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Off is `kubectl mfg fence off`.
type Off struct {
	request.Request
	Site string
}

// Run withdraws the word and waits until the operator follows that.
func (op *Off) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	view, err := op.See(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	g := view.Group
	change := map[string]string{v1alpha1.KeepFencedSite(op.Site): ""}
	plan := []screen.Line{
		{Label: "Now", Text: fmt.Sprintf("%s is active; %s", cli.OrNoSite(g.Status.ActiveSite), keptNow(g))},
		{Label: "After", Text: op.Site + " may take the role again, as any site of its role may; if a failover is due and waits for it, that happens now"},
		{Label: "Undo", Text: fmt.Sprintf("kubectl mfg fence on %s %s -n %s", op.Group, op.Site, op.Namespace)},
	}
	rep := op.Report("fence off", plan, change)
	rep.Site = op.Site
	if !v1alpha1.KeptFenced(g, op.Site) {
		// The word may also remain for a site that left the specification.
		if _, known := request.RoleOf(g, op.Site); !known {
			return cli.ExitError, cli.Refused("refused: %s has no site %q; its sites are %s", g.Name, op.Site, request.SiteNames(g))
		}
		rep.Outcome, rep.Message = cli.OutcomeDone, op.Site+" is not kept fenced; nothing was changed"
		return op.Finish(env, rep)
	}
	if view.Down != "" {
		plan = append([]screen.Line{{Label: "Warning", Text: op.Unheard(view)}}, plan...)
	}
	op.ShowPlan(env, fmt.Sprintf("Let %s of %s (namespace %s) take the role again", op.Site, op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Let it?"); err != nil {
		return cli.ExitError, err
	}
	// No pending request prevents this: it may be what that waits for.
	if _, err := op.Submit(ctx, env, c, change, request.Always); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Requested("asked for", fmt.Sprintf("kubectl mfg status %s -n %s", op.Group, op.Namespace))
	if view.Down != "" {
		rep.Reason, rep.Message = v1alpha1.ReasonOperatorDown, "the word is taken off the group; "+op.Unheard(view)
	}
	if !op.Wait || view.Down != "" { // no operator can confirm it
		return op.Finish(env, rep)
	}
	g, err = op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool { return v1alpha1.KeptFenced(g, op.Site) || !kept(g, op.Site) })
	if err != nil {
		return cli.ExitError, err
	}
	rep.Outcome, rep.Message = cli.OutcomeDone, op.Site+" is not kept fenced any more"
	if v1alpha1.KeptFenced(g, op.Site) {
		rep.Outcome, rep.Reason, rep.Message = cli.OutcomeRefused, v1alpha1.ReasonKeptFenced, op.Site+" is kept fenced again: another person ordered it"
	}
	return op.Finish(env, rep)
}
