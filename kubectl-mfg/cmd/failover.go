// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// failoverOp is `kubectl mfg failover`.
type failoverOp struct {
	request
	To             string
	Abort          bool
	AcceptDataLoss bool
}

func (a *app) failoverCommand() *cobra.Command {
	op := failoverOp{}
	cmd := &cobra.Command{
		Use:   "failover GROUP --to SITE",
		Short: "Move the active site to another one, without loss",
		Long: `Move the active site to another one. Nothing is lost: the old active site is fenced, the new one applies all that it
held, and only then is opened; if that takes too long, the old one is opened again. What will happen is shown first.

With --accept-data-loss, order an emergency failover that the operator does not do by itself (kubectl mfg explain says
why not). That may lose acknowledged writes; it is refused while the active site accepts writes. The order stays on the
group until it is carried out, also after Ctrl-C: kubectl mfg status shows it, --abort withdraws it.

` + exitCodes,
		Example: `  # Look first: what would happen? Nothing is sent
  kubectl mfg failover orders --to frankfurt --dry-run=client

  # Move the role; asks, shows each phase, and tells for how long writes were kept out
  kubectl mfg failover orders --to frankfurt

  # From a script: no questions, the outcome as JSON, exit code 5 if refused or reverted
  kubectl mfg failover orders --to frankfurt --yes -o json

  # It takes too long? Give it up: the old active site is opened again
  kubectl mfg failover orders --abort

  # The active site is lost and the operator waits for a word
  kubectl mfg failover orders --to frankfurt --accept-data-loss

  # It is not meant any more: withdraw it, also while no operator runs
  kubectl mfg failover orders --abort`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.To, "to", "", "Site that is to become active.")
	f.BoolVar(&op.Abort, "abort", false, "Give up the planned failover that is under way, and withdraw a pending order that accepts data loss.")
	f.BoolVar(&op.AcceptDataLoss, "accept-data-loss", false, "Override what blocks an emergency failover. Acknowledged writes may be lost.")
	out := op.bind(cmd, 5*time.Minute)
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *failoverOp) validate() error {
	switch {
	case op.Abort && (op.To != "" || op.AcceptDataLoss):
		return errors.New("--abort stands alone: it gives up the planned failover that is under way, and withdraws an order that accepts data loss")
	case !op.Abort && op.To == "":
		return errors.New("--to SITE is missing: to which site is the role to move?")
	}
	return op.request.validate()
}

func (op *failoverOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	if op.Abort {
		return op.abort(ctx, env, c)
	}
	view, err := op.look(ctx, c)
	if err != nil {
		return exitError, err
	}
	if op.AcceptDataLoss {
		return op.force(ctx, env, c, view)
	}
	return op.planned(ctx, env, c, view)
}

// outlook is what is known of a group before something is asked for.
type outlook struct {
	group       *v1alpha1.MysqlFailoverGroup
	report      report.MysqlFailoverGroupReport
	explanation *wire.Explanation
	// down is why it is certain that no operator looks after groups now; empty if that is not so.
	down string
}

// look refuses where nobody would carry out what is asked for.
func (r *request) look(ctx context.Context, c Cluster) (outlook, error) {
	view, err := r.see(ctx, c)
	if err == nil && view.down != "" {
		return outlook{}, refused("refused: %s: nobody would carry it out, and it would happen unexpectedly later\n  see why: kubectl get pods -n %s -l %s",
			view.down, r.OperatorNamespace, operatorSelector)
	}
	return view, err
}

// see looks at a group, whether an operator runs or not.
func (r *request) see(ctx context.Context, c Cluster) (outlook, error) {
	g, err := c.Group(ctx, r.Namespace, r.Group)
	if err != nil {
		return outlook{}, err
	}
	list, err := c.Explain(ctx, r.OperatorNamespace, r.Namespace, r.Group)
	if ctx.Err() != nil {
		return outlook{}, ctx.Err()
	}
	view, e := viewOf(list, err, r.OperatorNamespace)
	seen := outlook{group: g, report: report.Build(g, view), explanation: e}
	if view.Down {
		seen.down = view.Missing
	}
	return seen, nil
}

func (o outlook) site(name string) (report.Site, bool) {
	for _, s := range o.report.Sites {
		if s.Name == name {
			return s, true
		}
	}
	return report.Site{}, false
}

func (o outlook) candidate(name string) (wire.ExplainedCandidate, bool) {
	if o.explanation == nil {
		return wire.ExplainedCandidate{}, false
	}
	for _, c := range o.explanation.Candidates {
		if c.Site == name {
			return c, true
		}
	}
	return wire.ExplainedCandidate{}, false
}

