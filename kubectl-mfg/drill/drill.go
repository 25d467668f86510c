// SPDX-License-Identifier: Apache-2.0

// Package drill practises a failover: the role moves away and back, and each move is judged against a target.
package drill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/drill/verdict"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/mysqlclient"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Cluster takes requests, and runs commands in pods.
type Cluster interface {
	request.Cluster
	mysqlclient.Cluster
}

// Op is `kubectl mfg drill`.
type Op struct {
	request.Request
	To     string
	Target time.Duration
	Stay   time.Duration
	Canary bool

	// Writer writes rows during the drill; nil if none does.
	Writer *Canary
	// lookedAt is when it should begin, judged is true once it is over and its report says so.
	lookedAt time.Time
	judged   bool
	// shown is the group that the plan was made of.
	shown *v1alpha1.MysqlFailoverGroup
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case op.Target <= 0:
		return errors.New("--target must be above 0")
	case op.Stay < 0:
		return errors.New("--stay must not be negative")
	case op.DryRun == request.DryRunServer:
		return errors.New("--dry-run=server: the second move depends on the first; use --dry-run=client")
	}
	return op.Request.Validate()
}

// Run moves the role there and back, and judges.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	op.lookedAt = env.Now().UTC()
	view, err := op.lookForPlan(ctx, env, c)
	if err != nil {
		return cli.ExitError, err
	}
	if err := op.choose(view); err != nil {
		return cli.ExitError, err
	}
	home := view.Report.ActiveSite
	op.shown = view.Group
	plan := []screen.Line{
		{Label: "Now", Text: fmt.Sprintf("%s is active under epoch %d", home, view.Report.Epoch)},
		{Label: "There", Text: fmt.Sprintf("planned failover %s -> %s; then wait until the group is healthy, and %s more", home, op.To, op.Stay)},
		{Label: "Back", Text: fmt.Sprintf("planned failover %s -> %s; then wait until the group is healthy", op.To, home)},
		{Label: "Pause", Text: fmt.Sprintf("twice; the target is %s each", op.Target)},
		{Label: "Canary", Text: op.canaryWords(home)},
		{Label: "Sessions", Text: "every client session on the active site ends, twice"},
		{Label: "Loss", Text: "nothing"},
	}
	op.ShowPlan(env, fmt.Sprintf("Drill of %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.Confirm(ctx, env, "Move the role there and back now?"); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, op.Report("drill", plan, map[string]string{v1alpha1.AnnotationPlannedFailover: op.To}))
	}
	d := verdict.NewDrill(op.Namespace, op.Group, op.Target, env.Now().UTC())
	failure, err := op.measured(ctx, env, c, home, &d)
	if err != nil {
		return cli.ExitError, err
	}
	d.Finish(env.Now().UTC(), failure)
	if failure != nil {
		_, d.Next = cli.InLines(failure)
	}
	op.judged = true
	if err := op.write(env, d); err != nil {
		return cli.ExitError, err
	}
	if !d.Passed {
		return cli.ExitDegraded, failure
	}
	return cli.ExitHealthy, nil
}

func (op *Op) canaryWords(home string) string {
	if !op.Canary {
		return "none: only what the operator measures is known"
	}
	return fmt.Sprintf("a row every %s on whichever of %s and %s takes writes, in a schema of its own, which is dropped in the end", canaryEvery, home, op.To)
}

// measured moves the role there and back, with a canary if wanted. err is why it did not begin.
func (op *Op) measured(ctx context.Context, env cli.Environment, c Cluster, home string, d *verdict.Drill) (failure, err error) {
	if op.Canary {
		if op.Writer, err = op.StartCanary(ctx, env, c, home); err != nil {
			return nil, err
		}
	}
	failure = op.thereAndBack(ctx, env, c, home, d)
	if op.Writer == nil {
		return failure, nil
	}
	active := op.activeAtTheEnd(ctx, c, home)
	d.Canary = op.Writer.Judge(ctx, active)
	if err := op.Writer.End(ctx, active); err != nil {
		fmt.Fprintf(env.ErrOut, "warning: %v\n", err)
	}
	return failure, nil
}

// activeAtTheEnd asks after an interrupt too, but not without bound.
func (op *Op) activeAtTheEnd(ctx context.Context, c Cluster, home string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryPatience)
	defer cancel()
	if g, err := c.Group(ctx, op.Namespace, op.Group); err == nil && g.Status.ActiveSite != "" {
		return g.Status.ActiveSite
	}
	return home
}

// planPatience is how long a drill waits for a forecast with a site, for which it looks every planEvery. The custom resource shows
// another forecast only after it has lasted for 10 s.
const (
	planPatience = 15 * time.Second
	planEvery    = time.Second
)

