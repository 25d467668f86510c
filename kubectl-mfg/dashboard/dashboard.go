// SPDX-License-Identifier: Apache-2.0

// Package dashboard binds the dashboard to the cluster: what it follows, what it asks, and the verbs that its keys run.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/inspect"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
	"github.com/mysql-mfg/mfg/tui"
	"github.com/mysql-mfg/mfg/tui/drill"
	"github.com/mysql-mfg/mfg/tui/feed"
	"github.com/mysql-mfg/mfg/tui/gauge"
)

// Cluster is what the dashboard follows, and what its keys need.
type Cluster interface {
	request.Cluster
	inspect.Cluster
	// Routes are the ways to the operator's stream, the best first.
	Routes(operatorNamespace, namespace string) []feed.Route
	// Watch follows the groups of a namespace, or of all for "", until the context ends.
	Watch(ctx context.Context, namespace string, deliver func(feed.Objects))
	// Figures asks the sidecars of a group what they have measured.
	Figures(ctx context.Context, namespace, group string) ([]gauge.Reading, error)
}

// Op is `kubectl mfg dashboard`.
type Op struct {
	Namespace         string
	Group             string // "" opens the list
	AllNamespaces     bool
	OperatorNamespace string
	Once              bool
	AllowActions      bool
	ASCII             bool
	Color             string
}

// Validate checks only the command line.
func (op *Op) Validate() error {
	switch {
	case op.Group != "" && op.AllNamespaces:
		return errors.New("GROUP and --all-namespaces exclude each other")
	case !slices.Contains(cli.Colors, op.Color):
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	case op.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	case op.Once && op.AllowActions:
		return errors.New("--once and --allow-actions exclude each other: one frame takes no keys")
	}
	return nil
}

// Run draws until the user quits.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	namespace := op.Namespace
	if op.AllNamespaces {
		namespace = ""
	}
	feeds := tui.Feeds{
		Stream: &feed.Stream{Routes: c.Routes(op.OperatorNamespace, namespace), Now: env.Now},
		Watch:  func(ctx context.Context, deliver func(feed.Objects)) { c.Watch(ctx, namespace, deliver) },
	}
	if op.Once {
		return op.once(ctx, env, tui.New(op.options(ctx, env, c, namespace)), feeds)
	}
	if _, terminal := env.Terminal(); !terminal || !env.Interactive() || env.Getenv("TERM") == "dumb" {
		return cli.ExitUsage, &cli.Error{Code: cli.ExitUsage, Err: errors.New("there is no terminal to draw on\n  one frame as text: kubectl mfg dashboard --once")}
	}
	// On a full screen Ctrl-C is a key. While a verb asks its question it is a signal, which ends the verb only.
	// SIGTERM is taken by what draws; the loss of the terminal is not.
	ctx, stop := cli.UntilHangup(context.WithoutCancel(ctx))
	defer stop()
	if err := tui.Run(ctx, tui.New(op.options(ctx, env, c, namespace)), feeds, env.In, escape.Raw(env.Out)); err != nil {
		return cli.ExitError, err
	}
	return cli.ExitHealthy, nil
}

// options connects the dashboard's questions to the cluster.
func (op *Op) options(ctx context.Context, env cli.Environment, c Cluster, namespace string) tui.Options {
	return tui.Options{
		Namespace: namespace, Group: op.Group, Now: env.Now(), AllowActions: op.AllowActions,
		Colour: cli.Colored(op.Color, env), ASCII: op.ASCII || !SpeaksUnicode(env.Getenv),
		Events:  func(namespace, group string) tui.Answer { return op.events(ctx, env, c, tui.Named(namespace, group)) },
		Why:     func(namespace, group string) tui.Answer { return op.why(ctx, env, c, tui.Named(namespace, group)) },
		Figures: func(namespace, group string) tui.Answer { return op.figures(ctx, c, tui.Named(namespace, group)) },
		Look:    func(q drill.Question) drill.Answer { return look(ctx, env, c, q) },
		Perform: func(a tui.Action) tui.Runner { return NewAction(env, c, op.OperatorNamespace, a) },
	}
}

// SpeaksUnicode is false only if the locale says so: many shells in containers have none, on terminals that do.
func SpeaksUnicode(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}

// onceTimeout is how long one frame waits for what it shows.
const onceTimeout = 5 * time.Second

// once prints one frame. As with status, its exit code tells whether something needs attention.
func (op *Op) once(ctx context.Context, env cli.Environment, m tui.Model, feeds tui.Feeds) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	m = tui.Gather(ctx, m, feeds)
	if failure := m.Failure(); failure != "" {
		return cli.ExitError, errors.New(failure)
	}
	width, terminal := env.Terminal()
	if !terminal {
		width = 120
	}
	if _, err := fmt.Fprint(env.Out, m.Once(width)); err != nil {
		return cli.ExitError, fmt.Errorf("write: %w", err)
	}
	if !m.Healthy() {
		return cli.ExitDegraded, nil
	}
	return cli.ExitHealthy, nil
}

func (op *Op) events(ctx context.Context, env cli.Environment, c Cluster, h tui.Answer) tui.Answer {
	ctx, cancel := context.WithTimeout(ctx, live.Timeout)
	defer cancel()
	events := inspect.Events{Namespace: h.Namespace, Group: h.Group}
	all, err := events.Gather(ctx, env, c)
	h.Events = all
	if err != nil {
		h.Error = cli.FirstLine(err)
	}
	return h
}

func (op *Op) why(ctx context.Context, env cli.Environment, c Cluster, h tui.Answer) tui.Answer {
	ctx, cancel := context.WithTimeout(ctx, live.Timeout)
	defer cancel()
	explain := inspect.Explain{Namespace: h.Namespace, Group: h.Group, OperatorNamespace: op.OperatorNamespace}
	rep, err := explain.Gather(ctx, c)
	if err != nil {
		h.Error = cli.FirstLine(err)
		return h
	}
	width, _ := env.Terminal()
	h.Why = screen.Explanation(rep, screen.Options{Width: width, Now: env.Now()})
	if x := rep.Explanation; x != nil {
		for i := range x.Rules {
			if x.Rules[i].Name == x.DecidedBy {
				h.Deciding = &x.Rules[i]
			}
		}
	}
	return h
}
