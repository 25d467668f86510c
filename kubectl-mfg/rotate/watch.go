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

// Actions of steps.
const (
	actionRotate   = "Rotate"
	actionFailover = "Failover"
)

// sight is what a run that watches has seen so far.
type sight struct {
	// seen is true after the first look at the campaign; done are the sites that had their new keys.
	seen bool
	done map[string]bool
	// active is the active site, moves how often the role had moved, planned the last planned failover seen.
	active  string
	moves   int32
	planned *v1alpha1.PlannedFailoverStatus
	// since is when the present step began, place which one it is.
	since time.Time
	place string
}

// watch shows what the operator does, until it is over. Each step has the whole time to wait.
func (r *rotation) watch(ctx context.Context, before *v1alpha1.MysqlFailoverGroup, value string) (int, error) {
	s := &sight{done: map[string]bool{}, active: before.Status.ActiveSite, planned: before.Status.PlannedFailover, since: r.env.Now()}
	tell, over := r.teller(), false
	tell("asked the operator")
	for {
		g, err := r.op.Follow(ctx, r.env, r.cluster, func(g *v1alpha1.MysqlFailoverGroup) bool {
			over = !r.op.Stands(g, v1alpha1.RequestRotateKeyring, value)
			moved := false
			if c := campaignOf(g); c != nil && c.Request == r.op.ID {
				moved = r.look(g, c, s)
				if c.UnderWay() {
					tell(progress(g, c))
				}
			}
			return over || moved
		})
		switch {
		case err != nil:
			return r.unfinished(ctx, err, "the operator continues; to watch it: "+r.op.again()+"; to stop it: "+r.op.stops())
		case over:
			return r.closing(ctx, g)
		}
	}
}

// look notes what was done since the last look, and returns true if another step has begun.
func (r *rotation) look(g *v1alpha1.MysqlFailoverGroup, c *v1alpha1.CampaignStatus, s *sight) bool {
	if !s.seen {
		s.seen, s.moves = true, c.Moves
		r.rep.BeganAt = c.BeganAt.UTC().Format(time.RFC3339)
		for _, site := range c.Sites {
			if s.done[site.Name] = site.ToVersion > 0; s.done[site.Name] {
				r.rep.Before = append(r.rep.Before, site.Name)
			}
		}
	}
	took := r.env.Now().Sub(s.since).Milliseconds()
	if c.Moves > s.moves && g.Status.ActiveSite != s.active {
		rep := &request.Report{}
		failover.Settle(g, failover.Move{To: g.Status.ActiveSite, Before: s.planned}, g.Status.LastRequest(v1alpha1.RequestPlannedFailover), rep)
		r.rep.Steps = append(r.rep.Steps, rotationStep{Action: actionFailover, Site: g.Status.ActiveSite, From: s.active, Outcome: rep.Outcome, Message: rep.Message,
			TookMillis: took, WritePauseMillis: rep.WritePauseMillis, LostTransactions: rep.LostTransactions})
	}
	s.moves, s.active = c.Moves, g.Status.ActiveSite
	for _, site := range c.Sites {
		if site.ToVersion > 0 && !s.done[site.Name] {
			r.rep.Steps = append(r.rep.Steps, rotationStep{Action: actionRotate, Site: site.Name, Outcome: cli.OutcomeDone,
				FromVersion: site.FromVersion, ToVersion: site.ToVersion, TookMillis: took})
			fmt.Fprintf(r.env.ErrOut, "         %s is sealed with its new keyring v%d\n", site.Name, site.ToVersion)
		}
		s.done[site.Name] = site.ToVersion > 0
	}
	r.rep.Left = c.Left()
	place := fmt.Sprint(c.Step, c.Site, r.rep.Left)
	moved := place != s.place && s.place != ""
	if place != s.place {
		s.place, s.since = place, r.env.Now()
	}
	return moved
}

// progress returns the present step, in words.
func progress(g *v1alpha1.MysqlFailoverGroup, c *v1alpha1.CampaignStatus) string {
	switch c.Step {
	case v1alpha1.CampaignRotating:
		return "rotate " + c.Site + ": " + keyringWords(keyrings.SiteStatus(g, c.Site))
	case v1alpha1.CampaignMoving:
		return strings.TrimSuffix("move the role to "+c.Site+": "+c.Message, ": ")
	case v1alpha1.CampaignWaiting:
	}
	return c.Words()
}