// planned moves the role without loss.
func (op *failoverOp) planned(ctx context.Context, env Environment, c Cluster, view outlook) (int, error) {
	change := map[string]string{v1alpha1.AnnotationPlannedFailover: op.To}
	check := func(g *v1alpha1.MysqlFailoverGroup) error { return op.allowed(g) }
	if err := check(view.group); err != nil {
		return exitError, err
	}
	if err := op.preflight(view); err != nil {
		return exitError, err
	}
	plan := op.plan(view)
	op.showPlan(env, fmt.Sprintf("Planned failover of %s (namespace %s) to %s", op.Group, op.Namespace, op.To), plan)
	if err := op.confirm(ctx, env, "Move the role to "+op.To+" now?"); err != nil {
		return exitError, err
	}
	rep := op.report("failover", plan, change)
	rep.Site, rep.From = op.To, view.report.ActiveSite
	before, err := op.submit(ctx, env, c, change, check)
	if err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, rep)
	}
	if !op.Wait {
		rep.Outcome, rep.Message = outcomeRequested, "asked for; see how far it is: kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w"
		return op.finish(env, rep)
	}
	if err := op.followMove(ctx, env, c, move{to: op.To, before: before.Status.PlannedFailover}, rep); err != nil {
		return exitError, err
	}
	return op.finish(env, rep)
}

// allowed refuses what the custom resource alone shows to be impossible. Each refusal names the next step.
func (op *failoverOp) allowed(g *v1alpha1.MysqlFailoverGroup) error {
	role, known := roleOf(g, op.To)
	switch {
	case !known:
		return refused("refused: %s has no site %q; its sites are %s\n  see them: kubectl mfg status %s -n %s", op.Group, op.To, siteNames(g), op.Group, op.Namespace)
	case g.Status.ActiveSite == op.To && g.Status.Transition == nil && !op.AcceptDataLoss:
		return op.activeAlready(g)
	case role != v1alpha1.PrimaryCandidate:
		return refused("refused: %s is %s and is never active\n  to change that, make it a primary-candidate: kubectl edit mfg %s -n %s", op.To, role, op.Group, op.Namespace)
	case op.AcceptDataLoss:
		return nil // an order may come while something else is under way: that is what it is for
	case g.Spec.Failover.Mode == v1alpha1.FailoverObserve:
		return refused("refused: spec.failover.mode is Observe\n  to let the operator act: kubectl patch mfg %s -n %s --type merge -p '{\"spec\":{\"failover\":{\"mode\":\"Manual\"}}}'", op.Group, op.Namespace)
	}
	return notMoving(g)
}

// preflight asks the operator's own preflight, if it can be asked; it is asked again there, with the facts of then.
func (op *failoverOp) preflight(view outlook) error {
	c, known := view.candidate(op.To)
	if !known || c.PlannedBlockedBy == "" {
		return nil
	}
	return &coded{code: exitRefused, reason: v1alpha1.Reason(c.PlannedBlockedBy),
		err: fmt.Errorf("refused (%s): %s\n  %s", c.PlannedBlockedBy, c.PlannedMessage, nextStep(op.Namespace, op.Group, c.PlannedRemedies))}
}

func (op *failoverOp) plan(view outlook) []planLine {
	r, spec := view.report, view.group.Spec.Failover
	pause := spec.PlannedPauseTimeout.Duration
	if pause <= 0 {
		pause = 5 * time.Second
	}
	return []planLine{
		{"Now", fmt.Sprintf("%s is active under epoch %d", orDash(r.ActiveSite), r.Epoch)},
		{"After", fmt.Sprintf("%s is active under epoch %d; %s replicates from it", op.To, r.Epoch+1, orDash(r.ActiveSite))},
		{"Target", targetWords(view, op.To)},
		{"Pause", pauseWords(view.group, pause)},
		{"Sessions", "every client session on " + orDash(r.ActiveSite) + " ends; applications must reconnect to " + r.Endpoints.Writes},
		{"Loss", "nothing: " + op.To + " is opened only with all that " + orDash(r.ActiveSite) + " held, or the move is reverted"},
		{"Undo", fmt.Sprintf("while it is under way: kubectl mfg failover %s -n %s --abort; afterwards: kubectl mfg failover %s -n %s --to %s",
			op.Group, op.Namespace, op.Group, op.Namespace, orDash(r.ActiveSite))},
	}
}

func targetWords(view outlook, to string) string {
	s, known := view.site(to)
	if !known || s.LagSeconds == nil || s.Behind == nil {
		return to + ": how far it is behind is not known; the operator waits until it is close, before it stops writes"
	}
	return fmt.Sprintf("%s is %.1f s and %d transactions behind; it is waited for before writes are stopped", to, *s.LagSeconds, *s.Behind)
}

// pauseWords expect what was measured before; only the bound is a promise.
func pauseWords(g *v1alpha1.MysqlFailoverGroup, bound time.Duration) string {
	var n, least, most int64
	for _, r := range g.Status.Failovers {
		if r.WritePauseMillis == nil || r.From == r.To {
			continue
		}
		if n == 0 || *r.WritePauseMillis < least {
			least = *r.WritePauseMillis
		}
		n, most = n+1, max(most, *r.WritePauseMillis)
	}
	words := fmt.Sprintf("writes are kept out for at most plannedPauseTimeout %s; then it is reverted", bound)
	switch n {
	case 0:
		return words + "; none was measured in this group yet"
	case 1:
		return fmt.Sprintf("%s; the last one took %d ms", words, least)
	}
	return fmt.Sprintf("%s; the last %d took %d to %d ms", words, n, least, most)
}

func roleOf(g *v1alpha1.MysqlFailoverGroup, site string) (v1alpha1.SiteRole, bool) {
	for _, s := range g.Spec.Sites {
		if s.Name == site {
			return s.Role, true
		}
	}
	return "", false
}
