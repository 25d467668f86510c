// SPDX-License-Identifier: Apache-2.0

// Package recovery restores the escrow Secret of a keyring from the memory of the site's pod. See docs/encryption.md.
package recovery

import (
	"context"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Op is `kubectl mfg recover-keyring`.
type Op struct {
	request.Request
	Site string
	// made is the report as far as it was made.
	made *Report
}

// Run does what is left of the procedure.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	r := &recovery{op: op, env: env, cluster: c, began: env.Now()}
	if err := r.look(ctx); err != nil {
		return cli.ExitError, err
	}
	due := r.due()
	rep := op.recoveryReport(r, due)
	op.made = rep
	if len(due) == 0 {
		rep.Outcome = cli.OutcomeDone
		rep.Message = fmt.Sprintf("nothing is missing: %s is in escrow with the digest that status names, and %s is sealed", r.status.KeyringSecret, op.Site)
		return op.finishRecovery(env, rep)
	}
	if err := r.mayCarryOut(ctx, due); err != nil {
		return cli.ExitError, err
	}
	rep.MissingRights = r.lacking
	if err := r.hasSource(ctx); err != nil {
		return cli.ExitError, err
	}
	op.ShowPlan(env, fmt.Sprintf("Recover the keyring of %s (group %s, namespace %s)", op.Site, op.Group, op.Namespace), r.plan(due))
	if op.DryRun != request.DryRunNone {
		if err := r.rehearse(ctx, due, rep); err != nil {
			return cli.ExitError, err
		}
		return op.finishRecovery(env, rep)
	}
	if err := op.Confirm(ctx, env, "Do this now?"); err != nil {
		return cli.ExitError, err
	}
	if err := r.carryOut(ctx, due, rep); err != nil {
		return cli.ExitError, err
	}
	return op.finishRecovery(env, rep)
}

func (r *recovery) plan(due []recoveryStep) []screen.Line {
	st := r.status
	now := fmt.Sprintf("%s is missing; the only copy of it is in the memory of the pod of %s", st.KeyringSecret, st.Name)
	if r.secret != nil {
		now = fmt.Sprintf("%s is there; what is left to do is below", st.KeyringSecret)
	}
	lines := []screen.Line{
		{Label: "Now", Text: now},
		{Label: "After", Text: fmt.Sprintf("%s is in escrow again with %s, as the operator made it, and %s is Sealed", st.KeyringSecret, st.KeyringDigest, st.Name)},
		{Label: "Meanwhile", Text: "do not delete, restart, evict or drain the pod of " + st.Name + " (file " + keyrings.File(r.group) + ")"},
	}
	for i, s := range due {
		lines = append(lines, screen.Line{Label: fmt.Sprintf("Step %d", i+1), Text: s.name + ": " + s.text(r)})
	}
	if len(r.lacking) > 0 {
		lines = append(lines, screen.Line{Label: "Rights", Text: "you cannot carry it out, you have no right to: " + strings.Join(r.lacking, ", ")})
	}
	if r.unseen {
		lines = append(lines, screen.Line{Label: "Unseen", Text: "you may not list pods: whether the pod still runs was not looked at"})
	}
	return append(lines, screen.Line{Label: "Undo", Text: "none is needed: neither the pod nor its data is touched"})
}
