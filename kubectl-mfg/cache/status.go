// SPDX-License-Identifier: Apache-2.0

// Package cache shows the cache store of a group, requests a move of its master, and opens a client in one of its pods.
package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Status is `kubectl mfg cache status`.
type Status struct {
	Namespace         string
	Group             string
	OperatorNamespace string
	Color             string
	Output            cli.Output
}

// Validate checks only the command line.
func (op *Status) Validate() error {
	if !slices.Contains(cli.Colors, op.Color) {
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	}
	return nil
}

// Run looks and shows it. The operator tells which site would take over; the custom resource has the rest.
func (op *Status) Run(ctx context.Context, env cli.Environment, c request.Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	view := report.LiveView{}
	if view.Status, err = c.Live(ctx, op.OperatorNamespace, op.Namespace, op.Group); err != nil {
		if ctx.Err() != nil {
			return cli.ExitError, ctx.Err()
		}
		view = live.Unanswered(err, op.OperatorNamespace)
	}
	rep := report.BuildCache(g, view)
	if rep == nil {
		return cli.ExitError, off(op.Group)
	}
	code := cli.ExitHealthy
	if ready := rep.Cache.Ready; ready == nil || !*ready {
		code = cli.ExitDegraded
	}
	if op.Output.Printer != nil {
		return code, op.Output.Print(env.Out, rep)
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.CacheReport(*rep, screen.Options{Width: width, Color: cli.Colored(op.Color, env), Now: env.Now()}))
	return code, nil
}

// off says that a group has no cache store.
func off(group string) error {
	return fmt.Errorf("%s has no cache store (spec.cache.enabled is not true)", group)
}

// isOn is true for a group with a cache store.
func isOn(g *v1alpha1.MysqlFailoverGroup) bool { return g.Spec.Cache != nil && g.Spec.Cache.Enabled }
