// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/muesli/cancelreader"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pause"
	"github.com/mysql-mfg/mfg/kubectl-mfg/reclone"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/tui"
)

// Action runs a verb on the terminal that the dashboard lends it: the same plan, the same questions, the same refusals. It
// does not wait for the outcome: the dashboard shows how that develops.
type Action struct {
	env     cli.Environment
	cluster Cluster
	op      verb
	failure error // of the action itself, before any verb
	outcome string
}

// verb is what a key of the dashboard runs.
type verb interface {
	// Said returns the outcome, for one line of the screen.
	Said() string
	Validate() error
	Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error)
}

// NewAction makes what carries out an action of the dashboard.
func NewAction(env cli.Environment, c Cluster, operatorNamespace string, a tui.Action) *Action {
	d := &Action{env: env, cluster: c}
	r := request.Request{
		Namespace: a.Namespace, Group: a.Group, OperatorNamespace: operatorNamespace, DryRun: request.DryRunNone, Timeout: time.Minute,
	}
	switch a.Verb {
	case tui.VerbFailover:
		d.op = &failover.Op{Request: r, To: a.Argument}
	case tui.VerbAbort:
		d.op = &failover.Op{Request: r, Abort: true}
	case tui.VerbReclone:
		d.op = &reclone.Op{Request: r, Site: a.Argument}
	case tui.VerbResume:
		d.op = &pause.Resume{Request: r}
	case tui.VerbPause:
		length, err := time.ParseDuration(a.Argument)
		d.op, d.failure = &pause.Op{Request: r, For: length}, err
	default:
		d.failure = fmt.Errorf("unknown action %q", a.Verb)
	}
	return d
}

// SetStdin takes the keyboard that the dashboard lends.
func (d *Action) SetStdin(r io.Reader) { d.env.In = r }

// SetStdout takes all output: stderr may lead elsewhere, and the question must be seen.
func (d *Action) SetStdout(w io.Writer) {
	shown := escape.NewWriter(w, true)
	d.env.Out, d.env.ErrOut = shown, shown
}

// SetStderr ignores stderr: all output goes to stdout.
func (d *Action) SetStderr(io.Writer) {}

// Outcome returns the outcome in a line.
func (d *Action) Outcome() string { return d.outcome }

// Run runs the verb. Ctrl-C ends only the verb. SIGTERM, and the loss of the terminal, end the dashboard too: it hears no signal while it lends the
// terminal.
func (d *Action) Run() error {
	//nolint:contextcheck // Ctrl-C ends the verb, not the dashboard, whose context it is not.
	ended, stop := signal.NotifyContext(context.Background(), cli.Ends()...)
	defer stop()
	ctx, stopVerb := signal.NotifyContext(ended, os.Interrupt)
	defer stopVerb()
	defer d.lendKeys(ctx)()
	d.run(ctx)
	if ended.Err() != nil {
		return tui.ErrEnded
	}
	return nil
}

// run leaves a refusal on the screen until the user has read it; it names the next step.
func (d *Action) run(ctx context.Context) {
	screen := d.env.Out
	fmt.Fprint(escape.Raw(screen), cli.ClearScreen+cli.CursorHome)
	err := d.failure
	if err == nil {
		err = d.op.Validate()
	}
	if err == nil {
		_, err = d.op.Run(ctx, d.env, d.cluster)
	}
	if err == nil {
		d.outcome = d.op.Said()
		return
	}
	d.outcome = cli.FirstLine(err)
	var own *cli.Error
	if errors.As(err, &own) && own.Code == cli.ExitUsage {
		return // the person who said no knows that
	}
	fmt.Fprintf(screen, "error: %v\n\nPress enter to go back to the dashboard. ", err)
	_, _ = bufio.NewReader(d.env.In).ReadString('\n')
}

// lendKeys takes back the keyboard when the verb is interrupted. An unanswered question is left behind still reading,
// and would swallow keys that are meant for the dashboard.
func (d *Action) lendKeys(ctx context.Context) (end func()) {
	keys, err := cancelreader.NewReader(d.env.In)
	if err != nil {
		return func() {} // no terminal: no one can type
	}
	d.env.In = keys
	stop := context.AfterFunc(ctx, func() { keys.Cancel() })
	return func() {
		if stop() {
			_ = keys.Close() // no reader is left
		}
	}
}
