// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

// run takes step after step. What is next is read from the group each time: the role may have moved by itself meanwhile, and
// somebody else may go on with the same campaign.
func (r *rotation) run(ctx context.Context) (int, error) {
	g, err := r.steps(ctx)
	if err != nil {
		return r.unfinished(ctx, err)
	}
	rest := r.rest(g)
	if r.op.Site == "" && rest == "" {
		if _, err := r.op.Submit(ctx, r.env, r.cluster, map[string]string{v1alpha1.AnnotationRotation: ""}, encryptedGroup); err != nil {
			return r.unfinished(ctx, fmt.Errorf("all sites are rotated, but the note of it could not be taken off: %w", err))
		}
	}
	if !r.op.Wait {
		r.rep.Outcome, r.rep.Message = cli.OutcomeRequested, "asked for; see how far it is: kubectl mfg status "+r.op.Group+" -n "+r.op.Namespace+" -w"
		return r.op.finishRotation(r.env, r.rep)
	}
	r.rep.Outcome, r.rep.Message, r.rep.Epoch = cli.OutcomeDone, r.closing(g)+rest, g.Status.Epoch
	return r.op.finishRotation(r.env, r.rep)
}

// maxSteps bounds a run: each site once, and the role moved more than once only where it moved by itself meanwhile.
func maxSteps(g *v1alpha1.MysqlFailoverGroup) int { return (2 + maxRefusals) * (len(g.Spec.Sites) + 1) }

// What the operator refuses may be over a moment later: status is younger or older than what it looked at. Who asks for one
// site is told at once; who asks for all is not called back for that.
const (
	maxRefusals = 3
	askAgain    = 10 * time.Second
)

func (r *rotation) steps(ctx context.Context) (*v1alpha1.MysqlFailoverGroup, error) {
	for n := 0; ; n++ {
		g, err := r.cluster.Group(ctx, r.op.Namespace, r.op.Group)
		if err != nil {
			return nil, err
		}
		left := r.left(g)
		r.rep.Left = append([]string{}, left...)
		switch {
		case len(left) == 0:
			return g, nil
		case n >= maxSteps(g):
			return nil, cli.Refused("the active site changes again and again: %s are left", strings.Join(left, ", "))
		case r.op.Site != "", left[0] != g.Status.ActiveSite:
			err = r.rotate(ctx, left[0])
		default:
			err = r.move(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// rotate rotates one replica, or waits for it where that was asked for already.
func (r *rotation) rotate(ctx context.Context, site string) error {
	began := r.env.Now()
	fmt.Fprintf(r.env.ErrOut, "rotate %s\n", site)
	g, err := r.cluster.Group(ctx, r.op.Namespace, r.op.Group)
	if err != nil {
		return err
	}
	asked := r.op.Stands(g, v1alpha1.RequestRotateKeyring, site)
	if !asked && r.op.Wait {
		if g, err = r.calm(ctx, site); err != nil {
			return err
		}
	}
	switch {
	case asked:
	case r.op.Site != "":
		if err := r.op.checkSite(g); err != nil {
			return err
		}
	case site == g.Status.ActiveSite, !slices.Contains(r.left(g), site):
		return nil // it became the active site, or was rotated, while it was waited for: what is next is asked anew
	}
	step := rotationStep{Action: actionRotate, Site: site, FromVersion: versionBefore(g, site)}
	if !asked {
		if _, err := r.submit(ctx, map[string]string{v1alpha1.AnnotationRotateKeyring: site}, site); err != nil {
			return err
		}
	}
	if !r.op.Wait {
		r.done[site] = true
		step.Outcome = cli.OutcomeRequested
		r.rep.Steps = append(r.rep.Steps, step)
		return nil
	}
	g, err = r.followRotation(ctx, site)
	step.TookMillis = r.env.Now().Sub(began).Milliseconds()
	if err != nil {
		step.Outcome, step.Message = "Unknown", err.Error()
		r.rep.Steps = append(r.rep.Steps, step)
		return err
	}
	return r.settle(ctx, g, step)
}

// submit asks for a step. The first one of a campaign takes the note of it along, so that there is never one without the other.
func (r *rotation) submit(ctx context.Context, change map[string]string, site string) (*v1alpha1.MysqlFailoverGroup, error) {
	if r.op.Site == "" && !r.noted {
		change[v1alpha1.AnnotationRotation] = r.campaign.String()
	}
	g, err := r.op.Submit(ctx, r.env, r.cluster, change, func(g *v1alpha1.MysqlFailoverGroup) error {
		if err := encryptedGroup(g); err != nil {
			return err
		}
		return request.RefuseWhile(g, r.restless(g, site))
	})
	if err == nil {
		r.resumed, r.noted = true, true
	}
	return g, err
}

// calm waits until the operator would not refuse the next step.
func (r *rotation) calm(ctx context.Context, site string) (*v1alpha1.MysqlFailoverGroup, error) {
	tell, busy := r.teller(), ""
	g, err := r.op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
		busy = r.restless(g, site)
		if busy != "" {
			tell("waits: " + busy)
		}
		return busy == ""
	})
	return g, r.notAsked(err, busy)
}

// notAsked is what is said of a wait that ended before its step was asked for: the operator has nothing to go on with.
func (r *rotation) notAsked(err error, busy string) error {
	var own *cli.Error
	if !errors.As(err, &own) || own.Ended == "" {
		return err
	}
	why := own.Ended
	if busy != "" {
		why += ", it waits for: " + busy
	}
	return cli.Refused("given up: the next step was not asked for, and does not happen by itself (%s)\n  see how it is: kubectl mfg status %s -n %s", why, r.op.Group, r.op.Namespace)
}

// teller tells what is new, with the time since it was made.
func (r *rotation) teller() func(string) {
	began, said := r.env.Now(), ""
	return func(words string) {
		if words != said {
			said = words
			fmt.Fprintf(r.env.ErrOut, "%6.1fs  %s\n", r.env.Now().Sub(began).Seconds(), words)
		}
	}
}

func (r *rotation) followRotation(ctx context.Context, site string) (*v1alpha1.MysqlFailoverGroup, error) {
	tell := r.teller()
	tell("asked the operator")
	return r.op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
		asked := r.op.Stands(g, v1alpha1.RequestRotateKeyring, site)
		if k := keyrings.SiteStatus(g, site); asked && k.Phase != v1alpha1.KeyringSealed {
			tell(keyringWords(k))
		}
		return !asked
	})
}

