// SPDX-License-Identifier: Apache-2.0

package apppassword

import (
	"context"
	"fmt"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Retire is `kubectl mfg app-password retire`.
type Retire struct{ Op }

// Run ends the older password.
func (op *Retire) Run(ctx context.Context, env cli.Environment, c mysqlclient.Cluster) (int, error) {
	w, s, a, err := op.seen(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	plan := []screen.Line{
		{Label: "Ends", Text: fmt.Sprintf("the older password of %s, on every site; what stands in Secret %s stays valid", w.user(), w.secret.Name)},
		{Label: "Sessions", Text: fmt.Sprintf("%d on %s at the moment; they stay, but an application that has the old password cannot log in again", a.sessions, w.group.Status.ActiveSite)},
	}
	rep := op.Report("app-password retire", plan, nil)
	next, reason := retirement(s)
	if next == refuse {
		return cli.ExitError, cli.Refused("refused: %s", reason.of(op.Group, op.Namespace))
	}
	if next == done {
		rep.Outcome, rep.Message = cli.OutcomeDone, fmt.Sprintf("%s has the password in Secret %s and no other; nothing was changed", w.user(), w.secret.Name)
		return op.Finish(env, rep)
	}
	op.ShowPlan(env, fmt.Sprintf("End the older password of the application of %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Do all applications have the new one? End the old one?"); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	// A person may have thought for long.
	if w, s, _, err = op.seen(ctx, c); err != nil {
		return cli.ExitError, err
	}
	if next, reason = retirement(s); next == refuse {
		return cli.ExitError, cli.Refused("refused: %s", reason.of(op.Group, op.Namespace))
	}
	if err := w.discard(ctx); err != nil {
		return cli.ExitError, err
	}
	rep.Outcome, rep.Message = cli.OutcomeDone, fmt.Sprintf("done: %s has the password in Secret %s and no other", w.user(), w.secret.Name)
	return op.Finish(env, rep)
}

func (op *Retire) seen(ctx context.Context, c mysqlclient.Cluster) (*world, seen, account, error) {
	w, err := op.read(ctx, c)
	if err != nil {
		return nil, seen{}, account{}, err
	}
	s, a, err := w.see(ctx, nil)
	return w, s, a, err
}

// discard leaves the account only the Secret's password. First it makes that the primary one: a Secret that was reset to an earlier state has the
// older of the two. A server that remembers passwords refuses an earlier one; then it is already the primary one, or the check afterwards reports
// that the account no longer gets in.
func (w *world) discard(ctx context.Context) error {
	own := ownStatements(w.user(), w.password())
	if _, err := w.active.run(ctx, root, w.rootPassword, own...); err != nil && number(err) != numberReused {
		return err
	}
	if _, err := w.active.run(ctx, root, w.rootPassword, discardStatement(w.user())); err != nil {
		return err
	}
	yes, err := w.active.accepts(ctx, w.user(), w.password())
	if err != nil || yes {
		return err
	}
	return fmt.Errorf("the active site does not let %s in with the password in Secret %s any more, because it refuses passwords that it had before\n  give it another one: ALTER USER %s@'%%' IDENTIFIED BY ..., and write that into the Secret: kubectl mfg mysql %s -n %s",
		w.user(), w.secret.Name, quote(w.user()), w.op.Group, w.op.Namespace)
}
