// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Actions of steps.
const (
	actionRotate   = "Rotate"
	actionFailover = "Failover"
)

// outcomeUnfinished is that of a run of which sites are left.
const outcomeUnfinished = "Unfinished"

// rotationKind is the kind of rotationReport.
const rotationKind = "MfgRotationReport"

// rotationReport is the answer of rotate in machine form.
type rotationReport struct {
	requestReport `json:",inline"`
	// BeganAt is when the first of the runs began; empty for a single site.
	BeganAt string `json:"beganAt,omitempty"`
	// Before are sites that an earlier run has rotated.
	Before []string       `json:"before,omitempty"`
	Steps  []rotationStep `json:"steps"`
	// Left are the sites that are still to be rotated; null if the group could not be read.
	Left []string `json:"left"`
}

// rotationStep is one thing that was done, or that was tried.
type rotationStep struct {
	Action           string `json:"action"`
	Site             string `json:"site"`
	From             string `json:"from,omitempty"`
	Outcome          string `json:"outcome"`
	Message          string `json:"message,omitempty"`
	FromVersion      int64  `json:"fromVersion,omitempty"`
	ToVersion        int64  `json:"toVersion,omitempty"`
	TookMillis       int64  `json:"tookMillis"`
	WritePauseMillis *int64 `json:"writePauseMillis,omitempty"`
	LostTransactions *int64 `json:"lostTransactions,omitempty"`
}

func (op *rotateOp) rotationReport(plan []planLine, r *rotation) *rotationReport {
	rep := &rotationReport{requestReport: *op.report("rotate", plan, r.change()), Steps: []rotationStep{}, Left: []string{}}
	rep.Kind, rep.Site = rotationKind, op.Site
	if op.Site == "" {
		rep.BeganAt, rep.Before = r.campaign.began.Format(time.RFC3339), r.before
	}
	return rep
}

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

func (r *rotation) plan(view outlook) []planLine {
	g, left := view.group, r.left(view.group)
	plan := []planLine{{"Now", fmt.Sprintf("%s is active under epoch %d; keyrings: %s", orDash(g.Status.ActiveSite), g.Status.Epoch, versionsOf(g))}}
	if r.resumed {
		done := "no site"
		if len(r.before) > 0 {
			done = strings.Join(r.before, ", ")
		}
		plan = append(plan, planLine{"Goes on", fmt.Sprintf("with what was begun at %s: %s done, %d left", r.campaign.began.Format(time.RFC3339), done, len(left))})
	}
	for i, site := range left {
		if site == g.Status.ActiveSite {
			plan = append(plan, planLine{stepLabel(i), fmt.Sprintf("move the role %s -> %s by a planned failover, then rotate %s as a replica", site, r.to, site)})
			continue
		}
		words := "rotate " + site
		if g.Annotations[v1alpha1.AnnotationRotateKeyring] == site {
			words = site + " is being rotated already: it is waited for"
		}
		plan = append(plan, planLine{stepLabel(i), words})
	}
	if rest := r.rest(g); rest != "" {
		plan = append(plan, planLine{"Left", strings.ReplaceAll(strings.TrimPrefix(rest, "; "), "\n  ", "; ")})
	}
	plan = append(plan, planLine{"Meanwhile", "the pod of the site that is rotated is replaced twice: it takes no reads then, and is no candidate for moments"})
	if r.to != "" {
		pause := g.Spec.Failover.PlannedPauseTimeout.Duration
		if pause <= 0 {
			pause = 5 * time.Second
		}
		plan = append(plan,
			planLine{"Pause", "once: " + pauseWords(g, pause)},
			planLine{"Sessions", "every client session on " + g.Status.ActiveSite + " ends when the role moves; applications must reconnect to " + view.report.Endpoints.Writes})
	}
	undo := "none is needed: superseded keyrings are kept in escrow (keyring.retainVersions)"
	if r.to != "" {
		undo += fmt.Sprintf("; to move the role back afterwards: kubectl mfg failover %s -n %s --to %s", r.op.Group, r.op.Namespace, g.Status.ActiveSite)
	}
	return append(plan,
		planLine{"Loss", "nothing: a replica whose keyring were lost in between would be cloned anew from the active site"},
		planLine{"Undo", undo},
		planLine{"Ctrl-C", "ends the waiting; the operator finishes the site at hand. To go on: " + r.op.again()})
}

func stepLabel(i int) string { return fmt.Sprintf("Step %d", i+1) }

func versionsOf(g *v1alpha1.MysqlFailoverGroup) string {
	var words []string
	for _, s := range g.Spec.Sites {
		k := keyringStatusOf(g, s.Name)
		words = append(words, fmt.Sprintf("%s v%d %s", s.Name, k.KeyringVersion, k.Phase))
	}
	return strings.Join(words, ", ")
}

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
func (r *rotation) nothingLeft(ctx context.Context, env Environment, c Cluster, view outlook, rep *rotationReport) (int, error) {
	rest := r.rest(view.group)
	if rep.Change = map[string]string{}; rest == "" {
		rep.Change[v1alpha1.AnnotationRotation] = ""
		if _, err := r.op.submit(ctx, env, c, rep.Change, encryptedGroup); err != nil {
			return exitError, err
		}
	}
	if r.op.DryRun != dryRunNone {
		return exitHealthy, r.op.dryRun(env, rep)
	}
	rep.Outcome, rep.Message = outcomeDone, fmt.Sprintf("nothing was left to do: %s have new master keys since %s", strings.Join(r.before, ", "), r.campaign.began.Format(time.RFC3339))+rest
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

// dryRun finishes a dry run.
func (op *rotateOp) dryRun(env Environment, rep *rotationReport) error {
	if op.Output.printer == nil {
		return op.dryRunDone(env, &rep.requestReport)
	}
	rep.DryRun, rep.Outcome, rep.Message = op.DryRun, outcomePlanned, "nothing was sent"
	if op.DryRun == dryRunServer {
		rep.Message = "the API server would take the first step; nothing was changed"
	}
	return op.Output.print(env.Out, rep)
}

func (op *rotateOp) finishRotation(env Environment, rep *rotationReport) (int, error) {
	if op.Output.printer != nil {
		return exitHealthy, op.Output.print(env.Out, rep)
	}
	fmt.Fprintln(env.Out, rep.Message)
	return exitHealthy, nil
}

// summary says what this run has done.
func (r *rotation) summary() string {
	var words []string
	for _, s := range r.rep.Steps {
		switch {
		case s.Outcome != outcomeDone:
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