// closing reports the outcome.
func (r *rotation) closing(ctx context.Context, g *v1alpha1.MysqlFailoverGroup) (int, error) {
	a, c := r.op.Answer(g, v1alpha1.RequestRotateKeyring), campaignOf(g)
	ours := c != nil && c.Request == r.op.ID
	r.rep.Epoch = g.Status.Epoch
	switch {
	case a != nil && a.Outcome == v1alpha1.RequestDone:
		r.rep.Outcome, r.rep.Message, r.rep.Left = cli.OutcomeDone, r.closingWords(g, a), []string{}
		return r.op.finishRotation(r.env, r.rep)
	case a != nil && a.Reason == v1alpha1.AnswerUnknownSite:
		return cli.ExitRefused, cli.Refused("refused: the operator is older than this plugin, and rotates one site at a time; nothing was changed\n"+
			"  upgrade it first: docs/upgrades.md\n"+
			"  or rotate each replica, move the role, and rotate the former active site: kubectl mfg rotate %[1]s -n %[2]s --site SITE, kubectl mfg failover %[1]s -n %[2]s --to SITE",
			r.op.Group, r.op.Namespace)
	case a != nil && a.Outcome == v1alpha1.RequestRefused:
		return r.unfinished(ctx, &cli.Error{Code: cli.ExitRefused, Reason: v1alpha1.Reason(a.Reason), Err: errors.New("refused: " + a.Message)}, "to ask again: "+r.op.again())
	case a != nil:
		return r.unfinished(ctx, &cli.Error{Code: cli.ExitRefused, Reason: v1alpha1.Reason(a.Reason), Err: fmt.Errorf("the rotation failed (%s): %s", a.Reason, a.Message)},
			"to go on with what is left: "+r.op.again())
	case ours && c.Outcome == v1alpha1.CampaignCancelled:
		return r.unfinished(ctx, cli.Refused("it was stopped: %s", c.Message), "to go on with what is left: "+r.op.again())
	}
	return r.unfinished(ctx, cli.Refused("refused: %s", request.WithoutAnswer), "to ask again: "+r.op.again())
}

// closingWords says that all is done.
func (r *rotation) closingWords(g *v1alpha1.MysqlFailoverGroup, a *v1alpha1.LastRequest) string {
	text := a.Message
	if len(r.rep.Steps) > 0 {
		text = "New master keys, in escrow and sealed: " + summary(r.rep.Steps)
	}
	text += "."
	i := slices.IndexFunc(r.rep.Steps, func(s rotationStep) bool { return s.Action == actionFailover && s.WritePauseMillis != nil })
	if i >= 0 {
		text += fmt.Sprintf(" %s is active under epoch %d; writes were kept out for %s.", g.Status.ActiveSite, g.Status.Epoch,
			time.Duration(*r.rep.Steps[i].WritePauseMillis)*time.Millisecond)
	}
	return text
}

// summary says what was done while this run watched.
func summary(steps []rotationStep) string {
	var words []string
	for _, s := range steps {
		switch {
		case s.Outcome != cli.OutcomeDone:
		case s.Action == actionRotate:
			words = append(words, fmt.Sprintf("%s v%d -> v%d", s.Site, s.FromVersion, s.ToVersion))
		default:
			words = append(words, fmt.Sprintf("role %s -> %s", s.From, s.Site))
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// unfinished says how far it is, what to do about a site that needs a person, and how to continue.
func (r *rotation) unfinished(ctx context.Context, err error, goOn string) (int, error) {
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
	// The context may be over, but the person must still get the report.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), live.Timeout)
	defer cancel()
	text += "\n  done meanwhile: " + summary(r.rep.Steps)
	if g, err := r.cluster.Group(ctx, r.op.Namespace, r.op.Group); err == nil {
		r.rep.Epoch = g.Status.Epoch
		if c := campaignOf(g); c != nil && c.Request == r.op.ID && r.op.Site == "" {
			r.rep.Left = c.Left()
		} else {
			r.rep.Left = append([]string{}, r.op.wanted...)
		}
		text += "; left: " + strings.Join(r.rep.Left, ", ")
		for _, s := range g.Spec.Sites {
			k := keyrings.SiteStatus(g, s.Name)
			// With several sites the operator continues, and only what needs a person is reported.
			if k.Phase != v1alpha1.KeyringSealed && slices.Contains(r.rep.Left, s.Name) && (r.op.Site != "" || k.Phase == v1alpha1.KeyringFailed) {
				remedy := fmt.Sprintf("%s is half done, %s: %s", s.Name, keyrings.PhaseWords(k), keyrings.Repair(k, r.op.Group, r.op.Namespace))
				text += "\n  " + remedy
				remedies = append(remedies, remedy)
			}
		}
	}
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
