// SPDX-License-Identifier: Apache-2.0

package cmd

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

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Values of --dry-run, as in kubectl.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

var dryRuns = []string{dryRunNone, dryRunClient, dryRunServer}

// request is what all verbs have in common that ask the operator for something.
type request struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	DryRun            string
	Yes               bool
	Wait              bool
	Timeout           time.Duration
	Output            output
	// verb names the command, rep is the report as far as it was made.
	verb string
	rep  *requestReport
	// id is that of the request that was sent last.
	id string
	// stays is what a wait that ended says of an order that can be withdrawn.
	stays string
}

func (r *request) bind(cmd *cobra.Command, timeout time.Duration) func() (output, error) {
	r.verb = cmd.Name()
	f := cmd.Flags()
	f.StringVar(&r.DryRun, "dry-run", dryRunNone, "none: do it. client: show the plan and the change, send nothing. server: let the API server check the change and keep nothing.")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	f.BoolVarP(&r.Yes, "yes", "y", false, "Do not ask. Required where no terminal is.")
	f.BoolVar(&r.Wait, "wait", true, "Wait for the outcome.")
	f.DurationVar(&r.Timeout, "timeout", timeout, "How long to wait for the outcome. What was asked for goes on after that.")
	addOperatorNamespace(cmd, &r.OperatorNamespace)
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns, cobra.ShellCompDirectiveNoFileComp))
	return addOutputFlag(cmd)
}

// fill takes over what the command line says.
func (r *request) fill(a *app, group string, out func() (output, error)) (err error) {
	if r.Output, err = out(); err != nil {
		return err
	}
	if r.Group, err = groupArgument(group); err != nil {
		return err
	}
	r.Namespace, err = a.namespace()
	return err
}

func (r *request) validate() error {
	switch {
	case !slices.Contains(dryRuns, r.DryRun):
		return fmt.Errorf("--dry-run must be one of %s", strings.Join(dryRuns, ", "))
	case r.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	case r.Timeout <= 0:
		return errors.New("--timeout must be above 0")
	}
	return nil
}

// requestReport is the answer of such a verb in machine form.
type requestReport struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   report.Metadata `json:"metadata"`
	Verb       string          `json:"verb"`
	DryRun     string          `json:"dryRun,omitempty"`
	Plan       []planLine      `json:"plan"`
	// Change are the annotations that were (or would be) set; an empty value takes one off.
	Change map[string]string `json:"change"`
	// Outcome is Planned (dry run), Requested (not waited for), Succeeded, Refused, Reverted, Aborted or TimedOut (the wait ended,
	// what was asked for goes on).
	Outcome string          `json:"outcome"`
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Next is what a person can do about an outcome that is not the wanted one.
	Next             string `json:"next,omitempty"`
	Site             string `json:"site,omitempty"`
	From             string `json:"from,omitempty"`
	Epoch            int64  `json:"epoch,omitempty"`
	WritePauseMillis *int64 `json:"writePauseMillis,omitempty"`
	LostTransactions *int64 `json:"lostTransactions,omitempty"`
}

// Outcomes of requests that the phases of a planned failover do not name.
const (
	outcomePlanned   = "Planned"
	outcomeRequested = "Requested"
	outcomeDone      = string(v1alpha1.PlannedSucceeded)
	outcomeRefused   = string(v1alpha1.PlannedRefused)
)

// planLine is one line of what is about to happen.
type planLine struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

func (r *request) report(verb string, plan []planLine, change map[string]string) *requestReport {
	r.rep = &requestReport{
		APIVersion: report.APIVersion, Kind: "MfgRequestReport", Metadata: report.Metadata{Name: r.Group, Namespace: r.Namespace},
		Verb: verb, Plan: plan, Change: change,
	}
	return r.rep
}

// showPlan goes to stderr, with the questions; in a dry run it is the answer itself.
func (r *request) showPlan(env Environment, title string, plan []planLine) {
	w := env.ErrOut
	if r.DryRun != dryRunNone && r.Output.printer == nil {
		w = env.Out
	}
	width, _ := env.Terminal()
	lines := make([]screen.Line, 0, len(plan))
	for _, l := range plan {
		lines = append(lines, screen.Line{Label: l.Label, Text: l.Text})
	}
	fmt.Fprint(w, screen.Plan(title, lines, screen.Options{Width: width}))
}

// confirm asks y/N.
func (r *request) confirm(ctx context.Context, env Environment, question string) error {
	if r.Yes || r.DryRun != dryRunNone {
		return nil
	}
	said, err := r.ask(ctx, env, question+" [y/N] ")
	if err != nil {
		return err
	}
	if said = strings.ToLower(said); said != "y" && said != "yes" {
		return notConfirmed("not confirmed: nothing was changed")
	}
	return nil
}

// confirmName asks for the group's name: what follows may destroy data, and a finger is quick with a y.
func (r *request) confirmName(ctx context.Context, env Environment, warning string) error {
	if r.Yes || r.DryRun != dryRunNone {
		return nil
	}
	said, err := r.ask(ctx, env, warning+"\nType the name of the group to go on: ")
	if err != nil {
		return err
	}
	if said != r.Group {
		return notConfirmed("not confirmed (%q is not %q): nothing was changed", said, r.Group)
	}
	return nil
}

// ask reads one line. The reading is left behind when the context ends: a terminal cannot be read with a deadline.
func (r *request) ask(ctx context.Context, env Environment, question string) (string, error) {
	if !env.Interactive() {
		return "", notConfirmed("there is no terminal to ask on, and no --yes: nothing was changed")
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
		return "", notConfirmed("interrupted: nothing was changed")
	}
}

