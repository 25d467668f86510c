// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"context"
	"errors"
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// site rotates one replica, or waits for it if that is already requested.
func (r *rotation) site(ctx context.Context, view request.Outlook) (int, error) {
	op, g := r.op, view.Group
	op.wanted = []string{op.Site}
	joined := g.Annotations[v1alpha1.AnnotationRotateKeyring] == op.Site
	if err := op.checkGroup(g, op.Site); err != nil {
		return cli.ExitError, err
	}
	if !joined {
		if err := request.NotMoving(g); err != nil {
			return cli.ExitError, err
		}
	}
	change, step := map[string]string{v1alpha1.AnnotationRotateKeyring: op.Site}, "rotate "+op.Site
	if joined {
		change, step = map[string]string{}, op.Site+" is being rotated already: it is waited for"
		r.joined, op.ID = true, g.Annotations[v1alpha1.RequestRotateKeyring.IDAnnotation()]
		r.from = keyrings.SiteStatus(g, op.Site).VersionBefore()
	}
	plan := append([]screen.Line{nowLine(g), {Label: stepLabel(0), Text: step}}, op.closingLines(g, "", "ends the waiting; the operator finishes the site. To wait for it again: "+op.again())...)
	op.ShowPlan(r.env, fmt.Sprintf("Rotate the keyring of site %s of %s (namespace %s)", op.Site, op.Group, op.Namespace), plan)
	r.rep = op.rotationReport(plan, change)
	if err := op.Confirm(ctx, r.env, "Rotate now?"); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		if _, err := op.Submit(ctx, r.env, r.cluster, change, func(g *v1alpha1.MysqlFailoverGroup) error { return op.checkGroup(g, op.Site) }); err != nil {
			return cli.ExitError, err
		}
		return cli.ExitHealthy, op.dryRun(r.env, r.rep)
	}
	if err := r.rotate(ctx); err != nil {
		return r.unfinished(ctx, err, "to go on: "+op.again())
	}
	return op.finishRotation(r.env, r.rep)
}

// versionBefore is the keyring's version before the rotation, which may be over if it was requested earlier.
func (r *rotation) versionBefore(g *v1alpha1.MysqlFailoverGroup) int64 {
	if r.joined {
		return r.from
	}
	return keyrings.SiteStatus(g, r.op.Site).VersionBefore()
}

func (r *rotation) rotate(ctx context.Context) error {
	op, began := r.op, r.env.Now()
	fmt.Fprintf(r.env.ErrOut, "rotate %s\n", op.Site)
	g, err := r.cluster.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return err
	}
	asked := op.Stands(g, v1alpha1.RequestRotateKeyring, op.Site) || r.joined
	if !asked && op.Wait {
		if g, err = r.calm(ctx); err != nil {
			return err
		}
	}
	step := rotationStep{Action: actionRotate, Site: op.Site, FromVersion: r.versionBefore(g)}
	if !asked {
		if err := op.checkSite(g); err != nil {
			return err
		}
		if _, err := op.Submit(ctx, r.env, r.cluster, map[string]string{v1alpha1.AnnotationRotateKeyring: op.Site}, func(g *v1alpha1.MysqlFailoverGroup) error {
			if err := encryptedGroup(g); err != nil {
				return err
			}
			if err := op.noCampaign(g); err != nil {
				return err
			}
			return request.RefuseWhile(g, restless(g, op.Site))
		}); err != nil {
			return err
		}
	}
	if !op.Wait {
		step.Outcome = cli.OutcomeRequested
		r.rep.Steps, r.rep.Left = []rotationStep{step}, []string{}
		r.rep.Outcome, r.rep.Message = cli.OutcomeRequested, "requested; see how far it is: kubectl mfg status "+op.Group+" -n "+op.Namespace+" -w"
		return nil
	}
	g, err = r.followRotation(ctx)
	step.TookMillis = r.env.Now().Sub(began).Milliseconds()
	if err == nil {
		err = r.settle(g, &step)
	} else {
		step.Outcome, step.Message = "Unknown", err.Error()
	}
	r.rep.Steps = []rotationStep{step}
	return err
}

// calm waits until the operator would accept the rotation.
func (r *rotation) calm(ctx context.Context) (*v1alpha1.MysqlFailoverGroup, error) {
	tell, busy := r.teller(), ""
	g, err := r.op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if busy = restless(g, r.op.Site); busy != "" {
			tell("waits: " + busy)
		}
		return busy == ""
	})
	var own *cli.Error
	if !errors.As(err, &own) || own.Ended == "" {
		return g, err
	}
	why := own.Ended
	if busy != "" {
		why += ", it waits for: " + busy
	}
	return nil, cli.Refused("given up: the rotation was not requested, and will not happen (%s)\n  see how it is: kubectl mfg status %s -n %s", why, r.op.Group, r.op.Namespace)
}

// followRotation waits until the order is gone from the group: then it is over.
func (r *rotation) followRotation(ctx context.Context) (*v1alpha1.MysqlFailoverGroup, error) {
	tell := r.teller()
	tell("asked the operator")
	return r.op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
		asked := r.op.Stands(g, v1alpha1.RequestRotateKeyring, r.op.Site)
		if k := keyrings.SiteStatus(g, r.op.Site); asked && k.Phase != v1alpha1.KeyringSealed {
			tell(keyringWords(k))
		}
		return !asked
	})
}

// settle reads the outcome of a rotation that is over.
func (r *rotation) settle(g *v1alpha1.MysqlFailoverGroup, step *rotationStep) error {
	answer, k := r.op.Answer(g, v1alpha1.RequestRotateKeyring), keyrings.SiteStatus(g, step.Site)
	step.Outcome, step.ToVersion = cli.OutcomeRefused, k.KeyringVersion
	switch {
	case answer != nil && answer.Outcome == v1alpha1.RequestDone, answer == nil && k.Phase == v1alpha1.KeyringSealed && k.RotatedVersion > step.FromVersion:
		step.Outcome = cli.OutcomeDone
	case answer == nil:
		step.Message = request.WithoutAnswer
	default:
		step.Message = answer.Message
	}
	if step.Outcome != cli.OutcomeDone {
		return cli.Refused("refused: the rotation of %s: %s", step.Site, step.Message)
	}
	fmt.Fprintf(r.env.ErrOut, "         %s is sealed with its new keyring v%d\n", step.Site, k.KeyringVersion)
	r.rep.Left, r.rep.Epoch, r.rep.Outcome = []string{}, g.Status.Epoch, cli.OutcomeDone
	r.rep.Message = "New master keys, in escrow and sealed: " + summary([]rotationStep{*step}) + "."
	return nil
}

// keyringWords says how far a rotation is.
func keyringWords(k v1alpha1.SiteKeyringStatus) string {
	words := string(k.Phase)
	if k.Rotated {
		words += ", both master keys are rotated"
	}
	if k.Message != "" {
		words += ": " + k.Message
	}
	return words
}

// teller reports news, with the time since the teller was made.
func (r *rotation) teller() func(string) {
	began, said := r.env.Now(), ""
	return func(words string) {
		if words != said {
			said = words
			fmt.Fprintf(r.env.ErrOut, "%6.1fs  %s\n", r.env.Now().Sub(began).Seconds(), words)
		}
	}
}
