// SPDX-License-Identifier: Apache-2.0

// Package pause keeps the operator from acting on its own for a time, and ends that.
package pause

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// longestPause keeps a pause from being forgotten for good.
const longestPause = 7 * 24 * time.Hour

// Op is `kubectl mfg pause`.
type Op struct {
	request.Request
	For time.Duration
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case op.For == 0:
		return errors.New("--for DURATION is missing: a pause always ends")
	case op.For < time.Second || op.For > longestPause:
		return fmt.Errorf("--for is between 1s and %s", longestPause)
	}
	return op.Request.Validate()
}

// Run asks for it and waits until the operator confirms.
func (op *Op) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	// It is useful even without an operator: before one returns that no one trusts. It ends on its own.
	view, err := op.See(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	now, whose := op.Clock(ctx, env, c)
	until := now.Add(op.For).UTC().Format(time.RFC3339)
	change := map[string]string{v1alpha1.AnnotationPauseUntil: until}
	begun := op.begun(view.Group)
	plan := append([]screen.Line{
		{Label: "Now", Text: fmt.Sprintf("%s is active; %s", cli.OrNoSite(view.Report.ActiveSite), request.PausedNow(view.Group))},
		{Label: "After", Text: "until " + until + " (" + op.For.String() + " by " + whose + ") the operator changes no role, replaces no pod and clones no site on its own"},
	}, begun...)
	plan = append(plan, []screen.Line{
		{Label: "Risk", Text: "if " + cli.OrNoSite(view.Report.ActiveSite) + " is lost in that time, writes stop until the pause ends or you resume"},
		{Label: "Undo", Text: "kubectl mfg resume " + op.Group + " -n " + op.Namespace},
	}...)
	if view.Down != "" {
		plan = append([]screen.Line{{Label: "Warning", Text: op.Unheard(view) + ": nothing fails over now; the pause is for an operator that comes back before it ends"}}, plan...)
	}
	op.ShowPlan(env, fmt.Sprintf("Pause %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Pause it?"); err != nil {
		return cli.ExitError, err
	}
	rep := op.Report("pause", plan, change)
	// Nothing pending or under way prevents it: a pause keeps the next change from beginning.
	before, err := op.Submit(ctx, env, c, change, request.Always)
	if err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = cli.OutcomeRequested, "asked for: paused until "+until
	if view.Down != "" {
		rep.Reason, rep.Message = v1alpha1.ReasonOperatorDown, "the pause until "+until+" is on the group; "+op.Unheard(view)
	}
	if op.Wait && view.Down == "" { // otherwise no operator can confirm it
		before, err = op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
			return meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) && g.Annotations[v1alpha1.AnnotationPauseUntil] == until
		})
		if err != nil {
			return cli.ExitError, err
		}
		rep.Outcome, rep.Message = cli.OutcomeDone, "paused until "+until
	}
	for _, l := range op.begun(before) { // it may have come meanwhile
		rep.Message += "\n" + l.Label + ": " + l.Text
	}
	return op.Finish(env, rep)
}

// begun says what happens to requests and work from before the pause. What a person ordered is carried out despite it.
func (op *Op) begun(g *v1alpha1.MysqlFailoverGroup) []screen.Line {
	var lines []screen.Line
	warn := func(label, format string, args ...any) {
		lines = append(lines, screen.Line{Label: label, Text: fmt.Sprintf(format, args...)})
	}
	if to, is := g.Annotations[v1alpha1.AnnotationForceFailover]; is {
		warn("Warning", "%s is ordered to take over; a pause does not stop that: %s", cli.OrNoSite(to), request.Withdrawal(op.Group, op.Namespace))
	}
	asked, isAsked := g.Annotations[v1alpha1.AnnotationPlannedFailover]
	switch p := g.Status.PlannedFailover; {
	case p != nil && p.Phase == v1alpha1.PlannedMoving:
		warn("Warning", "the role is moving to %s by a planned failover; a pause does not stop that: %s", p.To, request.Withdrawal(op.Group, op.Namespace))
	case p != nil && p.Phase == v1alpha1.PlannedWaiting:
		warn("Pending", "the planned failover to %s is refused (Paused), unless it begins before; ask again afterwards", p.To)
	case isAsked:
		warn("Pending", "the planned failover to %s is refused (Paused), unless it begins before; ask again afterwards", cli.OrNoSite(asked))
	}
	if t := g.Status.Transition; t != nil && t.Kind != v1alpha1.FailoverPlanned {
		warn("Warning", "the role is moving to %s (%s); a pause does not stop that", t.To, t.Step)
	}
	if site, is := g.Annotations[v1alpha1.AnnotationRecloneSite]; is {
		warn("Warning", "a new copy of %s is ordered; a pause does not stop that", cli.OrNoSite(site))
	}
	switch site, is := g.Annotations[v1alpha1.AnnotationRotateKeyring]; {
	case is && v1alpha1.AsksForCampaign(site):
		warn("Pending", "the rotation of all sites begins no further step, and continues afterwards")
	case is:
		warn("Pending", "the rotation of the keyring of %s stops before its pod is replaced, and continues afterwards", cli.OrNoSite(site))
	}
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionProgressing) {
		warn("Pending", "an update that is under way stops before the next pod is replaced, and continues afterwards")
	}
	return lines
}
