// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"context"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// stop removes the request for all sites from the group: the operator begins no further step.
func (r *rotation) stop(ctx context.Context, view request.Outlook) (int, error) {
	op, g := r.op, view.Group
	stops := func(g *v1alpha1.MysqlFailoverGroup) error {
		if v1alpha1.AsksForCampaign(g.Annotations[v1alpha1.AnnotationRotateKeyring]) {
			return nil
		}
		return cli.Refused("refused: no rotation of all sites is under way\n  see how it is: kubectl mfg status %s -n %s", op.Group, op.Namespace)
	}
	if err := stops(g); err != nil {
		return cli.ExitError, err
	}
	c := campaignOf(g)
	op.wanted = c.Left()
	change := map[string]string{v1alpha1.AnnotationRotateKeyring: ""}
	plan := []screen.Line{
		nowLine(g),
		{Label: "Stops", Text: c.Words()},
		{Label: "Stays", Text: "sites that are done keep their new keys; one whose keys are being rotated is finished, since its new keys have to come into escrow"},
		{Label: "Role", Text: fmt.Sprintf("a planned failover that has begun continues; to abort it: kubectl mfg failover %s -n %s --abort", op.Group, op.Namespace)},
	}
	op.ShowPlan(r.env, fmt.Sprintf("Stop the rotation of all sites of %s (namespace %s)", op.Group, op.Namespace), plan)
	r.rep = op.rotationReport(plan, change)
	if err := op.Confirm(ctx, r.env, "Stop it?"); err != nil {
		return cli.ExitError, err
	}
	id := g.Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()]
	if _, err := op.Submit(ctx, r.env, r.cluster, change, stops); err != nil {
		return cli.ExitError, err
	}
	switch {
	case op.DryRun != request.DryRunNone:
		return cli.ExitHealthy, op.dryRun(r.env, r.rep)
	case !op.Wait:
		r.rep.Left = op.wanted
		r.rep.Outcome, r.rep.Message = cli.OutcomeRequested, "requested; see how far it is: kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w"
		return op.finishRotation(r.env, r.rep)
	}
	g, err := op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
		c := campaignOf(g)
		return c == nil || c.Request != id || !c.UnderWay()
	})
	if err != nil {
		return cli.ExitError, err
	}
	r.rep.Outcome, r.rep.Message, r.rep.Epoch = cli.OutcomeDone, "stopped before anything was begun", g.Status.Epoch
	if c := campaignOf(g); c != nil && c.Request == id {
		r.rep.Left, r.rep.Message = c.Left(), "stopped: "+c.Message
	}
	return op.finishRotation(r.env, r.rep)
}
