// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// longestPause keeps a pause from being forgotten for good.
const longestPause = 7 * 24 * time.Hour

// pauseOp is `kubectl mfg pause`.
type pauseOp struct {
	request
	For time.Duration
}

func (a *app) pauseCommand() *cobra.Command {
	op := pauseOp{}
	cmd := &cobra.Command{
		Use:   "pause GROUP --for DURATION",
		Short: "Keep the operator from changing anything by itself, for a time",
		Long: `Keep the operator from changing roles, rolling pods and cloning sites by itself, for a time. The pause ends by itself:
nobody can forget it. While it lasts a lost active site is NOT replaced; fences still work, and an active site that
restarts is opened again. What a person has ordered with --accept-data-loss is carried out all the same; a planned failover
that has not begun is refused, and a rotation or an update stops before the next pod is replaced.

It is taken also while no operator runs, for one that comes back before it ends, and while something else is asked for.

` + exitCodes,
		Example: `  # While you work on the network
  kubectl mfg pause orders --for 30m

  # Done sooner
  kubectl mfg resume orders`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().DurationVar(&op.For, "for", 0, "How long, such as 30m; at most 168h.")
	out := op.bind(cmd, 30*time.Second)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *pauseOp) validate() error {
	switch {
	case op.For == 0:
		return errors.New("--for DURATION is missing: a pause always ends")
	case op.For < time.Second || op.For > longestPause:
		return fmt.Errorf("--for is between 1s and %s", longestPause)
	}
	return op.request.validate()
}

func (op *pauseOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	// Without an operator it is wanted all the same: before one comes back that nobody trusts. It ends by itself.
	view, err := op.see(ctx, c)
	if err != nil {
		return exitError, err
	}
	now, whose := op.clock(ctx, env, c)
	until := now.Add(op.For).UTC().Format(time.RFC3339)
	change := map[string]string{v1alpha1.AnnotationPauseUntil: until}
	begun := op.begun(view.group)
	plan := append([]planLine{
		{"Now", fmt.Sprintf("%s is active; %s", orDash(view.report.ActiveSite), pausedNow(view.group))},
		{"After", "until " + until + " (" + op.For.String() + " by " + whose + ") by itself no role changes, no pod is rolled, no site is cloned"},
	}, begun...)
	plan = append(plan, []planLine{
		{"Risk", "if " + orDash(view.report.ActiveSite) + " is lost in that time, writes stop until the pause ends or somebody resumes"},
		{"Undo", "kubectl mfg resume " + op.Group + " -n " + op.Namespace},
	}...)
	if view.down != "" {
		plan = append([]planLine{{"Warning", op.unheard(view) + ": nothing fails over now; the pause is for an operator that comes back before it ends"}}, plan...)
	}
	op.showPlan(env, fmt.Sprintf("Pause %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.confirm(ctx, env, "Pause it?"); err != nil {
		return exitError, err
	}
	rep := op.report("pause", plan, change)
	// Nothing that is pending or under way is in the way: it is the next change that a pause is to keep from beginning.
	before, err := op.submit(ctx, env, c, change, always)
	if err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = outcomeRequested, "asked for: paused until "+until
	if view.down != "" {
		rep.Reason, rep.Message = v1alpha1.ReasonOperatorDown, "the pause until "+until+" is on the group; "+op.unheard(view)
	}
	if op.Wait && view.down == "" { // otherwise nobody is there to confirm it
		before, err = op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
			return meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) && g.Annotations[v1alpha1.AnnotationPauseUntil] == until
		})
		if err != nil {
			return exitError, err
		}
		rep.Outcome, rep.Message = outcomeDone, "paused until "+until
	}
	for _, l := range op.begun(before) { // it may have come meanwhile
		rep.Message += "\n" + l.Label + ": " + l.Text
	}
	return op.finish(env, rep)
}

// begun says what becomes of that which was asked for, or has begun, before the pause. What a person ordered is carried out
// despite it.
func (op *pauseOp) begun(g *v1alpha1.MysqlFailoverGroup) []planLine {
	var lines []planLine
	warn := func(label, format string, args ...any) {
		lines = append(lines, planLine{label, fmt.Sprintf(format, args...)})
	}
	if to, is := g.Annotations[v1alpha1.AnnotationForceFailover]; is {
		warn("Warning", "%s is ordered to take over; a pause does not stop that: %s", orDash(to), withdrawal(op.Group, op.Namespace))
	}
	asked, isAsked := g.Annotations[v1alpha1.AnnotationPlannedFailover]
	switch p := g.Status.PlannedFailover; {
	case p != nil && p.Phase == v1alpha1.PlannedMoving:
		warn("Warning", "the role is moving to %s by a planned failover; a pause does not stop that: %s", p.To, withdrawal(op.Group, op.Namespace))
	case p != nil && p.Phase == v1alpha1.PlannedWaiting:
		warn("Pending", "the planned failover to %s is refused (Paused), unless it begins before; ask again afterwards", p.To)
	case isAsked:
		warn("Pending", "the planned failover to %s is refused (Paused), unless it begins before; ask again afterwards", orDash(asked))
	}
	if t := g.Status.Transition; t != nil && t.Kind != v1alpha1.FailoverPlanned {
		warn("Warning", "the role is moving to %s (%s); a pause does not stop that", t.To, t.Step)
	}
	if site, is := g.Annotations[v1alpha1.AnnotationRecloneSite]; is {
		warn("Warning", "a new copy of %s is ordered; a pause does not stop that", orDash(site))
	}
	if site, is := g.Annotations[v1alpha1.AnnotationRotateKeyring]; is {
		warn("Pending", "the rotation of the keyring of %s stops before its pod is replaced, and goes on afterwards", orDash(site))
	}
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionProgressing) {
		warn("Pending", "an update that is under way stops before the next pod is replaced, and goes on afterwards")
	}
	return lines
}

// unheard says that nobody hears a request yet, and where to look.
func (r *request) unheard(view outlook) string {
	return fmt.Sprintf("%s (see why: kubectl get pods -n %s -l %s)", view.down, r.OperatorNamespace, operatorSelector)
}

// clock prefers the operator's, by which the pause ends; then the API server's; this machine's may be wrong by hours.
func (r *request) clock(ctx context.Context, env Environment, c Cluster) (now time.Time, whose string) {
	if list, err := c.Live(ctx, r.OperatorNamespace, r.Namespace, r.Group); err == nil && !list.IssuedAt.IsZero() {
		return list.IssuedAt, "the operator's clock"
	}
	if at, _, err := c.Clock(ctx); err == nil {
		return at, "the API server's clock"
	}
	return env.Now(), "this machine's clock"
}

func pausedNow(g *v1alpha1.MysqlFailoverGroup) string {
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) {
		return "paused until " + g.Annotations[v1alpha1.AnnotationPauseUntil]
	}
	if until, is := g.Annotations[v1alpha1.AnnotationPauseUntil]; is {
		return "a pause until " + until + " is asked for, and no operator says that it holds"
	}
	return "not paused"
}