// lookForPlan looks again while a group that is well has no site to move to. In the look in which a new group becomes whole, its
// replica may not be fit yet; the forecast that names no site then stands in the custom resource for 10 s more.
func (op *Op) lookForPlan(ctx context.Context, env cli.Environment, c Cluster) (request.Outlook, error) {
	view, err := op.Look(ctx, c)
	for waited := time.Duration(0); err == nil && op.lacksPlan(view) && waited < planPatience; waited += planEvery {
		if waited == 0 {
			fmt.Fprintf(env.ErrOut, "waiting up to %s until a site would take over\n", planPatience)
		}
		if !env.Wait(ctx, planEvery) {
			return view, cli.NotConfirmed("interrupted: nothing was changed")
		}
		view, err = op.Look(ctx, c)
	}
	return view, err
}

func (op *Op) lacksPlan(view request.Outlook) bool {
	site, _ := foreseen(view)
	return op.To == "" && view.Report.Health == report.Healthy && site == ""
}

// foreseen is the site that would take over, empty if none would. The operator's own word is newer than the custom resource, which follows
// it slowly. known is false while neither says anything.
func foreseen(view request.Outlook) (site string, known bool) {
	if f := view.Report.Forecast; f != nil {
		return f.Site, true
	}
	if f := view.Group.Status.Forecast; f != nil {
		return f.Site, true
	}
	return "", false
}

// choose refuses a drill of a group that is not well: it would be an experiment.
func (op *Op) choose(view request.Outlook) error {
	g, r := view.Group, view.Report
	if r.Health != report.Healthy {
		return cli.Refused("refused: %s is %s, and a drill is for a group that is well: %s\n  see what is wrong: kubectl mfg status %s -n %s",
			op.Group, r.Summary, r.Problems[0].Message, op.Group, op.Namespace)
	}
	next, known := foreseen(view)
	if op.To == "" && next != g.Status.ActiveSite {
		op.To = next
	}
	for _, site := range g.Spec.Sites {
		// A forecast can be a moment old: right after a move it may name the site that is active by now.
		if op.To == "" && next != "" && site.Name != g.Status.ActiveSite && site.Role == v1alpha1.PrimaryCandidate {
			op.To = site.Name
		}
	}
	if op.To == "" && !known {
		return cli.Refused("refused: the operator has not said yet which site would take over; try again in a moment, or name one with --to\n  see what it says: kubectl mfg explain %s -n %s",
			op.Group, op.Namespace)
	}
	if op.To == "" {
		return cli.Refused("refused: no site would take over, so there is none to move to\n  see why: kubectl mfg explain %s -n %s", op.Group, op.Namespace)
	}
	there := failover.Op{Request: op.Request, To: op.To}
	if err := there.Allowed(g); err != nil {
		return err
	}
	return there.Preflight(view)
}

func (op *Op) thereAndBack(ctx context.Context, env cli.Environment, c Cluster, home string, d *verdict.Drill) error {
	if err := op.Leg(ctx, env, c, Leg{LegThere, home, op.To}, d); err != nil {
		return err
	}
	if op.Stay > 0 {
		fmt.Fprintf(env.ErrOut, "staying on %s for %s\n", op.To, op.Stay)
		if !env.Wait(ctx, op.Stay) {
			return cli.Refused("interrupted: the role stays with %s, and the way back was not asked for\n  move it back: %s", op.To, op.wayBack(home))
		}
	}
	return op.Leg(ctx, env, c, Leg{legBack, op.To, home}, d)
}

// Leg is one of the two moves.
type Leg struct{ Name, From, To string }

// The names of both.
const (
	LegThere = "there"
	legBack  = "back"
)

