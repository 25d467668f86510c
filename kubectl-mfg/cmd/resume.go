// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// resumeOp is `kubectl mfg resume`.
type resumeOp struct{ request }

func (a *app) resumeCommand() *cobra.Command {
	op := resumeOp{}
	cmd := &cobra.Command{
		Use:   "resume GROUP",
		Short: "End a pause",
		Long: `End a pause: the operator acts by itself again, at once. If a failover was due and only the pause was in its way, it
happens now; kubectl mfg explain says so beforehand.

` + exitCodes,
		Example: `  # What would happen?
  kubectl mfg explain orders

  # Go on
  kubectl mfg resume orders`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	out := op.bind(cmd, 30*time.Second)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *resumeOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	view, err := op.see(ctx, c)
	if err != nil {
		return exitError, err
	}
	g := view.group
	change := map[string]string{v1alpha1.AnnotationPauseUntil: ""}
	plan := []planLine{{"Now", pausedNow(g)}, {"After", "the operator acts by itself again"}, {"Undo", fmt.Sprintf("kubectl mfg pause %s -n %s --for 30m", op.Group, op.Namespace)}}
	rep := op.report("resume", plan, change)
	if _, set := g.Annotations[v1alpha1.AnnotationPauseUntil]; !set {
		rep.Outcome, rep.Message = outcomeDone, op.Group+" is not paused; nothing was changed"
		return op.finish(env, rep)
	}
	if view.down != "" {
		plan = append([]planLine{{"Warning", op.unheard(view) + ": an operator that comes back acts by itself at once"}}, plan...)
	}
	op.showPlan(env, fmt.Sprintf("Resume %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.confirm(ctx, env, "Resume it?"); err != nil {
		return exitError, err
	}
	// Nothing that is pending keeps a pause from being ended: it may be what the request waits for.
	if _, err := op.submit(ctx, env, c, change, always); err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = outcomeRequested, "asked for"
	if view.down != "" {
		rep.Reason, rep.Message = v1alpha1.ReasonOperatorDown, "the pause is taken off the group; "+op.unheard(view)
	}
	if !op.Wait || view.down != "" { // nobody is there to confirm it
		return op.finish(env, rep)
	}
	if _, err := op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		return !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused)
	}); err != nil {
		return exitError, err
	}
	rep.Outcome, rep.Message = outcomeDone, op.Group+" is not paused any more"
	return op.finish(env, rep)
}
