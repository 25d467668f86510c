// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// outputJUnit is the format that CI systems read.
const outputJUnit = "junit"

// drillOp is `kubectl mfg drill`.
type drillOp struct {
	request
	To     string
	Target time.Duration
	Stay   time.Duration
	Canary bool

	canary *canary
	// lookedAt is when it was to begin, judged is true once it is over and its report says so.
	lookedAt time.Time
	judged   bool
}

func (a *app) drillCommand() *cobra.Command {
	op := drillOp{}
	cmd := &cobra.Command{
		Use:   "drill GROUP",
		Short: "Move the active site away and back, measure, and judge against a target",
		Long: `Move the active site to another one and back by two planned failovers, and judge each against a target. A failover that
is never practised does not work on the day that it is needed.

Two figures are measured. The operator's own: from the moment at which the intent to move was persisted, before writes
were stopped, to the moment at which the new site was seen open. And that of a canary, which tries to write a row on both
sites every 20 ms: the longest time in which none was acknowledged. In the end every acknowledged row must be there.
Clients of the Service see the canary's pause plus the time that they take to reconnect.

The canary runs the mysql client in the pods, as root and over the socket, in a schema mfg_drill that is dropped in the end. It
needs the right to exec into pods and to read the group's root Secret; --canary=false does without.

It begins only with a group that is healthy, and waits between the two moves until it is healthy again. If the way back
fails, the role stays where it is and the report says so. So it does if the group is not seen healthy again within --timeout, or
after Ctrl-C: the way back is not asked for then (exit code 5), and the command for it is told. With -o json and -o junit one that does not begin is reported too.

` + exitCodes,
		Example: `  # There and back; writes may pause for two seconds each
  kubectl mfg drill orders --target 2s

  # Every night, for CI
  kubectl mfg drill orders --target 2s --yes -o junit > drill.xml

  # What would be done?
  kubectl mfg drill orders --dry-run=client`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.StringVar(&op.To, "to", "", "Site to move to. Default: the one that would take over by itself.")
	f.DurationVar(&op.Target, "target", 5*time.Second, "For how long writes may be kept out by each move.")
	f.DurationVar(&op.Stay, "stay", 0, "How long to stay on the other site once the group is healthy there.")
	f.BoolVar(&op.Canary, "canary", true, "Write rows meanwhile, and measure for how long none is acknowledged.")
	out := op.bindDrill(cmd)
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeSiteFlag)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.fill(a, args[0], out); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

// bindDrill has the flags of a request but for --wait: a drill that is not waited for measures nothing.
func (op *drillOp) bindDrill(cmd *cobra.Command) func() (output, error) {
	op.Wait = true
	f := cmd.Flags()
	f.StringVar(&op.DryRun, "dry-run", dryRunNone, "none: do it. client: show the plan, send nothing.")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	f.BoolVarP(&op.Yes, "yes", "y", false, "Do not ask. Required where no terminal is.")
	f.DurationVar(&op.Timeout, "timeout", 5*time.Minute, "How long to wait for each move, and for the group to be healthy after it.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	return addOutputFlag(cmd, outputJUnit)
}

func (op *drillOp) validate() error {
	switch {
	case op.Target <= 0:
		return errors.New("--target must be above 0")
	case op.Stay < 0:
		return errors.New("--stay must not be negative")
	case op.DryRun == dryRunServer:
		return errors.New("--dry-run=server: the second move depends on the first; use --dry-run=client")
	}
	return op.request.validate()
}

func (op *drillOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	op.lookedAt = env.Now().UTC()
	view, err := op.look(ctx, c)
	if err != nil {
		return exitError, err
	}
	if err := op.choose(view); err != nil {
		return exitError, err
	}
	home := view.report.ActiveSite
	plan := []planLine{
		{"Now", fmt.Sprintf("%s is active under epoch %d", home, view.report.Epoch)},
		{"There", fmt.Sprintf("planned failover %s -> %s; then wait until the group is healthy, and %s more", home, op.To, op.Stay)},
		{"Back", fmt.Sprintf("planned failover %s -> %s; then wait until the group is healthy", op.To, home)},
		{"Pause", fmt.Sprintf("twice; the target is %s each", op.Target)},
		{"Canary", op.canaryWords(home)},
		{"Sessions", "every client session on the active site ends, twice"},
		{"Loss", "nothing"},
	}
	op.showPlan(env, fmt.Sprintf("Drill of %s (namespace %s)", op.Group, op.Namespace), plan)
	if err := op.confirm(ctx, env, "Move the role there and back now?"); err != nil {
		return exitError, err
	}
	if op.DryRun != dryRunNone {
		return exitHealthy, op.dryRunDone(env, op.report("drill", plan, map[string]string{v1alpha1.AnnotationPlannedFailover: op.To}))
	}
	d := report.NewDrill(op.Namespace, op.Group, op.Target, env.Now().UTC())
	failure, err := op.measured(ctx, env, c, home, &d)
	if err != nil {
		return exitError, err
	}
	d.Finish(env.Now().UTC(), failure)
	if failure != nil {
		_, d.Next = inLines(failure)
	}
	op.judged = true
	if err := op.write(env, d); err != nil {
		return exitError, err
	}
	if !d.Passed {
		return exitDegraded, failure
	}
	return exitHealthy, nil
}

func (op *drillOp) canaryWords(home string) string {
	if !op.Canary {
		return "none: only what the operator measures is known"
	}
	return fmt.Sprintf("a row every %s on whichever of %s and %s takes writes, in the schema %s, which is dropped in the end", canaryEvery, home, op.To, canarySchema)
}

// measured moves the role there and back, with a canary if one is wanted. err is why it did not begin.
func (op *drillOp) measured(ctx context.Context, env Environment, c Cluster, home string, d *report.Drill) (failure, err error) {
	if op.Canary {
		if op.canary, err = op.startCanary(ctx, env, c, home); err != nil {
			return nil, err
		}
	}
	failure = op.thereAndBack(ctx, env, c, home, d)
	if op.canary == nil {
		return failure, nil
	}
	active := home
	if g, err := c.Group(context.WithoutCancel(ctx), op.Namespace, op.Group); err == nil && g.Status.ActiveSite != "" {
		active = g.Status.ActiveSite
	}
	d.Canary = op.canary.judge(context.WithoutCancel(ctx), active)
	if err := op.canary.end(ctx, active); err != nil {
		fmt.Fprintf(env.ErrOut, "warning: %v\n", err)
	}
	return failure, nil
}

// choose refuses a drill of a group that is not well: it would be an experiment.
func (op *drillOp) choose(view outlook) error {
	g, r := view.group, view.report
	if r.Health != report.Healthy {
		return refused("refused: %s is %s, and a drill is for a group that is well: %s\n  see what is wrong: kubectl mfg status %s -n %s",
			op.Group, r.Summary, r.Problems[0].Message, op.Group, op.Namespace)
	}
	if f := g.Status.Forecast; op.To == "" && f != nil && f.Site != g.Status.ActiveSite {
		op.To = f.Site
	}
	for _, site := range g.Spec.Sites {
		// A forecast can be a moment old: right after a move it may name the site that is active by now.
		if op.To == "" && site.Name != g.Status.ActiveSite && site.Role == v1alpha1.PrimaryCandidate && g.Status.Forecast != nil && g.Status.Forecast.Site != "" {
			op.To = site.Name
		}
	}
	if op.To == "" {
		return refused("refused: no site would take over, so there is none to move to\n  see why: kubectl mfg explain %s -n %s", op.Group, op.Namespace)
	}
	there := failoverOp{request: op.request, To: op.To}
	if err := there.allowed(g); err != nil {
		return err
	}
	return there.preflight(view)
}

func (op *drillOp) thereAndBack(ctx context.Context, env Environment, c Cluster, home string, d *report.Drill) error {
	if err := op.leg(ctx, env, c, leg{legThere, home, op.To}, d); err != nil {
		return err
	}
	if op.Stay > 0 {
		fmt.Fprintf(env.ErrOut, "staying on %s for %s\n", op.To, op.Stay)
		if !env.Wait(ctx, op.Stay) {
			return refused("interrupted: the role stays with %s, and the way back was not asked for\n  move it back: %s", op.To, op.wayBack(home))
		}
	}
	return op.leg(ctx, env, c, leg{legBack, op.To, home}, d)
}

// leg is one of the two moves.
type leg struct{ name, from, to string }

// The names of both.
const (
	legThere = "there"
	legBack  = "back"
)

func (op *drillOp) leg(ctx context.Context, env Environment, c Cluster, l leg, d *report.Drill) error {
	fmt.Fprintf(env.ErrOut, "%s: %s -> %s\n", l.name, l.from, l.to)
	out := report.Leg{Name: l.name, From: l.from, To: l.to, StartedAt: env.Now().UTC(), Outcome: outcomeRefused}
	defer func() { d.Legs = append(d.Legs, out) }()
	there, mark := failoverOp{request: op.request, To: l.to}, op.canary.mark()
	before, err := op.submit(ctx, env, c, map[string]string{v1alpha1.AnnotationPlannedFailover: l.to}, there.allowed)
	if err != nil {
		out.Message = err.Error()
		return err
	}
	rep := op.report("drill", nil, nil)
	op.stays = op.goesOn(l)
	if err := op.followMove(ctx, env, c, move{to: l.to, before: before.Status.PlannedFailover}, rep); err != nil {
		out.Outcome, out.Message = "Unknown", err.Error()
		return err
	}
	out.Outcome, out.Reason, out.Message, out.Epoch = rep.Outcome, rep.Reason, rep.Message, rep.Epoch
	out.WritePauseMillis, out.LostTransactions = rep.WritePauseMillis, rep.LostTransactions
	opened := env.Now()
	if out.Outcome != outcomeDone {
		return refused("%s %s (%s): %s\n  see the group: kubectl mfg status %s -n %s", l.name, strings.ToLower(out.Outcome), out.Reason, out.Message, op.Group, op.Namespace)
	}
	settled := op.awaitHealthy(ctx, env, c, l.to)
	// What the canary saw of the move counts whatever the group did after it.
	out.CanaryPauseMillis, out.CanaryRows = op.canary.measure(context.WithoutCancel(ctx), mark, l.to)
	if settled != nil {
		out.Unsettled = whyEnded(settled)
		return op.unsettled(l, out.Unsettled)
	}
	out.SettledMillis = env.Now().Sub(opened).Milliseconds()
	return nil
}

// wayBack is the command that ends by hand what a drill began.
func (op *drillOp) wayBack(home string) string {
	return fmt.Sprintf("kubectl mfg failover %s -n %s --to %s", op.Group, op.Namespace, home)
}

// goesOn is what a wait for a move that ended leaves behind: that move, and nothing after it.
func (op *drillOp) goesOn(l leg) string {
	if l.name == legBack {
		return "the move to " + l.to + " goes on"
	}
	return fmt.Sprintf("the move to %s goes on, and the way back is not asked for\n  move it back afterwards: %s", l.to, op.wayBack(l.from))
}

// unsettled gives the drill up after a move that succeeded: nothing that was asked for goes on.
func (op *drillOp) unsettled(l leg, why string) error {
	see := fmt.Sprintf("see how it is: kubectl mfg status %s -n %s", op.Group, op.Namespace)
	if l.name == legBack {
		return refused("given up: %s is active again, but the group was not seen healthy after that: %s\n  %s", l.to, why, see)
	}
	return refused("given up: %s is active, the group was not seen healthy after that, and the way back was not asked for: %s\n  %s\n  once it is healthy, move it back: %s",
		l.to, why, see, op.wayBack(l.from))
}

// awaitHealthy waits until every site does what it is for again.
func (op *drillOp) awaitHealthy(ctx context.Context, env Environment, c Cluster, active string) error {
	_, err := op.follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if g.Status.ActiveSite != active || g.Status.Transition != nil {
			return false
		}
		list, err := c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group)
		view := report.LiveView{Status: list}
		if err != nil {
			view = unanswered(err, op.OperatorNamespace)
		}
		return report.Build(g, view).Health == report.Healthy
	})
	return err
}

func (op *drillOp) write(env Environment, d report.Drill) error {
	if op.Output.machine() {
		return op.Output.print(env.Out, &d)
	}
	_, err := fmt.Fprint(env.Out, d.Text())
	return err
}