// requestAnnotations are those by which something is asked for, with the verb that does. The operator takes each off again;
// encryption-adopt is none of them, because it stays.
var requestAnnotations = []struct{ key, verb string }{
	{v1alpha1.AnnotationPlannedFailover, "a planned failover"},
	{v1alpha1.AnnotationForceFailover, "a failover that accepts data loss"},
	{v1alpha1.AnnotationAbortFailover, "the end of a planned failover"},
	{v1alpha1.AnnotationRecloneSite, "a new copy of a site"},
	{v1alpha1.AnnotationRotateKeyring, "a rotation of a keyring"},
}

// pending says what was asked for and is not answered yet.
func pending(g *v1alpha1.MysqlFailoverGroup) string {
	for _, a := range requestAnnotations {
		if value, is := g.Annotations[a.key]; is {
			return fmt.Sprintf("%s was asked for and is not answered yet (%s=%s)", a.verb, a.key, value)
		}
	}
	if p := g.Status.PlannedFailover; p != nil && !planOver(p) {
		return fmt.Sprintf("a planned failover to %s is under way (%s)", p.To, p.Phase)
	}
	return ""
}

// planOver is true once the outcome of a planned failover is known.
func planOver(p *v1alpha1.PlannedFailoverStatus) bool {
	return p.Phase != v1alpha1.PlannedWaiting && p.Phase != v1alpha1.PlannedMoving
}

// patchTries is how often a request is made anew when somebody else changed the group just then. The operator itself
// writes its status at any time.
const patchTries = 8

// submit sets annotations on the group as it is now, unless check refuses: what was agreed on may have changed while a
// person thought. It returns the group as it was just before.
func (r *request) submit(ctx context.Context, env Environment, c Cluster, change map[string]string, check func(*v1alpha1.MysqlFailoverGroup) error) (*v1alpha1.MysqlFailoverGroup, error) {
	for try := 1; ; try++ {
		g, err := c.Group(ctx, r.Namespace, r.Group)
		if err != nil {
			return nil, err
		}
		if err := check(g); err != nil {
			return nil, err
		}
		if r.DryRun == dryRunClient {
			return g, nil
		}
		_, err = c.Annotate(ctx, g, r.named(g, change), r.DryRun == dryRunServer)
		if err == nil {
			return g, nil
		}
		if !apierrors.IsConflict(err) || try == patchTries {
			return nil, err
		}
		if !env.Wait(ctx, 20*time.Millisecond) {
			return nil, notConfirmed("interrupted: nothing was changed")
		}
	}
}

// always is the check of what collides with nothing.
func always(*v1alpha1.MysqlFailoverGroup) error { return nil }

// notMoving refuses while something else is asked for, or the role moves, whoever wanted that.
func notMoving(g *v1alpha1.MysqlFailoverGroup) error {
	busy := pending(g)
	if t := g.Status.Transition; t != nil && busy == "" {
		busy = fmt.Sprintf("the role is moving to %s (%s)", t.To, t.Step)
	}
	return refuseWhile(g, busy)
}

func refuseWhile(g *v1alpha1.MysqlFailoverGroup, busy string) error {
	if busy == "" {
		return nil
	}
	next := fmt.Sprintf("see how far it is: kubectl mfg status %s -n %s -w", g.Name, g.Namespace)
	if _, isOrdered := g.Annotations[v1alpha1.AnnotationForceFailover]; isOrdered {
		next += "\n  to withdraw the order that accepts data loss: " + withdrawal(g.Name, g.Namespace)
	}
	return refused("refused: %s\n  %s", busy, next)
}

// follow reads the group again and again until done says so.
func (r *request) follow(ctx context.Context, env Environment, c Cluster, done func(*v1alpha1.MysqlFailoverGroup) bool) (*v1alpha1.MysqlFailoverGroup, error) {
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
		failure = err // may pass: the API server may be the very thing that is in trouble
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

// followEvery is how often a request is looked after.
const followEvery = 200 * time.Millisecond

func (r *request) gaveUp(why string) error {
	goesOn := cmp.Or(r.stays, "what was asked for goes on")
	return &coded{code: exitTimeout, ended: why,
		err: fmt.Errorf("%s: only the waiting ended, %s\n  see how far it is: kubectl mfg status %s -n %s -w", why, goesOn, r.Group, r.Namespace)}
}

// whyEnded is why a wait ended, in a few words.
func whyEnded(err error) string {
	var own *coded
	if errors.As(err, &own) && own.ended != "" {
		return own.ended
	}
	why, _ := inLines(err)
	return why
}

// dryRunDone finishes a dry run.
func (r *request) dryRunDone(env Environment, rep *requestReport) error {
	rep.DryRun, rep.Outcome = r.DryRun, outcomePlanned
	rep.Message = "nothing was sent"
	if r.DryRun == dryRunServer {
		rep.Message = "the API server would take it; nothing was changed"
	}
	if r.Output.printer != nil {
		return r.Output.print(env.Out, rep)
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

// finish writes the outcome. A refusal is an error with a code of its own, also where a report was written.
func (r *request) finish(env Environment, rep *requestReport) (int, error) {
	code := exitHealthy
	if rep.Outcome != outcomeDone && rep.Outcome != outcomeRequested {
		code = exitRefused
	}
	if r.Output.printer != nil {
		return code, r.Output.print(env.Out, rep)
	}
	if code != exitHealthy {
		words := fmt.Sprintf("%s (%s): %s", strings.ToLower(rep.Outcome), rep.Reason, rep.Message)
		if rep.Next != "" {
			words += "\n  " + rep.Next
		}
		return code, refused("%s", words)
	}
	fmt.Fprintln(env.Out, rep.Message)
	return code, nil
}
