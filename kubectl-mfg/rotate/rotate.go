// SPDX-License-Identifier: Apache-2.0

// Package rotate gives sites new master keys, one after the other.
package rotate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// Op is `kubectl mfg rotate`.
type Op struct {
	request.Request
	Site        string
	AllReplicas bool
	All         bool
	To          string
	Restart     bool

	// wanted are the sites that a run which is refused leaves; nil until the group was read.
	wanted []string
}

// Validate looks at the command line alone.
func (op *Op) Validate() error {
	chosen := 0
	for _, is := range []bool{op.Site != "", op.AllReplicas, op.All} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return errors.New("one of --site SITE, --all-replicas and --all is needed: which sites are to be rotated?")
	case op.To != "" && !op.All:
		return errors.New("--to goes with --all: nothing else moves the role")
	case op.Restart && op.Site != "":
		return errors.New("--restart goes with --all-replicas and --all: --site always rotates")
	case !op.Wait && op.Site == "":
		return errors.New("--wait=false goes with --site: each step of the others waits for the one before")
	}
	return op.Request.Validate()
}

// Run rotates what is asked for, step after step.
func (op *Op) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	now, _ := op.Clock(ctx, env, c) // a campaign may be gone on with from another machine, whose clock is another one
	r, err := op.begin(view.Group, now)
	if err != nil {
		return cli.ExitError, err
	}
	plan := r.plan(view)
	op.ShowPlan(env, r.title(), plan)
	rep := op.rotationReport(plan, r)
	if r.over(view.Group) {
		return r.nothingLeft(ctx, env, c, view, rep)
	}
	if err := op.Confirm(ctx, env, r.question()); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		if _, err := op.Submit(ctx, env, c, rep.Change, r.check); err != nil {
			return cli.ExitError, err
		}
		return cli.ExitHealthy, op.dryRun(env, rep)
	}
	r.env, r.cluster, r.rep = env, c, rep
	return r.run(ctx)
}

// begin reads what is to be done from the group alone, and refuses what it shows to be impossible.
func (op *Op) begin(g *v1alpha1.MysqlFailoverGroup, now time.Time) (*rotation, error) {
	r := &rotation{op: op, campaign: NewCampaign(g, now), done: map[string]bool{}}
	r.campaign.replicas = op.AllReplicas
	text, had := g.Annotations[v1alpha1.AnnotationRotation]
	if old, err := ParseCampaign(text); had && err == nil && op.AllReplicas && op.Restart {
		// What --all began is begun anew by its part of it; the active site stays due.
		r.campaign.replicas = old.replicas || old.rotated(g, g.Status.ActiveSite)
	}
	if had && op.Site == "" && !op.Restart {
		campaign, err := ParseCampaign(text)
		if err != nil {
			return nil, cli.Refused("refused: the annotation %s cannot be read (%v)\n  to begin with every site again: %s --restart", v1alpha1.AnnotationRotation, err, op.again())
		}
		if age := now.Sub(campaign.Began); age > campaignLasts {
			return nil, cli.Refused("refused: a rotation that was begun at %s (%s ago) was not finished, and going on would leave out the sites that got their keys then\n  to begin with every site again: %s --restart",
				campaign.Began.Format(time.RFC3339), duration.HumanDuration(age), op.again())
		}
		campaign.replicas = campaign.replicas && op.AllReplicas
		r.campaign, r.resumed, r.noted = campaign, true, campaign.String() == text
	}
	op.wanted = append([]string{}, r.left(g)...)
	if err := r.check(g); err != nil {
		return nil, err
	}
	if err := r.choose(g); err != nil {
		return nil, err
	}
	left := r.left(g)
	r.before = slices.DeleteFunc(r.scope(g), func(site string) bool { return slices.Contains(left, site) })
	if r.active = g.Status.ActiveSite; len(left) > 0 && !r.joined(g) {
		r.first = left[0]
	}
	return r, nil
}

// again is the command that goes on with what is left.
func (op *Op) again() string {
	scope := "--all"
	switch {
	case op.Site != "":
		scope = "--site " + op.Site
	case op.AllReplicas:
		scope = "--all-replicas"
	case op.To != "":
		scope += " --to " + op.To
	}
	return fmt.Sprintf("kubectl mfg rotate %s -n %s %s", op.Group, op.Namespace, scope)
}
