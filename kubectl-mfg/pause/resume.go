// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Resume is `kubectl mfg resume`.
type Resume struct{ request.Request }

// Run ends the pause and waits until the operator confirms.
func (op *Resume) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	view, err := op.See(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	g := view.Group
	change := map[string]string{v1alpha1.AnnotationPauseUntil: ""}
	plan := []screen.Line{{Label: "Now", Text: request.PausedNow(g)}, {Label: "After", Text: "the operator acts again"}, {Label: "Undo", Text: fmt.Sprintf("kubectl mfg pause %s -n %s --for 30m", op.Group, op.Namespace)}}
	rep := op.Report("resume", plan, change)
	if _, set := g.Annotations[v1alpha1.AnnotationPauseUntil]; !set {
		rep.Outcome, rep.Message = cli.OutcomeDone, op.Group+" is not paused; nothing was changed"
		return op.Finish(env, rep)
	}
	if view.Down != "" {
		plan = append([]screen.Line{{Label: "Warning", Text: op.Unheard(view) + ": an operator that comes back acts at once"}}, plan...)
	}
	op.ShowPlan(env, fmt.Sprintf("Resume %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Resume it?"); err != nil {
		return cli.ExitError, err
	}
	// No pending request keeps a pause from ending: it may wait for exactly that.
	if _, err := op.Submit(ctx, env, c, change, request.Always); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Outcome, rep.Message = cli.OutcomeRequested, "asked for"
	if view.Down != "" {
		rep.Reason, rep.Message = v1alpha1.ReasonOperatorDown, "the pause is taken off the group; "+op.Unheard(view)
	}
	if !op.Wait || view.Down != "" { // no operator can confirm it
		return op.Finish(env, rep)
	}
	if _, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		return !meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused)
	}); err != nil {
		return cli.ExitError, err
	}
	rep.Outcome, rep.Message = cli.OutcomeDone, op.Group+" is not paused any more"
	return op.Finish(env, rep)
}
