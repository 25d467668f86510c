// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
	"github.com/mysql-mfg/mfg/tui"
)

// dashboardOp is `kubectl mfg dashboard`.
type dashboardOp struct {
	Namespace         string
	Group             string // "" opens the list
	AllNamespaces     bool
	OperatorNamespace string
	Once              bool
	AllowActions      bool
	ASCII             bool
	Color             string
}

func (a *app) dashboardCommand() *cobra.Command {
	op := dashboardOp{}
	cmd := &cobra.Command{
		Use:   "dashboard [GROUP]",
		Short: "Watch groups live on a full screen",
		Long: `Watch groups live on a full screen: who may write, how far the others are and were, a failover as it unfolds, and
what would happen if the active site were lost now. Keys are as in k9s; ? lists them.

What the operator sees is streamed through the API server's service proxy, or a forwarded port where that is not
allowed. When the stream is lost the screen says for how long, and shows the custom resource after a while.

It only looks, unless --allow-actions is given. Then keys run the verbs failover (and its --abort), reclone, pause and
resume, each with its plan and its question.

` + exitCodes,
		Example: `  # All groups of the namespace
  kubectl mfg dashboard

  # One group, with keys that act
  kubectl mfg dashboard orders --allow-actions

  # One frame, for a ticket
  kubectl mfg dashboard orders --once`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVarP(&op.AllNamespaces, "all-namespaces", "A", false, "Show the groups of all namespaces.")
	f.BoolVar(&op.Once, "once", false, "Print one frame and end. Needs no terminal.")
	f.BoolVar(&op.AllowActions, "allow-actions", false, "Let keys run verbs; each shows its plan and asks.")
	f.BoolVar(&op.ASCII, "ascii", false, "Draw with ASCII only. Default: where the locale is not UTF-8.")
	f.StringVar(&op.Color, "color", colorAuto, "Colour: "+strings.Join(colors, "|")+". auto: on a terminal, unless NO_COLOR is set.")
	addOperatorNamespace(cmd, &op.OperatorNamespace)
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) == 1 {
			if op.Group, err = groupArgument(args[0]); err != nil {
				return err
			}
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *dashboardOp) validate() error {
	switch {
	case op.Group != "" && op.AllNamespaces:
		return errors.New("GROUP and --all-namespaces exclude each other")
	case !slices.Contains(colors, op.Color):
		return fmt.Errorf("--color must be one of %s", strings.Join(colors, ", "))
	case op.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	case op.Once && op.AllowActions:
		return errors.New("--once and --allow-actions exclude each other: one frame takes no keys")
	}
	return nil
}

func (op *dashboardOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	namespace := op.Namespace
	if op.AllNamespaces {
		namespace = ""
	}
	feeds := tui.Feeds{
		Stream: &tui.Stream{Routes: c.Routes(op.OperatorNamespace, namespace), Now: env.Now},
		Watch:  func(ctx context.Context, deliver func(tui.Objects)) { c.Watch(ctx, namespace, deliver) },
	}
	if op.Once {
		return op.once(ctx, env, tui.New(op.options(ctx, env, c, namespace)), feeds)
	}
	if _, terminal := env.Terminal(); !terminal || !env.Interactive() || env.Getenv("TERM") == "dumb" {
		return exitUsage, &coded{code: exitUsage, err: errors.New("there is no terminal to draw on\n  one frame as text: kubectl mfg dashboard --once")}
	}
	// On a full screen Ctrl-C is a key. While a verb asks its question it is a signal, which ends the verb only.
	ctx = context.WithoutCancel(ctx)
	if err := tui.Run(ctx, tui.New(op.options(ctx, env, c, namespace)), feeds, env.In, env.Out); err != nil {
		return exitError, err
	}
	return exitHealthy, nil
}

// options bind what the dashboard asks to the cluster.
func (op *dashboardOp) options(ctx context.Context, env Environment, c Cluster, namespace string) tui.Options {
	return tui.Options{
		Namespace: namespace, Group: op.Group, Now: env.Now(), AllowActions: op.AllowActions,
		Colour: colored(op.Color, env), ASCII: op.ASCII || !speaksUnicode(env.Getenv),
		Events:  func(namespace, group string) tui.Heard { return op.events(ctx, env, c, tui.Named(namespace, group)) },
		Why:     func(namespace, group string) tui.Heard { return op.why(ctx, env, c, tui.Named(namespace, group)) },
		Perform: func(a tui.Action) tui.Deed { return newDeed(env, c, op.OperatorNamespace, a) },
	}
}

// speaksUnicode is false only where the locale says so: many shells in containers have none, on terminals that do.
func speaksUnicode(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}

// onceTimeout is how long one frame waits for what it shows.
const onceTimeout = 5 * time.Second

// once prints one frame. Like status, it tells by its exit code whether something needs attention.
func (op *dashboardOp) once(ctx context.Context, env Environment, m tui.Model, feeds tui.Feeds) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	m = tui.Gather(ctx, m, feeds)
	if failure := m.Failure(); failure != "" {
		return exitError, errors.New(failure)
	}
	width, terminal := env.Terminal()
	if !terminal {
		width = 120
	}
	if _, err := fmt.Fprint(env.Out, m.Once(width)); err != nil {
		return exitError, fmt.Errorf("write: %w", err)
	}
	if !m.Healthy() {
		return exitDegraded, nil
	}
	return exitHealthy, nil
}

func (op *dashboardOp) events(ctx context.Context, env Environment, c Cluster, h tui.Heard) tui.Heard {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	events := eventsOp{Namespace: h.Namespace, Group: h.Group}
	all, err := events.gather(ctx, env, c)
	h.Events = all
	if err != nil {
		h.Error = firstLine(err)
	}
	return h
}

func (op *dashboardOp) why(ctx context.Context, env Environment, c Cluster, h tui.Heard) tui.Heard {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	explain := explainOp{Namespace: h.Namespace, Group: h.Group, OperatorNamespace: op.OperatorNamespace}
	rep, err := explain.gather(ctx, c)
	if err != nil {
		h.Error = firstLine(err)
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

func firstLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
