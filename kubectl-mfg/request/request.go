// SPDX-License-Identifier: Apache-2.0

// Package request asks the operator for something by an annotation: it shows a plan, asks the person, sets the annotation if no one changed the group
// meanwhile, and follows the answer in status.lastRequests.
package request

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// TooLate sets the outcome of what could no longer be prevented.
func (rep *Report) TooLate(format string, args ...any) {
	rep.Outcome, rep.Reason, rep.Message = cli.OutcomeRefused, v1alpha1.ReasonTooLate, "it was too late: "+fmt.Sprintf(format, args...)
}

// Values of --dry-run, as in kubectl.
const (
	DryRunNone   = "none"
	DryRunClient = "client"
	DryRunServer = "server"
)

// DryRuns are the values of --dry-run.
var DryRuns = []string{DryRunNone, DryRunClient, DryRunServer}

// Request is what all verbs share that ask the operator for something.
type Request struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	DryRun            string
	Yes               bool
	Wait              bool
	Timeout           time.Duration
	Output            cli.Output
	// Verb names the command, rep is the report as far as it was made.
	Verb string
	rep  *Report
	// ID is the id of the last request that was sent.
	ID string
	// Stays is what the command says, after its wait has ended, of an order that can be withdrawn.
	Stays string
}

// Validate checks the flags that all requests share.
func (r *Request) Validate() error {
	switch {
	case !slices.Contains(DryRuns, r.DryRun):
		return fmt.Errorf("--dry-run must be one of %s", strings.Join(DryRuns, ", "))
	case r.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	case r.Timeout <= 0:
		return errors.New("--timeout must be above 0")
	}
	return nil
}

// Report is the answer of such a verb in machine form.
type Report struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	Verb       string          `json:"verb"`
	DryRun     string          `json:"dryRun,omitempty"`
	Plan       []screen.Line   `json:"plan"`
	// Change holds the annotations that were (or would be) set; an empty value removes one.
	Change map[string]string `json:"change"`
	// Outcome is Planned (dry run), Requested (not waited for), Succeeded, Refused, Reverted, Aborted or TimedOut (the wait ended,
	// the request continues).
	Outcome string          `json:"outcome"`
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Next is what a person can do about an unwanted outcome.
	Next             string `json:"next,omitempty"`
	Site             string `json:"site,omitempty"`
	From             string `json:"from,omitempty"`
	Epoch            int64  `json:"epoch,omitempty"`
	WritePauseMillis *int64 `json:"writePauseMillis,omitempty"`
	LostTransactions *int64 `json:"lostTransactions,omitempty"`
	// SessionsPreserved says whether the cache kept its sessions, once its master has moved.
	SessionsPreserved *bool `json:"sessionsPreserved,omitempty"`
	// Short is the message without where to look further, for one line of a screen.
	Short string `json:"-"`
}

// Requested sets the outcome of a request without a wait: what was done in a word or two, and where to see how far it is.
func (rep *Report) Requested(done, where string) {
	rep.Outcome, rep.Short, rep.Message = cli.OutcomeRequested, done, done+"; see how far it is: "+where
}

// Said returns the outcome of the request, for one line of a screen.
func (r *Request) Said() string {
	switch {
	case r.rep == nil:
		return ""
	case r.rep.Outcome == cli.OutcomeRequested:
		return cmp.Or(r.rep.Short, r.rep.Message)
	}
	return r.rep.Message
}

// Report begins the report of a request.
func (r *Request) Report(verb string, plan []screen.Line, change map[string]string) *Report {
	r.rep = &Report{
		APIVersion: report.APIVersion, Kind: "MfgRequestReport", Metadata: report.Metadata{Name: r.Group, Namespace: r.Namespace},
		Verb: verb, Plan: plan, Change: change,
	}
	return r.rep
}

// ShowPlan writes to stderr, like the questions; in a dry run the plan is the answer itself.
func (r *Request) ShowPlan(env cli.Environment, title string, plan []screen.Line) {
	w := env.ErrOut
	if r.DryRun != DryRunNone && r.Output.Printer == nil {
		w = env.Out
	}
	width, _ := env.Terminal()
	fmt.Fprint(w, screen.Plan(title, plan, screen.Options{Width: width}))
}

