// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/muesli/cancelreader"

	"github.com/mysql-mfg/mfg/tui"
)

// deed runs a verb on the terminal that the dashboard lends it: the same plan, the same questions, the same refusals. It
// does not wait for the outcome, which the dashboard shows as it unfolds.
type deed struct {
	env     Environment
	cluster Cluster
	op      operation
	failure error // of the action itself, before any verb
	outcome string
}

func newDeed(env Environment, c Cluster, operatorNamespace string, a tui.Action) *deed {
	d := &deed{env: env, cluster: c}
	r := request{
		Namespace: a.Namespace, Group: a.Group, OperatorNamespace: operatorNamespace, DryRun: dryRunNone, Timeout: time.Minute,
	}
	switch a.Verb {
	case tui.VerbFailover:
		d.op = &failoverOp{request: r, To: a.Argument}
	case tui.VerbAbort:
		d.op = &failoverOp{request: r, Abort: true}
	case tui.VerbReclone:
		d.op = &recloneOp{request: r, Site: a.Argument}
	case tui.VerbResume:
		d.op = &resumeOp{request: r}
	case tui.VerbPause:
		length, err := time.ParseDuration(a.Argument)
		d.op, d.failure = &pauseOp{request: r, For: length}, err
	default:
		d.failure = fmt.Errorf("unknown action %q", a.Verb)
	}
	return d
}

func (d *deed) SetStdin(r io.Reader) { d.env.In = r }

// SetStdout takes all output: stderr may lead elsewhere, and the question must be seen.
func (d *deed) SetStdout(w io.Writer) { d.env.Out, d.env.ErrOut = w, w }

func (d *deed) SetStderr(io.Writer) {}

// Outcome says in a line what came of it.
func (d *deed) Outcome() string { return d.outcome }

// Run runs the verb. A refusal stays on the screen until it was read; it names the next step.
func (d *deed) Run() error {
	//nolint:contextcheck // Ctrl-C ends the verb, not the dashboard, whose context it is not.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	defer d.lendKeys(ctx)()
	screen, said := d.env.Out, &bytes.Buffer{}
	fmt.Fprint(screen, clearScreen+cursorHome)
	d.env.Out = io.MultiWriter(screen, said)
	err := d.failure
	if err == nil {
		err = d.op.validate()
	}
	if err == nil {
		_, err = d.op.run(ctx, d.env, d.cluster)
	}
	if err == nil {
		d.outcome, _, _ = strings.Cut(strings.TrimSpace(said.String()), "; see how far it is")
		return nil
	}
	d.outcome = firstLine(err)
	var own *coded
	if errors.As(err, &own) && own.code == exitUsage {
		return nil // the person who said no knows
	}
	fmt.Fprintf(screen, "error: %v\n\nPress enter to go back to the dashboard. ", err)
	_, _ = bufio.NewReader(d.env.In).ReadString('\n')
	return nil
}

// lendKeys takes the keyboard back when the verb is interrupted. A question that nobody answered is left behind reading,
// and would eat the keys that are meant for the dashboard.
func (d *deed) lendKeys(ctx context.Context) (end func()) {
	keys, err := cancelreader.NewReader(d.env.In)
	if err != nil {
		return func() {} // no terminal: there is nobody to type on
	}
	d.env.In = keys
	stop := context.AfterFunc(ctx, func() { keys.Cancel() })
	return func() {
		if stop() {
			_ = keys.Close() // nobody reads any more
		}
	}
}
