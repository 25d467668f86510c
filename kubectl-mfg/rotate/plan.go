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

// Actions of steps.
const (
	actionRotate   = "Rotate"
	actionFailover = "Failover"
)

func (r *rotation) title() string {
	what := "keyring of site " + r.op.Site
	switch {
	case r.op.All:
		what = "keyrings of all sites"
	case r.op.AllReplicas:
		what = "keyrings of all replicas"
	}
	return fmt.Sprintf("Rotate the %s of %s (namespace %s)", what, r.op.Group, r.op.Namespace)
}

func (r *rotation) question() string {
	if r.to != "" {
		return "Rotate them, and move the role to " + r.to + "?"
	}
	return "Rotate now?"
}

func (r *rotation) plan(view request.Outlook) []screen.Line {
	g, left := view.Group, r.left(view.Group)
	plan := []screen.Line{{Label: "Now", Text: fmt.Sprintf("%s is active under epoch %d; keyrings: %s", cli.OrDash(g.Status.ActiveSite), g.Status.Epoch, keyrings.VersionWords(g))}}
	if r.resumed {
		done := "no site"
		if len(r.before) > 0 {
			done = strings.Join(r.before, ", ")
		}
		plan = append(plan, screen.Line{Label: "Goes on", Text: fmt.Sprintf("with what was begun at %s: %s done, %d left", r.campaign.Began.Format(time.RFC3339), done, len(left))})
	}
	for i, site := range left {
		if site == g.Status.ActiveSite {
			plan = append(plan, screen.Line{Label: stepLabel(i), Text: fmt.Sprintf("move the role %s -> %s by a planned failover, then rotate %s as a replica", site, r.to, site)})
			continue
		}
		words := "rotate " + site
		if g.Annotations[v1alpha1.AnnotationRotateKeyring] == site {
			words = site + " is being rotated already: it is waited for"
		}
		plan = append(plan, screen.Line{Label: stepLabel(i), Text: words})
	}
	if rest := r.rest(g); rest != "" {
		plan = append(plan, screen.Line{Label: "Left", Text: strings.ReplaceAll(strings.TrimPrefix(rest, "; "), "\n  ", "; ")})
	}
	plan = append(plan, screen.Line{Label: "Meanwhile", Text: "the pod of the site that is rotated is replaced twice: it takes no reads then, and is no candidate for moments"})
	if r.to != "" {
		pause := g.Spec.Failover.PlannedPauseTimeout.Duration
		if pause <= 0 {
			pause = 5 * time.Second
		}
		plan = append(plan,
			screen.Line{Label: "Pause", Text: "once: " + failover.PauseWords(g, pause)},
			screen.Line{Label: "Sessions", Text: "every client session on " + g.Status.ActiveSite + " ends when the role moves; applications must reconnect to " + view.Report.Endpoints.Writes})
	}
	undo := "none is needed: superseded keyrings are kept in escrow (keyring.retainVersions)"
	if r.to != "" {
		undo += fmt.Sprintf("; to move the role back afterwards: kubectl mfg failover %s -n %s --to %s", r.op.Group, r.op.Namespace, g.Status.ActiveSite)
	}
	return append(plan,
		screen.Line{Label: "Loss", Text: "nothing: a replica whose keyring were lost in between would be cloned again from the active site"},
		screen.Line{Label: "Undo", Text: undo},
		screen.Line{Label: "Ctrl-C", Text: "ends the waiting; the operator finishes the site at hand. To go on: " + r.op.again()})
}

func stepLabel(i int) string { return fmt.Sprintf("Step %d", i+1) }

// change is what the first step asks for. Of several sites it also says since when, and from which versions.
func (r *rotation) change() map[string]string {
	change := map[string]string{}
	if r.first == "" {
		return change // what is waited for first was asked for already
	}
	if r.op.Site == "" && !r.noted {
		change[v1alpha1.AnnotationRotation] = r.campaign.String()
	}
	if r.first == r.active {
		change[v1alpha1.AnnotationPlannedFailover] = r.to
		return change
	}
	change[v1alpha1.AnnotationRotateKeyring] = r.first
	return change
}

// nothingLeft ends a run that has nothing to do but, perhaps, to take the note off.
func (r *rotation) nothingLeft(ctx context.Context, env cli.Environment, c request.Cluster, view request.Outlook, rep *Report) (int, error) {
	rest := r.rest(view.Group)
	if rep.Change = map[string]string{}; rest == "" {
		rep.Change[v1alpha1.AnnotationRotation] = ""
		if _, err := r.op.Submit(ctx, env, c, rep.Change, encryptedGroup); err != nil {
			return cli.ExitError, err
		}
	}
	if r.op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, r.op.dryRun(env, rep)
	}
	rep.Outcome, rep.Message = cli.OutcomeDone, fmt.Sprintf("nothing was left to do: %s have new master keys since %s", strings.Join(r.before, ", "), r.campaign.Began.Format(time.RFC3339))+rest
	return r.op.finishRotation(env, rep)
}

// rest says what stays to be done of a campaign of all sites, of which this run was to do the replicas only. Its note stays then.
func (r *rotation) rest(g *v1alpha1.MysqlFailoverGroup) string {
	active := g.Status.ActiveSite
	if !r.op.AllReplicas || r.campaign.replicas || active == "" || r.campaign.rotated(g, active) {
		return ""
	}
	return fmt.Sprintf("; what was begun with --all is not done: %s is left\n  to go on: kubectl mfg rotate %s -n %s --all", active, r.op.Group, r.op.Namespace)
}

// summary says what this run has done.
func (r *rotation) summary() string {
	var words []string
	for _, s := range r.rep.Steps {
		switch {
		case s.Outcome != cli.OutcomeDone:
		case s.Action == actionRotate:
			words = append(words, fmt.Sprintf("%s v%d -> v%d", s.Site, s.FromVersion, s.ToVersion))
		default:
			words = append(words, fmt.Sprintf("role %s -> %s", s.From, s.Site))
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// closing is what is said when all is done.
func (r *rotation) closing(g *v1alpha1.MysqlFailoverGroup) string {
	text := "New master keys, in escrow and sealed: " + r.summary() + "."
	i := slices.IndexFunc(r.rep.Steps, func(s rotationStep) bool { return s.Action == actionFailover && s.WritePauseMillis != nil })
	if i >= 0 {
		text += fmt.Sprintf(" %s is active under epoch %d; writes were kept out for %s.", g.Status.ActiveSite, g.Status.Epoch,
			time.Duration(*r.rep.Steps[i].WritePauseMillis)*time.Millisecond)
	}
	return text
}