// Confirm asks y/N.
func (r *Request) Confirm(ctx context.Context, env cli.Environment, question string) error {
	if r.Yes || r.DryRun != DryRunNone {
		return nil
	}
	said, err := r.ask(ctx, env, question+" [y/N] ")
	if err != nil {
		return err
	}
	if said = strings.ToLower(said); said != "y" && said != "yes" {
		return cli.NotConfirmed("not confirmed: nothing was changed")
	}
	return nil
}

// ConfirmName asks for the group's name: what follows may destroy data, and a y is quickly typed.
func (r *Request) ConfirmName(ctx context.Context, env cli.Environment, warning string) error {
	if r.Yes || r.DryRun != DryRunNone {
		return nil
	}
	said, err := r.ask(ctx, env, warning+"\nType the name of the group to go on: ")
	if err != nil {
		return err
	}
	if said != r.Group {
		return cli.NotConfirmed("not confirmed (%q is not %q): nothing was changed", said, r.Group)
	}
	return nil
}

// ask reads one line. When the context ends, the read is left behind: a terminal cannot be read with a deadline.
func (r *Request) ask(ctx context.Context, env cli.Environment, question string) (string, error) {
	if !env.Interactive() {
		return "", cli.NotConfirmed("there is no terminal to ask on, and no --yes: nothing was changed")
	}
	fmt.Fprint(env.ErrOut, question)
	said := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(env.In).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		said <- strings.TrimSpace(line)
	}()
	select {
	case line := <-said:
		return line, nil
	case <-ctx.Done():
		return "", cli.NotConfirmed("interrupted: nothing was changed")
	}
}

// Annotations are the annotations of requests, each with its verb. The operator removes each again; encryption-adopt is
// not among them, because it stays.
var Annotations = []struct{ Key, Verb string }{
	{v1alpha1.AnnotationPlannedFailover, "a planned failover"},
	{v1alpha1.AnnotationForceFailover, "a failover that accepts data loss"},
	{v1alpha1.AnnotationAbortFailover, "the end of a planned failover"},
	{v1alpha1.AnnotationRecloneSite, "a new copy of a site"},
	{v1alpha1.AnnotationRotateKeyring, "a rotation of a keyring"},
}

// Pending says which requests have no answer yet. The rotation of all sites is left out: it may take hours, and waits for all
// other requests, also for those that mend a site it waits for.
func Pending(g *v1alpha1.MysqlFailoverGroup) string {
	for _, a := range Annotations {
		value, is := g.Annotations[a.Key]
		if is && (a.Key != v1alpha1.AnnotationRotateKeyring || !v1alpha1.AsksForCampaign(value)) {
			return fmt.Sprintf("%s was requested, and the operator has not answered yet (%s=%s)", a.Verb, a.Key, value)
		}
	}
	if p := g.Status.PlannedFailover; p != nil && !PlanOver(p) {
		return fmt.Sprintf("a planned failover to %s is under way (%s)", p.To, p.Phase)
	}
	return ""
}

// PlanOver is true once the outcome of a planned failover is known.
func PlanOver(p *v1alpha1.PlannedFailoverStatus) bool {
	return p.Phase != v1alpha1.PlannedWaiting && p.Phase != v1alpha1.PlannedMoving
}

// PatchTries is how often a request is tried again after another writer changed the group. The operator itself may
// write its status at any time.
const PatchTries = 8

// Submit sets annotations on the present group, unless check refuses: it may have changed while a person thought. It
// returns the group as it was just before.
func (r *Request) Submit(ctx context.Context, env cli.Environment, c Cluster, change map[string]string, check func(*v1alpha1.MysqlFailoverGroup) error) (*v1alpha1.MysqlFailoverGroup, error) {
	for try := 1; ; try++ {
		g, err := c.Group(ctx, r.Namespace, r.Group)
		if err != nil {
			return nil, err
		}
		if err := check(g); err != nil {
			return nil, err
		}
		if r.DryRun == DryRunClient {
			return g, nil
		}
		named := r.Named(g, change)
		_, err = c.Annotate(ctx, g, named, r.DryRun == DryRunServer)
		if err != nil && r.DryRun != DryRunServer && isLost(err) {
			err = r.find(ctx, env, c, g, named, err)
		}
		if err == nil {
			return g, nil
		}
		if !apierrors.IsConflict(err) || try == PatchTries {
			return nil, err
		}
		if !env.Wait(ctx, 20*time.Millisecond) {
			return nil, cli.NotConfirmed("interrupted: nothing was changed")
		}
	}
}

// Always is the check for requests that collide with nothing.
func Always(*v1alpha1.MysqlFailoverGroup) error { return nil }

