// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// all asks for the rotation of several sites, which the operator carries out, and watches it. One that is under way is only watched.
func (r *rotation) all(ctx context.Context, view request.Outlook) (int, error) {
	op, g := r.op, view.Group
	if err := encryptedGroup(g); err != nil {
		return cli.ExitError, err
	}
	now, _ := op.Clock(ctx, r.env, r.cluster) // a stopped run may continue on another machine, with another clock
	left := op.left(g, now)
	op.wanted = left
	value, joined, err := op.underWay(g)
	if err != nil {
		return cli.ExitError, err
	}
	to := ""
	if !joined {
		value = op.order().String()
		if to, err = op.check(g, left); err != nil {
			return cli.ExitError, err
		}
	}
	plan := op.plan(view, now, to, joined)
	op.ShowPlan(r.env, op.title(), plan)
	change := map[string]string{v1alpha1.AnnotationRotateKeyring: value}
	if joined {
		change, op.ID = map[string]string{}, g.Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()]
	}
	r.rep = op.rotationReport(plan, change)
	question := "Rotate now?"
	if to != "" {
		question = "Rotate them, and move the role to " + to + "?"
	}
	if !joined {
		if err := op.Confirm(ctx, r.env, question); err != nil {
			return cli.ExitError, err
		}
		if _, err := op.Submit(ctx, r.env, r.cluster, change, func(g *v1alpha1.MysqlFailoverGroup) error {
			now, err := op.check(g, left)
			if err != nil {
				return err
			}
			return op.asShown(g, view.Group, to, now)
		}); err != nil {
			return cli.ExitError, err
		}
	}
	switch {
	case op.DryRun != request.DryRunNone:
		return cli.ExitHealthy, op.dryRun(r.env, r.rep)
	case !op.Wait:
		r.rep.Left = left
		r.rep.Outcome, r.rep.Message = cli.OutcomeRequested, "requested, and the operator carries it out; see how far it is: "+op.again()
		return op.finishRotation(r.env, r.rep)
	}
	return r.watch(ctx, g, value)
}

// left returns the sites to rotate, replicas first: the active site is rotated once it no longer is the active one.
func (op *Op) left(g *v1alpha1.MysqlFailoverGroup, now time.Time) []string {
	since := map[string]int64{}
	if c := campaignOf(g); c.UnderWay() || c.GoesOn(now) && !op.Restart {
		for _, s := range c.Sites {
			since[s.Name] = s.FromVersion
		}
	}
	left := []string{}
	for _, s := range g.Spec.Sites {
		from, known := since[s.Name]
		if s.Name != g.Status.ActiveSite && (!known || keyrings.SiteStatus(g, s.Name).RotatedSince(from) == 0) {
			left = append(left, s.Name)
		}
	}
	active := g.Status.ActiveSite
	if from, known := since[active]; op.All && active != "" && (!known || keyrings.SiteStatus(g, active).RotatedSince(from) == 0) {
		left = append(left, active)
	}
	return left
}

// underWay returns the order of the campaign under way; joined is true if the request is the same. It refuses a different one.
func (op *Op) underWay(g *v1alpha1.MysqlFailoverGroup) (value string, joined bool, err error) {
	value = g.Annotations[v1alpha1.AnnotationRotateKeyring]
	if !v1alpha1.AsksForCampaign(value) {
		return "", false, nil
	}
	runs, err := v1alpha1.ParseCampaignOrder(value)
	if err == nil && runs.Replicas == op.AllReplicas && (op.To == "" || op.To == runs.To) && !op.Restart {
		return value, true, nil
	}
	return "", false, op.noCampaign(g)
}

// check refuses what the custom resource alone shows to be impossible, and finds the site that will become active.
func (op *Op) check(g *v1alpha1.MysqlFailoverGroup, left []string) (to string, err error) {
	if err := op.checkGroup(g, left...); err != nil {
		return "", err
	}
	if to, err = op.choose(g, left); err != nil {
		return "", err
	}
	return to, request.NotMoving(g)
}

// asShown refuses if the role, or the site to which it would move, is not as the plan said: the order names no sites, so the operator would carry
// it out for the group as it is by then.
func (op *Op) asShown(g, shown *v1alpha1.MysqlFailoverGroup, to, now string) error {
	if err := (&failover.Op{Request: op.Request}).Unmoved(g, shown); err != nil {
		return err
	}
	if to != now {
		return cli.Refused("refused: the role would move to %s by now, and the plan said %s; nothing was changed\n  look again: %s", cli.OrNoSite(now), cli.OrNoSite(to), op.again())
	}
	return nil
}