// keyringWords say how far a rotation is.
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

// settle reads the outcome of a rotation that is over.
func (r *rotation) settle(ctx context.Context, g *v1alpha1.MysqlFailoverGroup, step rotationStep) error {
	answer := r.op.Answer(g, v1alpha1.RequestRotateKeyring)
	k := keyrings.SiteStatus(g, step.Site)
	step.Outcome, step.ToVersion = cli.OutcomeRefused, k.KeyringVersion
	switch {
	case answer != nil && answer.Outcome == v1alpha1.RequestDone, answer == nil && k.Phase == v1alpha1.KeyringSealed && k.RotatedVersion > step.FromVersion:
		step.Outcome, step.Message = cli.OutcomeDone, ""
		r.done[step.Site], r.refusals = true, 0
		fmt.Fprintf(r.env.ErrOut, "         %s is sealed with its new keyring v%d\n", step.Site, k.KeyringVersion)
	case answer == nil:
		step.Message = request.WithoutAnswer
	default:
		step.Message = answer.Message
	}
	r.rep.Steps = append(r.rep.Steps, step)
	if step.Outcome == cli.OutcomeDone {
		return nil
	}
	if r.refusals++; r.op.Site == "" && r.refusals < maxRefusals && k.Phase == v1alpha1.KeyringSealed {
		fmt.Fprintf(r.env.ErrOut, "         refused: %s; it is asked for again\n", step.Message)
		if r.env.Wait(ctx, askAgain) {
			return nil
		}
	}
	return cli.Refused("refused: the rotation of %s: %s", step.Site, step.Message)
}

