// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// watch shows the answer repeatedly until it is interrupted, the normal end of a watch: the exit code is that of the
// last look. On a terminal it redraws the answer each time; elsewhere it writes a changed answer again.
func (op *Status) watch(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	w := watcher{op: op, env: env, bound: lookTimeout}
	_, w.terminal = env.Terminal()
	w.terminal = w.terminal && !op.forPrograms()
	return w.run(ctx, c)
}

func (w *watcher) run(ctx context.Context, c Cluster) (int, error) {
	for running := true; running; running = w.env.Wait(ctx, w.op.Interval) {
		reports, failure := w.look(ctx, c)
		if interrupted(ctx) {
			break
		}
		// A first failure is an answer; a later one may pass, and the user wants to see that too.
		if failure != nil && !w.started {
			return cli.ExitError, failure
		}
		w.failed = failure != nil
		if err := w.show(reports, failure); err != nil {
			return cli.ExitError, err
		}
	}
	if w.failed || !w.started {
		return cli.ExitError, nil // what is shown is old, and says so; or there was no answer at all
	}
	return codeOf(w.last), nil
}

// lookTimeout bounds each look but the first, so that an API server which hangs does not leave an old answer on the screen as if it were
// live. Where a look takes long, it has patience times what the last one took.
const (
	lookTimeout = 5 * time.Second
	patience    = 2
)

// look gathers within its time. The first look has nothing to make old, and waits like any other command.
func (w *watcher) look(ctx context.Context, c Cluster) ([]report.MysqlFailoverGroupReport, error) {
	if w.started {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(w.bound, patience*w.took))
		defer cancel()
	}
	began := w.env.Now()
	reports, err := w.op.gather(ctx, w.env, c)
	if now := w.env.Now(); err == nil {
		w.seen, w.took = now, now.Sub(began)
	}
	return reports, err
}

func interrupted(ctx context.Context) bool { return ctx.Err() != nil }

type watcher struct {
	op       *Status
	env      cli.Environment
	terminal bool
	started  bool
	// failed is true if the last look had no answer.
	failed bool
	last   []report.MysqlFailoverGroupReport
	said   string
	// seen is when the last answer came, and took how long that look took; bound is the least time of a look.
	seen        time.Time
	took, bound time.Duration
}

func (w *watcher) show(reports []report.MysqlFailoverGroupReport, failure error) error {
	same := w.started && reflect.DeepEqual(fingerprints(w.last), fingerprints(reports))
	if failure == nil {
		w.last = reports
	}
	if w.terminal {
		return w.redraw(failure)
	}
	w.started = true
	switch {
	case failure != nil:
		w.say("warning: " + failure.Error() + " (trying again)")
	case same:
		w.said = ""
	default:
		w.said = ""
		return w.append()
	}
	return nil
}

// append writes the newest answer below the others.
func (w *watcher) append() error {
	if len(w.last) == 0 {
		w.say(w.op.nothing())
	}
	drawn, err := w.op.draw(w.env, w.last)
	if err != nil {
		return err
	}
	return w.write(w.separate(drawn))
}

// separate keeps answers apart in a stream.
func (w *watcher) separate(drawn string) string {
	if w.op.forPrograms() || drawn == "" {
		return drawn
	}
	return drawn + "\n"
}

func (w *watcher) redraw(failure error) error {
	drawn := w.op.nothing() + "\n"
	if len(w.last) > 0 {
		var err error
		if drawn, err = w.op.draw(w.env, w.last); err != nil {
			return err
		}
	}
	warning := ""
	if failure != nil {
		warning = fmt.Sprintf("warning: this is old, from %s: %v (trying again)", w.seen.UTC().Format("15:04:05Z"), failure)
	}
	start := cli.CursorHome
	if !w.started {
		start = cli.ClearScreen + cli.CursorHome
	}
	w.started = true
	// The cursor is moved past the guard, so the words pass it in fit.
	shown := sizeOf(w.env).fit(drawn, warning, w.op.dashboard())
	if _, err := fmt.Fprint(escape.Raw(w.env.Out), start+strings.ReplaceAll(shown, "\n", cli.ClearLine+"\n")+cli.ClearBelow); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// dashboard is the command that shows the same, and scrolls.
func (op *Status) dashboard() string {
	switch {
	case op.AllNamespaces:
		return "kubectl mfg dashboard -A"
	case op.Group != "":
		return "kubectl mfg dashboard " + op.Group + " -n " + op.Namespace
	}
	return "kubectl mfg dashboard -n " + op.Namespace
}

func (w *watcher) write(s string) error {
	if _, err := fmt.Fprint(w.op.out(w.env), s); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// say writes a message to stderr, unless it was also the last one.
func (w *watcher) say(s string) {
	if s != w.said {
		fmt.Fprintln(w.env.ErrOut, s)
		w.said = s
	}
}

func fingerprints(reports []report.MysqlFailoverGroupReport) []report.MysqlFailoverGroupReport {
	out := make([]report.MysqlFailoverGroupReport, 0, len(reports))
	for _, r := range reports {
		out = append(out, r.Fingerprint())
	}
	return out
}