func (op *Op) title() string {
	what := "all sites"
	if op.AllReplicas {
		what = "all replicas"
	}
	return fmt.Sprintf("Rotate the keyrings of %s of %s (namespace %s)", what, op.Group, op.Namespace)
}

func (op *Op) plan(view request.Outlook, now time.Time, to string, joined bool) []screen.Line {
	g, left := view.Group, op.wanted
	plan := []screen.Line{nowLine(g)}
	c := campaignOf(g)
	switch {
	case joined:
		plan = append(plan, screen.Line{Label: "Under way", Text: "it is in progress already, and is watched: " + c.Words()})
	case c.GoesOn(now) && !op.Restart:
		var done []string
		for _, s := range c.Sites {
			if !slices.Contains(left, s.Name) && (op.All || s.Name != g.Status.ActiveSite) {
				done = append(done, s.Name)
			}
		}
		plan = append(plan, screen.Line{Label: "Goes on", Text: fmt.Sprintf("with what was begun at %s and stopped: %s done, %d left; to begin with every site again: --restart",
			c.BeganAt.UTC().Format(time.RFC3339), orNoSite(done), len(left))})
	}
	for i, site := range left {
		switch {
		case site != g.Status.ActiveSite:
			plan = append(plan, screen.Line{Label: stepLabel(i), Text: "rotate " + site})
		case to != "":
			plan = append(plan, screen.Line{Label: stepLabel(i), Text: fmt.Sprintf("move the role %s -> %s by a planned failover, then rotate %s as a replica", site, to, site)})
		default:
			plan = append(plan, screen.Line{Label: stepLabel(i), Text: "move the role by a planned failover, then rotate " + site + " as a replica"})
		}
	}
	if to != "" {
		plan = append(plan, op.moveLines(view)...)
	}
	return append(plan, op.closingLines(g, to, "ends the watching; the operator continues. To watch it again: "+op.again()+"; to stop it: "+op.stops())...)
}

// moveLines says what the move of the role costs.
func (op *Op) moveLines(view request.Outlook) []screen.Line {
	g := view.Group
	pause := g.Spec.Failover.PlannedPauseTimeout.Duration
	if pause <= 0 {
		pause = 5 * time.Second
	}
	return []screen.Line{
		{Label: "Pause", Text: "once: " + failover.PauseWords(g, pause)},
		{Label: "Sessions", Text: "every client session on " + g.Status.ActiveSite + " ends when the role moves; applications must reconnect to " + view.Report.Endpoints.Writes},
	}
}

// closingLines returns the last lines of every plan.
func (op *Op) closingLines(g *v1alpha1.MysqlFailoverGroup, to, interrupted string) []screen.Line {
	undo := "none is needed: superseded keyrings are kept in escrow (keyring.retainVersions)"
	if to != "" {
		undo += fmt.Sprintf("; to move the role back afterwards: kubectl mfg failover %s -n %s --to %s", op.Group, op.Namespace, g.Status.ActiveSite)
	}
	return []screen.Line{
		{Label: "Meanwhile", Text: "the pod of the site that is rotated is replaced twice: it takes no reads then, and is no candidate for moments"},
		{Label: "Loss", Text: "nothing: a replica whose keyring were lost in between would be cloned again from the active site"},
		{Label: "Undo", Text: undo},
		{Label: "Ctrl-C", Text: interrupted},
	}
}

func nowLine(g *v1alpha1.MysqlFailoverGroup) screen.Line {
	return screen.Line{Label: "Now", Text: fmt.Sprintf("%s is active under epoch %d; keyrings: %s", cli.OrNoSite(g.Status.ActiveSite), g.Status.Epoch, keyrings.VersionWords(g))}
}

func stepLabel(i int) string { return fmt.Sprintf("Step %d", i+1) }

func orNoSite(sites []string) string {
	if len(sites) == 0 {
		return "no site"
	}
	return strings.Join(sites, ", ")
}

// campaignOf returns the rotation of all sites that is under way, or the last one; nil if there was none.
func campaignOf(g *v1alpha1.MysqlFailoverGroup) *v1alpha1.CampaignStatus {
	if e := g.Status.EncryptionAtRest; e != nil {
		return e.Campaign
	}
	return nil
}