// move moves the role to a site that has its new keys.
func (r *rotation) move(ctx context.Context) error {
	began := r.env.Now()
	g, err := r.movable(ctx)
	if err != nil || r.to == "" {
		return err
	}
	step := rotationStep{Action: actionFailover, Site: r.to, From: g.Status.ActiveSite}
	fmt.Fprintf(r.env.ErrOut, "move the role: %s -> %s\n", step.From, step.Site)
	before, err := r.submit(ctx, map[string]string{v1alpha1.AnnotationPlannedFailover: r.to}, r.to)
	if err != nil {
		return err
	}
	rep := r.op.Report("rotate", nil, nil)
	err = failover.Move{To: r.to, Before: before.Status.PlannedFailover}.Follow(ctx, &r.op.Request, r.env, r.cluster, rep)
	step.TookMillis = r.env.Now().Sub(began).Milliseconds()
	step.Outcome, step.Message, step.WritePauseMillis, step.LostTransactions = rep.Outcome, rep.Message, rep.WritePauseMillis, rep.LostTransactions
	if err != nil {
		step.Outcome, step.Message = "Unknown", err.Error()
	}
	r.rep.Steps = append(r.rep.Steps, step)
	if err == nil && step.Outcome != cli.OutcomeDone {
		return cli.Refused("the role stays with %s, %s (%s): %s\n  %s", step.From, strings.ToLower(rep.Outcome), rep.Reason, rep.Message, rep.Next)
	}
	return err
}

// movable waits until the operator's own preflight lets the role move. The site is chosen anew: what was best when the run
// began may be lost by now.
func (r *rotation) movable(ctx context.Context) (*v1alpha1.MysqlFailoverGroup, error) {
	tell, busy := r.teller(), ""
	var failure error
	g, err := r.op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if failure = r.choose(g); failure != nil || r.to == "" {
			return true
		}
		busy = r.restless(g, r.to)
		if busy == "" {
			busy = r.blocked(ctx, g)
		}
		if busy != "" {
			tell("waits: " + busy)
		}
		return busy == ""
	})
	return g, errors.Join(r.notAsked(err, busy), failure)
}

// blocked is what the operator's preflight has against the move now.
func (r *rotation) blocked(ctx context.Context, g *v1alpha1.MysqlFailoverGroup) string {
	list, err := r.cluster.Explain(ctx, r.op.OperatorNamespace, r.op.Namespace, r.op.Group)
	_, e := live.View(list, err, r.op.OperatorNamespace)
	c, known := request.Outlook{Group: g, Explanation: e}.Candidate(r.to)
	if !known || c.PlannedBlockedBy == "" {
		return "" // who may not ask is answered by the request itself
	}
	return c.PlannedBlockedBy + ": " + c.PlannedMessage
}

// unfinished says where the run stands, what to do about the site at hand, and how to go on.
func (r *rotation) unfinished(ctx context.Context, err error) (int, error) {
	var own *cli.Error
	code := cli.ExitError
	if errors.As(err, &own) {
		code = own.Code
	}
	f, known := cli.FailureOf(err)
	if !known {
		f.Message, f.Next = cli.InLines(err)
	}
	text, remedies := err.Error(), []string{}
	if f.Next != "" {
		remedies = append(remedies, f.Next)
	}
	// The context may be over, and that must not keep a person from being told.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), live.Timeout)
	defer cancel()
	text += "\n  done by this run: " + r.summary()
	if g, err := r.cluster.Group(ctx, r.op.Namespace, r.op.Group); err == nil {
		r.rep.Left, r.rep.Epoch = append([]string{}, r.left(g)...), g.Status.Epoch
		text += "; left: " + strings.Join(r.rep.Left, ", ")
		for _, s := range g.Spec.Sites {
			k := keyrings.SiteStatus(g, s.Name)
			if k.Phase != v1alpha1.KeyringSealed && slices.Contains(r.rep.Left, s.Name) {
				remedy := fmt.Sprintf("%s is half done, %s: %s", s.Name, keyrings.PhaseWords(k), keyrings.Repair(k, r.op.Group, r.op.Namespace))
				text += "\n  " + remedy
				remedies = append(remedies, remedy)
			}
		}
	}
	goOn := "to go on: " + r.op.again()
	text += "\n  " + goOn
	r.rep.Next = strings.Join(append(remedies, goOn), "; ")
	r.rep.Outcome, r.rep.Reason, r.rep.Message = OutcomeUnfinished, f.Reason, f.Message
	if r.op.Output.Printer != nil {
		if err := r.op.Output.Print(r.env.Out, r.rep); err != nil {
			return cli.ExitError, err
		}
	}
	return code, &cli.Error{Code: code, Err: errors.New(text), Told: true}
}
