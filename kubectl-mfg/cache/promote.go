// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Promote is `kubectl mfg cache promote`.
type Promote struct {
	request.Request
	To string
}

// Validate checks only the command line.
func (op *Promote) Validate() error {
	if op.To == "" {
		return errors.New("--to is missing: name the site whose cache is to become the master")
	}
	return op.Request.Validate()
}

// Run asks for the move and follows it.
func (op *Promote) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	if err := op.allowed(view.Group); err != nil {
		return cli.ExitError, err
	}
	change, plan := map[string]string{v1alpha1.AnnotationPromoteCache: op.To}, op.plan(view.Report)
	rep := op.Report("cache promote", plan, change)
	rep.Site, rep.From = op.To, view.Report.Cache.MasterSite
	if at := view.Group.Status.Cache; at.ActiveSite == op.To && at.Transition == nil {
		rep.Change = map[string]string{}
		rep.Outcome, rep.Message = cli.OutcomeDone, "the cache of "+op.To+" is the master already: nothing was sent"
		return op.Finish(env, rep)
	}
	op.ShowPlan(env, fmt.Sprintf("Move the cache of %s (namespace %s) to %s", op.Group, op.Namespace, op.To), plan)
	if err := op.Confirm(ctx, env, "Move it?"); err != nil {
		return cli.ExitError, err
	}
	if _, err := op.Submit(ctx, env, c, change, op.allowed); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Requested("asked for", op.look())
	if !op.Wait {
		return op.Finish(env, rep)
	}
	if err := op.follow(ctx, env, c, rep); err != nil {
		return cli.ExitError, err
	}
	return op.Finish(env, rep)
}

func (op *Promote) look() string {
	return fmt.Sprintf("kubectl mfg cache status %s -n %s", op.Group, op.Namespace)
}

// allowed refuses what cannot be asked, and what would replace another order. It joins an equal one. Only the operator knows
// whether the cache is fit to take over.
func (op *Promote) allowed(g *v1alpha1.MysqlFailoverGroup) error {
	if !isOn(g) {
		return off(op.Group)
	}
	if _, known := request.RoleOf(g, op.To); !known {
		return cli.Usage("%s has no site %q; its sites are %s", op.Group, op.To, request.SiteNames(g))
	}
	if g.Status.Cache == nil {
		return cli.Refused("refused: the operator has not looked at the cache of %s yet\n  see why: kubectl mfg doctor %s -n %s", op.Group, op.Group, op.Namespace)
	}
	if other, is := g.Annotations[v1alpha1.AnnotationPromoteCache]; is && other != op.To {
		return cli.Refused("refused: a move of the cache to %q was requested, and the operator has not answered yet\n  see how far it is: %s", other, op.look())
	}
	if t := g.Status.Cache.Transition; t != nil && t.To != op.To {
		return cli.Refused("refused: the cache's master is moving to %s (%s)\n  see how far it is: %s", t.To, report.CacheMoveWords(string(t.Kind)), op.look())
	}
	return request.NotMoving(g)
}

func (op *Promote) plan(r report.MysqlFailoverGroupReport) []screen.Line {
	c := r.Cache
	plan := []screen.Line{
		{Label: "Now", Text: "the master is on " + cli.OrNoSite(c.MasterSite) + "; MySQL is active on " + cli.OrNoSite(r.ActiveSite)},
		{Label: "After", Text: "the master is on " + op.To + "; MySQL stays where it is"},
		{Label: "Meanwhile", Text: "clients of the cache are cut off once and connect again through " + c.Endpoint},
		{Label: "Sessions", Text: op.sessions(c)},
	}
	if op.To != r.ActiveSite {
		plan = append(plan, screen.Line{Label: "Later", Text: "it stays on " + op.To + ", away from MySQL, until MySQL moves, or a person promotes the cache of " + cli.OrNoSite(r.ActiveSite)})
	}
	return plan
}

// sessions says what happens to them, as far as the status tells; the operator asks the caches themselves.
func (op *Promote) sessions(c *report.Cache) string {
	s, _ := c.Site(op.To)
	old, _ := c.Site(c.MasterSite)
	switch {
	case !s.Synced():
		return "the operator refuses if the cache of " + op.To + " has not got them, unless there is no master any more"
	case old.Role == "":
		return "the old master does not answer: what the cache of " + op.To + " has not received is lost"
	}
	return "kept: the cache of " + op.To + " takes over with every key"
}

func (op *Promote) follow(ctx context.Context, env cli.Environment, c request.Cluster, rep *request.Report) error {
	began, said := env.Now(), ""
	g, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if words := moveWords(g); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return !op.Stands(g, v1alpha1.RequestPromoteCache, op.To)
	})
	if err != nil {
		return err
	}
	if !rep.Take(op.Answer(g, v1alpha1.RequestPromoteCache)) {
		rep.Next = "see how the cache is: " + op.look()
		return nil
	}
	rep.Message = "done, " + rep.Message
	if g.Status.Cache == nil {
		return nil
	}
	if p := g.Status.Cache.LastPromotion; p != nil && p.To == op.To {
		rep.SessionsPreserved = &p.SessionsPreserved
		if !p.SessionsPreserved {
			rep.Message += "; sessions were lost (" + string(p.Reason) + ")"
		}
	}
	return nil
}

// moveWords says how far the move is.
func moveWords(g *v1alpha1.MysqlFailoverGroup) string {
	if at := g.Status.Cache; at != nil && at.Transition != nil {
		return fmt.Sprintf("moving from %s to %s", cli.OrNoSite(at.Transition.From), at.Transition.To)
	}
	return "asked the operator"
}
