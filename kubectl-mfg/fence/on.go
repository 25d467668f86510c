// SPDX-License-Identifier: Apache-2.0

// Package fence keeps one site of a group fenced, and lets it take the role again.
package fence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// On is `kubectl mfg fence on`.
type On struct {
	request.Request
	Site string
}

// Run asks for it and waits until the operator follows it.
func (op *On) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	// It is useful even without an operator: a returning one would open the site.
	view, err := op.See(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	if err := op.allowed(view.Group); err != nil {
		return cli.ExitError, err
	}
	now, _ := op.Clock(ctx, env, c)
	change := map[string]string{v1alpha1.KeepFencedSite(op.Site): now.UTC().Format(time.RFC3339)}
	plan := op.plan(view)
	rep := op.Report("fence on", plan, change)
	rep.Site = op.Site
	if v1alpha1.KeptFenced(view.Group, op.Site) {
		rep.Outcome, rep.Message = cli.OutcomeDone, op.Site+" is kept fenced already; nothing was changed"
		return op.Finish(env, rep)
	}
	op.ShowPlan(env, fmt.Sprintf("Keep %s of %s (namespace %s) fenced", op.Site, op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Keep it fenced?"); err != nil {
		return cli.ExitError, err
	}
	if _, err := op.Submit(ctx, env, c, change, op.allowed); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Requested("asked for", fmt.Sprintf("kubectl mfg status %s -n %s", op.Group, op.Namespace))
	if view.Down != "" {
		rep.Outcome, rep.Reason, rep.Message = cli.OutcomeRequested, v1alpha1.ReasonOperatorDown, "the word is on the group; "+op.Unheard(view)
	}
	if !op.Wait || view.Down != "" { // no operator can confirm it
		return op.Finish(env, rep)
	}
	g, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		return kept(g, op.Site) || !v1alpha1.KeptFenced(g, op.Site)
	})
	if err != nil {
		return cli.ExitError, err
	}
	op.take(g, rep)
	return op.Finish(env, rep)
}

// take fills in the outcome. Between the question and the answer that very site may have become active.
func (op *On) take(g *v1alpha1.MysqlFailoverGroup, rep *request.Report) {
	switch {
	case !v1alpha1.KeptFenced(g, op.Site):
		rep.Outcome, rep.Reason, rep.Message = cli.OutcomeRefused, v1alpha1.ReasonNotAnswered, "another person has ended the fence meanwhile"
	case g.Status.ActiveSite == op.Site:
		rep.Outcome, rep.Reason, rep.Message = cli.OutcomeRefused, v1alpha1.ReasonActiveStaysOpen, op.Site+" has become the active site meanwhile; once it closes it is not opened again"
		rep.Next = fmt.Sprintf("move the role: %s\n  or take it back: %s", moveRole(g), endFence(g, op.Site))
	default:
		rep.Outcome, rep.Message = cli.OutcomeDone, fmt.Sprintf("%s is kept fenced, until: %s", op.Site, endFence(g, op.Site))
	}
}

// allowed refuses what would stop writes, or contradicts a pending request.
func (op *On) allowed(g *v1alpha1.MysqlFailoverGroup) error {
	if _, known := request.RoleOf(g, op.Site); !known {
		return cli.Refused("refused: %s has no site %q; its sites are %s", g.Name, op.Site, request.SiteNames(g))
	}
	if t := g.Status.Transition; g.Status.ActiveSite == op.Site || t != nil && t.To == op.Site {
		return cli.Refused("refused: %s is the active site, and all writes would stop\n  move the role first: %s", op.Site, moveRole(g))
	}
	for _, a := range request.Annotations[:2] {
		if g.Annotations[a.Key] == op.Site {
			return cli.Refused("refused: %s to %s was requested, and the operator has not answered yet\n  to withdraw it: %s", a.Verb, op.Site, request.Withdrawal(g.Name, g.Namespace))
		}
	}
	if p := g.Status.PlannedFailover; p != nil && !request.PlanOver(p) && p.To == op.Site {
		return cli.Refused("refused: a planned failover to %s is under way (%s)\n  to give it up: %s", op.Site, p.Phase, request.Withdrawal(g.Name, g.Namespace))
	}
	return nil
}

func (op *On) plan(view request.Outlook) []screen.Line {
	g, active := view.Group, cli.OrNoSite(view.Group.Status.ActiveSite)
	lines := []screen.Line{
		{Label: "Now", Text: fmt.Sprintf("%s is active; %s", active, keptNow(g))},
		{Label: "After", Text: op.Site + " accepts no writes and never takes over, not even by order; it continues to replicate and to serve reads"},
		{Label: "Risk", Text: op.risk(g, active)},
		{Label: "Undo", Text: endFence(g, op.Site)},
	}
	if view.Down != "" {
		lines = append([]screen.Line{{Label: "Warning", Text: op.Unheard(view) + ": it holds for an operator that comes back"}}, lines...)
	}
	return lines
}

// risk says which sites are left to take over.
func (op *On) risk(g *v1alpha1.MysqlFailoverGroup, active string) string {
	var left []string
	for _, s := range g.Spec.Sites {
		if s.Role == v1alpha1.PrimaryCandidate && s.Name != g.Status.ActiveSite && s.Name != op.Site && !v1alpha1.KeptFenced(g, s.Name) {
			left = append(left, s.Name)
		}
	}
	if len(left) == 0 {
		return fmt.Sprintf("no other site may take over: if %s is lost, writes stop until it is back, or until you end this", active)
	}
	return fmt.Sprintf("if %s is lost, only these may take over: %s", active, strings.Join(left, ", "))
}

// kept is true once the operator follows the person's word.
func kept(g *v1alpha1.MysqlFailoverGroup, site string) bool {
	return slices.ContainsFunc(g.Status.Sites, func(s v1alpha1.SiteStatus) bool { return s.Name == site && s.KeptFenced })
}

// keptNow says which sites are kept fenced.
func keptNow(g *v1alpha1.MysqlFailoverGroup) string {
	var all []string
	for _, s := range g.Spec.Sites {
		if v1alpha1.KeptFenced(g, s.Name) {
			all = append(all, s.Name)
		}
	}
	if len(all) == 0 {
		return "no site is kept fenced"
	}
	return "kept fenced: " + strings.Join(all, ", ")
}

func moveRole(g *v1alpha1.MysqlFailoverGroup) string {
	return fmt.Sprintf("kubectl mfg failover %s -n %s --to SITE", g.Name, g.Namespace)
}

func endFence(g *v1alpha1.MysqlFailoverGroup, site string) string {
	return fmt.Sprintf("kubectl mfg fence off %s %s -n %s", g.Name, site, g.Namespace)
}