// Leg makes one of the two moves, and waits until the group is healthy again.
func (op *Op) Leg(ctx context.Context, env cli.Environment, c Cluster, l Leg, d *verdict.Drill) error {
	fmt.Fprintf(env.ErrOut, "%s: %s -> %s\n", l.Name, l.From, l.To)
	out := verdict.Leg{Name: l.Name, From: l.From, To: l.To, StartedAt: env.Now().UTC(), Outcome: cli.OutcomeRefused}
	defer func() { d.Legs = append(d.Legs, out) }()
	there, mark := failover.Op{Request: op.Request, To: l.To}, op.Writer.Mark()
	before, err := op.Submit(ctx, env, c, map[string]string{v1alpha1.AnnotationPlannedFailover: l.To}, op.allowed(l, &there, d))
	if err != nil {
		out.Message = err.Error()
		if own := (*cli.Error)(nil); errors.As(err, &own) && own.Code == cli.ExitTimeout {
			// The request may stand, and the role move.
			out.Outcome = verdict.LegUnknown
			err = fmt.Errorf("%w\n  if it does: %s", err, op.goesOn(l))
		}
		return err
	}
	rep := op.Report("drill", nil, nil)
	op.Stays = op.goesOn(l)
	if err := (failover.Move{To: l.To, Before: before.Status.PlannedFailover}).Follow(ctx, &op.Request, env, c, rep); err != nil {
		out.Outcome, out.Message = verdict.LegUnknown, err.Error()
		return err
	}
	out.Outcome, out.Reason, out.Message, out.Epoch = rep.Outcome, rep.Reason, rep.Message, rep.Epoch
	out.WritePauseMillis, out.LostTransactions = rep.WritePauseMillis, rep.LostTransactions
	opened := env.Now()
	if out.Outcome != cli.OutcomeDone {
		return cli.Refused("%s %s (%s): %s\n  see the group: kubectl mfg status %s -n %s", l.Name, strings.ToLower(out.Outcome), out.Reason, out.Message, op.Group, op.Namespace)
	}
	settled := op.awaitHealthy(ctx, env, c, l.To)
	// What the canary saw of the move counts whatever the group did after it.
	out.CanaryPauseMillis, out.CanaryRows = op.Writer.Measure(context.WithoutCancel(ctx), mark, l.To)
	if settled != nil {
		out.Unsettled = cli.WhyEnded(settled)
		return op.unsettled(l, out.Unsettled)
	}
	out.SettledMillis = env.Now().Sub(opened).Milliseconds()
	return nil
}

// allowed checks a move. The first one is confirmed for the role as the plan showed it: from another site it would be no drill of that plan, and
// its way back would go to a site that was not active. The second one undoes the first: if the role has moved in between, the drill has met an
// outage, and must not pass.
func (op *Op) allowed(l Leg, move *failover.Op, d *verdict.Drill) func(*v1alpha1.MysqlFailoverGroup) error {
	return func(g *v1alpha1.MysqlFailoverGroup) error {
		if err := move.Allowed(g); err != nil {
			return err
		}
		switch is := g.Status; {
		case l.Name == LegThere && op.shown != nil:
			return move.Unmoved(g, op.shown)
		case l.Name == legBack && len(d.Legs) > 0 && (is.ActiveSite != l.From || is.Epoch != d.Legs[0].Epoch):
			return cli.Refused("refused: the role moved during the drill: %s is active under epoch %d, and %s was under epoch %d\n  see why: kubectl mfg history %s -n %s",
				cli.OrNoSite(is.ActiveSite), is.Epoch, l.From, d.Legs[0].Epoch, op.Group, op.Namespace)
		}
		return nil
	}
}

// wayBack is the command that ends by hand what a drill began.
func (op *Op) wayBack(home string) string {
	return fmt.Sprintf("kubectl mfg failover %s -n %s --to %s", op.Group, op.Namespace, home)
}

// goesOn says what continues after a wait for a move has ended: that move, and nothing after it.
func (op *Op) goesOn(l Leg) string {
	if l.Name == legBack {
		return "the move to " + l.To + " continues"
	}
	return fmt.Sprintf("the move to %s continues, and the drill does not move back\n  move it back afterwards: %s", l.To, op.wayBack(l.From))
}

// unsettled gives up the drill after a move that succeeded: no request is still under way.
func (op *Op) unsettled(l Leg, why string) error {
	see := fmt.Sprintf("see how it is: kubectl mfg status %s -n %s", op.Group, op.Namespace)
	if l.Name == legBack {
		return cli.Refused("given up: %s is active again, but the group was not seen healthy after that: %s\n  %s", l.To, why, see)
	}
	return cli.Refused("given up: %s is active, the group was not seen healthy after that, and the way back was not asked for: %s\n  %s\n  once it is healthy, move it back: %s",
		l.To, why, see, op.wayBack(l.From))
}

// awaitHealthy waits until every site does its work again.
func (op *Op) awaitHealthy(ctx context.Context, env cli.Environment, c Cluster, active string) error {
	_, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if g.Status.ActiveSite != active || g.Status.Transition != nil {
			return false
		}
		list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group)
		view := report.LiveView{Status: list}
		if err != nil {
			view = live.Unanswered(err, op.OperatorNamespace)
		}
		return report.Build(g, view).Health == report.Healthy
	})
	return err
}

func (op *Op) write(env cli.Environment, d verdict.Drill) error {
	if op.Output.Machine() {
		return op.Output.Print(env.Out, &d)
	}
	_, err := fmt.Fprint(env.Out, d.Text())
	return err
}

// Failed reports a drill that did not begin; if it did begin, its own report says which move failed.
func (op *Op) Failed(f cli.Failure) (any, cli.Output) {
	if op.judged {
		return nil, cli.Output{}
	}
	d := verdict.NewDrill(op.Namespace, op.Group, op.Target, op.lookedAt)
	d.NotBegun(f.Outcome, f.Reason, f.Message, f.Next)
	return &d, op.Output
}
