// SPDX-License-Identifier: Apache-2.0

// Package reclone replaces a site's data by a new copy.
package reclone

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Op is `kubectl mfg reclone`.
type Op struct {
	request.Request
	Site            string
	ConfirmDataLoss bool
}

// Run asks for a new copy and follows it.
func (op *Op) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	check := func(g *v1alpha1.MysqlFailoverGroup) error { return op.allowed(g, view.Group) }
	if err := check(view.Group); err != nil {
		return cli.ExitError, err
	}
	value := op.Site
	if op.ConfirmDataLoss {
		value += recloneConfirmed
	}
	change := map[string]string{v1alpha1.AnnotationRecloneSite: value}
	plan := op.plan(view)
	op.ShowPlan(env, fmt.Sprintf("Copy site %s of %s (namespace %s) again", op.Site, op.Group, op.Namespace), plan)
	if err := op.ConfirmName(ctx, env, "All data on "+op.Site+" is thrown away."); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("reclone", plan, change)
	rep.Site, rep.From = op.Site, view.Report.ActiveSite
	if _, err := op.Submit(ctx, env, c, change, check); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Requested("asked for", "kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w")
	if !op.Wait {
		return op.Finish(env, rep)
	}
	if err := op.followClone(ctx, env, c, value, rep); err != nil {
		return cli.ExitError, err
	}
	return op.Finish(env, rep)
}

// allowed compares with what the plan was made of: what is lost depends on the site that is copied, and a confirmation counts for that one.
func (op *Op) allowed(g, shown *v1alpha1.MysqlFailoverGroup) error {
	if _, known := request.RoleOf(g, op.Site); !known {
		return op.noSuchSite(g)
	}
	if g.Status.ActiveSite == op.Site {
		return cli.Refused("refused: %s is the active site\n  move the role first: kubectl mfg failover %s -n %s --to SITE", op.Site, op.Group, op.Namespace)
	}
	if g.Status.ActiveSite != shown.Status.ActiveSite || g.Status.Epoch != shown.Status.Epoch {
		return cli.Refused("refused: the role moved to %s meanwhile, and %s may have transactions that it lacks; nothing was changed\n  see what would be lost now: %s", cli.OrNoSite(g.Status.ActiveSite), op.Site, op.command())
	}
	return request.NotMoving(g)
}

func (op *Op) plan(view request.Outlook) []screen.Line {
	s, _ := view.Site(op.Site)
	return []screen.Line{
		{Label: "Now", Text: fmt.Sprintf("%s is %s", op.Site, strings.ToLower(s.State))},
		{Label: "After", Text: fmt.Sprintf("%s holds a copy of %s and replicates from it", op.Site, cli.OrNoSite(view.Report.ActiveSite))},
		{Label: "Meanwhile", Text: op.Site + " takes no reads and is no candidate; " + cli.OrNoSite(view.Report.ActiveSite) + " reads all its data once"},
		{Label: "Loss", Text: op.loss(view)},
		{Label: "Undo", Text: "none"},
	}
}

// attaching is how long a site that holds the data may take to replicate before the command ends without it.
const attaching = 2 * time.Minute

// followClone waits for the answer, and then for what the plan has promised: a site with a new copy is a candidate only once it replicates.
func (op *Op) followClone(ctx context.Context, env cli.Environment, c request.Cluster, value string, rep *request.Report) error {
	began, said := env.Now(), ""
	var answer *v1alpha1.LastRequest
	var answered time.Time
	g, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if words := cloneWords(g, op.Site); words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		if answered.IsZero() {
			if op.Stands(g, v1alpha1.RequestRecloneSite, value) {
				return false
			}
			answer, answered = op.Answer(g, v1alpha1.RequestRecloneSite), env.Now()
		}
		return answer == nil || answer.Outcome != v1alpha1.RequestDone || replicates(g, op.Site) || env.Now().Sub(answered) >= attaching
	})
	if err != nil {
		return err
	}
	if !rep.Take(answer) {
		op.refusal(rep)
		return nil
	}
	rep.Message = op.Site + ": done, " + rep.Message
	if !replicates(g, op.Site) {
		rep.Message += "; it does not replicate yet: kubectl mfg status " + op.Group + " -n " + op.Namespace
	}
	return nil
}

func replicates(g *v1alpha1.MysqlFailoverGroup, site string) bool {
	for _, s := range g.Status.Sites {
		if s.Name == site {
			return s.State == v1alpha1.SiteReplica || s.State == v1alpha1.SitePrimary // the role may have moved there meanwhile
		}
	}
	return true // the site is gone from the group: there is nothing to wait for
}

// cloneWords says how far the copy is.
func cloneWords(g *v1alpha1.MysqlFailoverGroup, site string) string {
	for _, s := range g.Status.Sites {
		if s.Name != site {
			continue
		}
		words := strings.ToLower(string(s.State))
		if p := s.Clone; p != nil {
			words = fmt.Sprintf("%s, %s %d %% from %s", words, p.Stage, p.Percent, cli.OrNoSite(p.Source))
			if p.ETASeconds != nil {
				words += fmt.Sprintf(", about %s left", time.Duration(*p.ETASeconds)*time.Second)
			}
		}
		return words
	}
	return "asked the operator"
}