// NotMoving refuses while another request is pending, or the role moves, for any reason.
func NotMoving(g *v1alpha1.MysqlFailoverGroup) error {
	busy := Pending(g)
	if t := g.Status.Transition; t != nil && busy == "" {
		busy = fmt.Sprintf("the role is moving to %s (%s)", t.To, t.Step)
	}
	return RefuseWhile(g, busy)
}

// RefuseWhile refuses while something else is under way; busy says what, and is empty if nothing is.
func RefuseWhile(g *v1alpha1.MysqlFailoverGroup, busy string) error {
	if busy == "" {
		return nil
	}
	next := fmt.Sprintf("see how far it is: kubectl mfg status %s -n %s -w", g.Name, g.Namespace)
	if _, isOrdered := g.Annotations[v1alpha1.AnnotationForceFailover]; isOrdered {
		next += "\n  to withdraw the order that accepts data loss: " + Withdrawal(g.Name, g.Namespace)
	}
	return cli.Refused("refused: %s\n  %s", busy, next)
}

// Follow reads the group again and again until done says so.
func (r *Request) Follow(ctx context.Context, env cli.Environment, c GroupReader, done func(*v1alpha1.MysqlFailoverGroup) bool) (*v1alpha1.MysqlFailoverGroup, error) {
	end := env.Now().Add(r.Timeout)
	var failure error
	for {
		g, err := c.Group(ctx, r.Namespace, r.Group)
		switch {
		case ctx.Err() != nil:
			return nil, r.gaveUp("interrupted")
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return nil, err
		case err == nil && done(g):
			return g, nil
		}
		failure = err // may pass: perhaps just the API server is in trouble
		if env.Now().After(end) {
			if failure != nil {
				return nil, r.gaveUp(fmt.Sprintf("no outcome within %s (last error: %v)", r.Timeout, failure))
			}
			return nil, r.gaveUp(fmt.Sprintf("no outcome within %s", r.Timeout))
		}
		if !env.Wait(ctx, followEvery) {
			return nil, r.gaveUp("interrupted")
		}
	}
}

// followEvery is how often a request is looked at.
const followEvery = 200 * time.Millisecond

func (r *Request) gaveUp(why string) error {
	goesOn := cmp.Or(r.Stays, "the request stays in force")
	return &cli.Error{Code: cli.ExitTimeout, Ended: why,
		Err: fmt.Errorf("%s: only the waiting ended, %s\n  see how far it is: kubectl mfg status %s -n %s -w", why, goesOn, r.Group, r.Namespace)}
}

// DryRunDone finishes a dry run.
func (r *Request) DryRunDone(env cli.Environment, rep *Report) error {
	rep.DryRun, rep.Outcome = r.DryRun, cli.OutcomePlanned
	rep.Message = "nothing was sent"
	if r.DryRun == DryRunServer {
		rep.Message = "the API server would take it; nothing was changed"
	}
	if r.Output.Printer != nil {
		return r.Output.Print(env.Out, rep)
	}
	for _, key := range slices.Sorted(maps.Keys(rep.Change)) {
		verb := "set annotation " + key + "=" + rep.Change[key]
		if rep.Change[key] == "" {
			verb = "take off annotation " + key
		}
		fmt.Fprintf(env.Out, "Would     %s\n", verb)
	}
	fmt.Fprintf(env.Out, "Dry run   %s: %s\n", r.DryRun, rep.Message)
	return nil
}

// Finish writes the outcome. A refusal is an error with a code of its own, even if a report was written.
func (r *Request) Finish(env cli.Environment, rep *Report) (int, error) {
	code := cli.ExitHealthy
	if rep.Outcome != cli.OutcomeDone && rep.Outcome != cli.OutcomeRequested {
		code = cli.ExitRefused
	}
	if r.Output.Printer != nil {
		return code, r.Output.Print(env.Out, rep)
	}
	if code != cli.ExitHealthy {
		words := fmt.Sprintf("%s (%s): %s", strings.ToLower(rep.Outcome), rep.Reason, rep.Message)
		if rep.Next != "" {
			words += "\n  " + rep.Next
		}
		return code, cli.Refused("%s", words)
	}
	fmt.Fprintln(env.Out, rep.Message)
	return code, nil
}

// Withdrawal returns the command that withdraws a pending order.
func Withdrawal(group, namespace string) string {
	return fmt.Sprintf("kubectl mfg failover %s -n %s --abort", group, namespace)
}
