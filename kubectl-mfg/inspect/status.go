// SPDX-License-Identifier: Apache-2.0

// Package inspect holds the verbs that only look: status, explain, history, events and keyrings.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Status is `kubectl mfg status`.
type Status struct {
	Namespace         string
	Group             string // "" means all groups
	AllNamespaces     bool
	OperatorNamespace string
	Watch             bool
	Interval          time.Duration
	Color             string
	Output            cli.Output
}

// Validate checks only the command line.
func (op *Status) Validate() error {
	switch {
	case op.Group != "" && op.AllNamespaces:
		return errors.New("GROUP and --all-namespaces exclude each other")
	case op.Group != "" && len(validation.IsDNS1123Subdomain(op.Group)) > 0:
		return fmt.Errorf("%q cannot be the name of a group", op.Group)
	case !slices.Contains(cli.Colors, op.Color):
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	case op.OperatorNamespace == "":
		return errors.New("--operator-namespace is empty")
	case op.Watch && op.Interval < 100*time.Millisecond:
		return errors.New("--interval must be at least 100ms")
	}
	return nil
}

// Run looks and shows it.
func (op *Status) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	if op.Watch {
		return op.watch(ctx, env, c)
	}
	reports, err := op.gather(ctx, env, c)
	if err != nil {
		return cli.ExitError, err
	}
	if len(reports) == 0 {
		fmt.Fprintln(env.ErrOut, op.nothing())
	}
	drawn, err := op.draw(env, reports)
	if err != nil {
		return cli.ExitError, err
	}
	if _, err := fmt.Fprint(op.out(env), drawn); err != nil {
		return cli.ExitError, fmt.Errorf("write: %w", err)
	}
	return codeOf(reports), nil
}

// out is where the answer goes. One for programs must not be escaped: \x7f is not JSON.
func (op *Status) out(env cli.Environment) io.Writer {
	if op.forPrograms() {
		return escape.Exact(env.Out)
	}
	return env.Out
}

// forPrograms is true for the formats that programs read.
func (op *Status) forPrograms() bool {
	return op.Output.Printer != nil || op.Output.Format == cli.OutputName
}

// codeOf is degraded if any group is.
func codeOf(reports []report.MysqlFailoverGroupReport) int {
	for _, r := range reports {
		if r.Health != report.Healthy {
			return cli.ExitDegraded
		}
	}
	return cli.ExitHealthy
}

// gather reads the custom resources, then asks the operator about them. Only the first can fail.
func (op *Status) gather(ctx context.Context, env cli.Environment, c Cluster) ([]report.MysqlFailoverGroupReport, error) {
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
		view = live.Unanswered(err, op.OperatorNamespace)
	}
	view.Now = env.Now()
	reports := make([]report.MysqlFailoverGroupReport, 0, len(groups))
	for i := range groups {
		reports = append(reports, report.Build(&groups[i], view))
	}
	return reports, nil
}

func (op *Status) groups(ctx context.Context, c Cluster) ([]v1alpha1.MysqlFailoverGroup, error) {
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

func (op *Status) nothing() string {
	if op.AllNamespaces {
		return "No groups found."
	}
	return fmt.Sprintf("No groups found in namespace %s; try -A.", op.Namespace)
}

// draw makes the whole answer, so that a watch can compare and redraw it.
func (op *Status) draw(env cli.Environment, reports []report.MysqlFailoverGroupReport) (string, error) {
	var b strings.Builder
	switch {
	case op.Output.Printer != nil && op.Group != "":
		err := op.Output.Print(&b, &reports[0])
		return b.String(), err
	case op.Output.Printer != nil:
		list := report.NewList(reports)
		err := op.Output.Print(&b, &list)
		return b.String(), err
	case op.Output.Format == cli.OutputName:
		for _, r := range reports {
			fmt.Fprintln(&b, cli.GroupName(r.Metadata.Name))
		}
		return b.String(), nil
	}
	width, _ := env.Terminal()
	o := screen.Options{
		Width: width, Color: cli.Colored(op.Color, env), Wide: op.Output.Format == cli.OutputWide,
		Namespace: op.AllNamespaces, Now: env.Now(),
	}
	switch {
	case op.Output.Format == cli.OutputTree:
		return screen.Tree(reports, o), nil
	case op.Group != "":
		return screen.Group(reports[0], o), nil
	case len(reports) == 0:
		return "", nil
	default:
		return screen.List(reports, o), nil
	}
}
