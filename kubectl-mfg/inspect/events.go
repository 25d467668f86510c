// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Events is `kubectl mfg events`.
type Events struct {
	Namespace string
	Group     string
	Watch     bool
	Since     time.Duration
	Warnings  bool
	Output    cli.Output
}

// Validate checks only the command line.
func (op *Events) Validate() error {
	switch {
	case op.Since < 0:
		return errors.New("--since is above 0")
	case op.Watch && op.Output.Printer != nil:
		return errors.New("--watch and --output exclude each other")
	}
	return nil
}

// Run looks and shows it.
func (op *Events) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	told := map[string]bool{}
	for first := true; ; first = false {
		all, err := op.Gather(ctx, env, c)
		switch {
		case interrupted(ctx): // the normal end of a watch
			return cli.ExitHealthy, nil
		case err != nil && first:
			return cli.ExitError, err
		case err != nil:
			fmt.Fprintf(env.ErrOut, "warning: %v (trying again)\n", err)
		}
		if op.Output.Printer != nil {
			list := report.EventList{APIVersion: report.APIVersion, Kind: report.EventListKind, Items: all}
			return cli.ExitHealthy, op.Output.Print(env.Out, &list)
		}
		op.show(env, all, told, first)
		if !op.Watch || !env.Wait(ctx, time.Second) {
			return cli.ExitHealthy, nil
		}
	}
}

func (op *Events) show(env cli.Environment, all []report.Event, told map[string]bool, first bool) {
	var fresh []report.Event
	for _, e := range all {
		if key := fmt.Sprint(e); !told[key] {
			told[key] = true
			fresh = append(fresh, e)
		}
	}
	if len(fresh) == 0 && first {
		fmt.Fprintln(env.ErrOut, op.nothing())
	}
	width, _ := env.Terminal()
	fmt.Fprint(env.Out, screen.Events(fresh, screen.Options{Width: width, Color: cli.Colored(cli.ColorAuto, env), Now: env.Now()}, first))
}

// nothing says what was searched for: there may well be older events, and others than warnings.
func (op *Events) nothing() string {
	what := "events"
	if op.Warnings {
		what = "warnings"
	}
	if op.Since > 0 {
		return fmt.Sprintf("No %s in the last %s.", what, duration.HumanDuration(op.Since))
	}
	return fmt.Sprintf("No %s are kept.", what)
}

// Gather reads the events of a group and of its parts, the oldest first.
func (op *Events) Gather(ctx context.Context, env cli.Environment, c Cluster) ([]report.Event, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return nil, err
	}
	others, _ := c.Groups(ctx, op.Namespace) // without the right to list them, only the name tells what is ours
	ours := op.Belongs(g, others)
	list, err := c.Kube().CoreV1().Events(op.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, cli.RightsHint(err, "list", "events", op.Namespace)
	}
	out := []report.Event{}
	for _, e := range list.Items {
		seen := report.EventOf(e)
		old := op.Since > 0 && env.Now().Sub(seen.Time) > op.Since
		if old || op.Warnings && e.Type != corev1.EventTypeWarning || !ours(e.InvolvedObject) {
			continue
		}
		out = append(out, seen)
	}
	slices.SortStableFunc(out, func(a, b report.Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Reason, b.Reason))
	})
	return out, nil
}

// Belongs tells whether an object is the group or one of its parts. Patterns tell the names of parts that are gone: mysql-GROUP-SITE,
// GROUP-cache-SITE and what Kubernetes adds. The longest such name of any group counts: mysql-orders-eu-paris-x is no part of the site eu of
// orders where there is a group orders-eu with a site paris.
func (op *Events) Belongs(g *v1alpha1.MysqlFailoverGroup, others []v1alpha1.MysqlFailoverGroup) func(corev1.ObjectReference) bool {
	names := func(g *v1alpha1.MysqlFailoverGroup) (parts []string) {
		for _, s := range g.Spec.Sites {
			parts = append(parts, v1alpha1.SiteName(g.Name, s.Name))
			if g.Spec.Cache != nil { // also of one that is off by now
				parts = append(parts, v1alpha1.CacheSiteName(g.Name, s.Name))
			}
		}
		return parts
	}
	longest := func(parts []string, name string) (n int) {
		for _, part := range parts {
			if name == part || strings.HasPrefix(name, part+"-") {
				n = max(n, len(part))
			}
		}
		return n
	}
	mine := names(g)
	var theirs []string
	for i := range others {
		if others[i].Name != g.Name {
			theirs = append(theirs, names(&others[i])...)
		}
	}
	return func(o corev1.ObjectReference) bool {
		if o.Kind == "MysqlFailoverGroup" {
			return o.Name == op.Group
		}
		n := longest(mine, o.Name)
		return n > 0 && n >= longest(theirs, o.Name)
	}
}
