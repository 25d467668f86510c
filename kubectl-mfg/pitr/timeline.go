// SPDX-License-Identifier: Apache-2.0

package pitr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Common is what the verbs share.
type Common struct {
	Access
	Namespace, Group string
	Output           cli.Output
	Color            string
}

// Validate checks only the command line.
func (op *Common) Validate() error {
	if !slices.Contains(cli.Colors, op.Color) {
		return fmt.Errorf("--color must be one of %s", strings.Join(cli.Colors, ", "))
	}
	return op.Access.Validate()
}

// options says how to draw for people.
func (op *Common) options(env cli.Environment) screen.Options {
	width, _ := env.Terminal()
	return screen.Options{Width: width, Color: cli.Colored(op.Color, env), Wide: op.Output.Format == cli.OutputWide, Now: env.Now()}
}

// Timeline is `kubectl mfg backup timeline`.
type Timeline struct{ Common }

// Run shows what can be recovered.
func (op *Timeline) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return cli.ExitError, err
	}
	place, profile, err := archiveOf(g, false)
	if err != nil {
		return cli.ExitError, err
	}
	r, err := Look(ctx, c, place, op.Access, wire.AskTimeline{})
	if err != nil {
		return cli.ExitError, err
	}
	r.Profile = profile.Name
	code := cli.ExitHealthy
	if r.NeedsAttention() {
		code = cli.ExitDegraded
	}
	if op.Output.Printer != nil {
		return code, printed(op.Output, env, r)
	}
	fmt.Fprint(env.Out, screen.Timeline(r, op.options(env)))
	return code, nil
}

// Look reads a timeline, and with a target whether that can be recovered.
func Look(ctx context.Context, c Cluster, place Place, access Access, ask wire.AskTimeline) (*report.Timeline, error) {
	namespace := place.FromNamespace
	if namespace == "" {
		namespace = place.Namespace
	}
	known, err := c.Backups(ctx, namespace, place.Group)
	if err != nil {
		known = nil // the storage is the truth; only the verifications are then unknown
	}
	r := report.NewTimeline(namespace, place.Group, "", known)
	told := false
	end, err := Ask(ctx, c, place, access, wire.InspectRequest{Timeline: &ask}, func(l wire.InspectLine) error {
		if l.Timeline != nil {
			r.Archive, told = *l.Timeline, true
		}
		if l.Check != nil {
			r.Check = l.Check
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case !told || ask.Target != nil && r.Check == nil:
		return nil, errors.New("the answer has no timeline: is the image of the version of this plugin?")
	}
	r.Truncated = end.Truncated
	return r, nil
}
