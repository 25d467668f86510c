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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

const defaultOperatorNamespace = "mfg-system"

// statusOp is `kubectl mfg status`.
type statusOp struct {
	Namespace         string
	Group             string // "" means all groups
	AllNamespaces     bool
	OperatorNamespace string
	Watch             bool
	Interval          time.Duration
	Color             string
	Output            output
}

func (a *app) statusCommand() *cobra.Command {
	op := statusOp{}
	cmd := &cobra.Command{
		Use:   "status [GROUP]",
		Short: "Show how a group is, or all groups",
		Long: `Show how a group is: who may accept writes, how far the others are, and what to do next.
Without GROUP, show one line for each group of the namespace.

The custom resource is always read. What the operator sees right now is asked of the operator through the
API server's service proxy; where that cannot be reached, the last known status is shown and said to be so.
Then the group is Unknown (exit code 3) unless it is only that you may not ask.

` + exitCodes,
		Example: `  # One group, one screen
  kubectl mfg status orders

  # All groups of all namespaces, redrawn every two seconds
  kubectl mfg status -A -w

  # Who replicates from whom
  kubectl mfg status orders -o tree

  # For scripts: exit code 3 if a group needs attention
  kubectl mfg status orders -o json`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeGroup,
	}
	f := cmd.Flags()
	f.BoolVarP(&op.AllNamespaces, "all-namespaces", "A", false, "Show the groups of all namespaces.")
	f.BoolVarP(&op.Watch, "watch", "w", false, "Keep showing, until interrupted.")
	f.DurationVar(&op.Interval, "interval", 2*time.Second, "With --watch, the time between two looks.")
	f.StringVar(&op.Color, "color", colorAuto, "Colour: "+strings.Join(colors, "|")+". auto: on a terminal, unless NO_COLOR is set.")
	f.StringVar(&op.OperatorNamespace, "operator-namespace", defaultOperatorNamespace, "Namespace in which the operator runs.")
	out := addOutputFlag(cmd, outputWide, outputTree, outputName)
	// Only fails for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if op.Output, err = out(); err != nil {
			return err
		}
		if len(args) == 1 {
			if op.Group, err = bareName(args[0]); err != nil {
				return err
			}
			// An empty name would mean all groups: not what somebody wants who gave one.
			if op.Group == "" {
				return usage("GROUP is empty")
			}
		}
		if op.Namespace, _, err = a.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("read kubeconfig: %w", err)
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *statusOp) validate() error {
	switch {
	case op.Group != "" && op.AllNamespaces:
		return errors.New("GROUP and --all-namespaces exclude each other")
	case op.Group != "" && len(validation.IsDNS1123Subdomain(op.Group)) > 0:
		return fmt.Errorf("%q cannot be the name of a group", op.Group)
	case !slices.Contains(colors, op.Color):
		return fmt.Errorf("--color must be one of %s", strings.Join(colors, ", "))
	case op.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	case op.Watch && op.Interval < 100*time.Millisecond:
		return errors.New("--interval must be at least 100ms")
	}
	return nil
}

func (op *statusOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	if op.Watch {
		return op.watch(ctx, env, c)
	}
	reports, err := op.gather(ctx, c)
	if err != nil {
		return exitError, err
	}
	if len(reports) == 0 {
		fmt.Fprintln(env.ErrOut, op.nothing())
	}
	drawn, err := op.draw(env, reports)
	if err != nil {
		return exitError, err
	}
	if _, err := fmt.Fprint(env.Out, drawn); err != nil {
		return exitError, fmt.Errorf("write: %w", err)
	}
	return codeOf(reports), nil
}

// codeOf is degraded if any group is.
func codeOf(reports []report.MysqlFailoverGroupReport) int {
	for _, r := range reports {
		if r.Health != report.Healthy {
			return exitDegraded
		}
	}
	return exitHealthy
}

// gather reads the custom resources, then asks the operator about them. Only the former can fail.
func (op *statusOp) gather(ctx context.Context, c Cluster) ([]report.MysqlFailoverGroupReport, error) {
	groups, err := op.groups(ctx, c)
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	namespace := op.Namespace
	if op.AllNamespaces {
		namespace = ""
	}
	var view report.LiveView
	if view.Status, err = c.Live(ctx, op.OperatorNamespace, namespace, op.Group); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		view = unanswered(err, op.OperatorNamespace)
	}
	reports := make([]report.MysqlFailoverGroupReport, 0, len(groups))
	for i := range groups {
		reports = append(reports, report.Build(&groups[i], view))
	}
	return reports, nil
}

// unanswered is what is known of the operator where it gave no answer.
func unanswered(err error, operatorNamespace string) report.LiveView {
	view := report.LiveView{Denied: apierrors.IsForbidden(err)}
	view.Missing, view.Down = whyNotLive(err, operatorNamespace)
	return view
}

func (op *statusOp) groups(ctx context.Context, c Cluster) ([]v1alpha1.MysqlFailoverGroup, error) {
	switch {
	case op.Group != "":
		g, err := c.Group(ctx, op.Namespace, op.Group)
		if err != nil {
			return nil, err
		}
		return []v1alpha1.MysqlFailoverGroup{*g}, nil
	case op.AllNamespaces:
		return c.Groups(ctx, "")
	default:
		return c.Groups(ctx, op.Namespace)
	}
}

func (op *statusOp) nothing() string {
	if op.AllNamespaces {
		return "No groups found."
	}
	return fmt.Sprintf("No groups found in namespace %s; try -A.", op.Namespace)
}

// draw makes the whole answer, so that a watch can compare and redraw it.
func (op *statusOp) draw(env Environment, reports []report.MysqlFailoverGroupReport) (string, error) {
	var b strings.Builder
	switch {
	case op.Output.printer != nil && op.Group != "":
		err := op.Output.print(&b, &reports[0])
		return b.String(), err
	case op.Output.printer != nil:
		list := report.NewList(reports)
		err := op.Output.print(&b, &list)
		return b.String(), err
	case op.Output.Format == outputName:
		for _, r := range reports {
			fmt.Fprintln(&b, groupName(r.Metadata.Name))
		}
		return b.String(), nil
	}
	width, _ := env.Terminal()
	o := screen.Options{
		Width: width, Color: colored(op.Color, env), Wide: op.Output.Format == outputWide,
		Namespace: op.AllNamespaces, Now: env.Now(),
	}
	switch {
	case op.Output.Format == outputTree:
		return screen.Tree(reports, o), nil
	case op.Group != "":
		return screen.Group(reports[0], o), nil
	case len(reports) == 0:
		return "", nil
	default:
		return screen.List(reports, o), nil
	}
}
