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
	// A person may have thought for long. The yes was to the password of the Secret that the plan was made from: another replacement may have
	// come, and then the older password is one that nobody was asked about.
	asked := w.secret.ObjectMeta
	if w, s, _, err = op.seen(ctx, c); err != nil {
		return cli.ExitError, err
	}
	if w.secret.UID != asked.UID || w.secret.ResourceVersion != asked.ResourceVersion {
		return cli.ExitError, cli.Refused("refused: the Secret was changed meanwhile (%s), perhaps by another replacement; nothing was ended\n  make sure that all applications have the password that it has now, then: %s",
			w.secret.Name, op.command("retire"))
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

// discard leaves the account only the Secret's password. First it makes that the primary one: a Secret that was put back to an earlier state has
// the older of the two. A server with password_history refuses each password that it remembers, the primary one and the older one alike. Of
// the two only the primary one may then be kept: to discard the older one, if that is the Secret's, would lock out every application.
func (w *world) discard(ctx context.Context) error {
	own := ownStatements(w.user(), w.password())
	_, err := w.active.Run(ctx, mysqlclient.Root, w.rootPassword, own...)
	if mysqlclient.Number(err) == numberReused {
		err = w.needsPrimary(ctx)
	}
	if err != nil {
		return err
	}
	if _, err := w.active.Run(ctx, mysqlclient.Root, w.rootPassword, discardStatement(w.user())); err != nil {
		return err
	}
	yes, err := w.active.Accepts(ctx, w.user(), w.password())
	if err != nil || yes {
		return err
	}
	return fmt.Errorf("the active site does not let %s in with the password in Secret %s any more\n  give it another one: ALTER USER %s@'%%' IDENTIFIED BY ..., and write that into the Secret: kubectl mfg mysql %s -n %s",
		w.user(), w.secret.Name, mysqlclient.Quote(w.user()), w.op.Group, w.op.Namespace)
}

// needsPrimary refuses unless the Secret's password is the account's primary one.
func (w *world) needsPrimary(ctx context.Context) error {
	is, err := w.active.primary(ctx, w.rootPassword, w.user(), w.password())
	if err != nil || is {
		return err
	}
	account := mysqlclient.Quote(w.user()) + "@'%'"
	return cli.Refused("refused: Secret %[1]s has the older password of %[2]s, and the active site does not take a password back that it had before (password_history): to end the other one would end this one\n"+
		"  write the newer one into the Secret, if you know it, and call this again\n"+
		"  or let the account go back to it, as root: kubectl mfg mysql %[3]s -n %[4]s\n"+
		"    before: ALTER USER %[5]s PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 0 DAY\n"+
		"    after:  ALTER USER %[5]s PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT",
		w.secret.Name, w.user(), w.op.Group, w.op.Namespace, account)
}
