// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// eventsOp is `kubectl mfg events`.
type eventsOp struct {
	Namespace string
	Group     string
	Watch     bool
	Since     time.Duration
	Warnings  bool
	Output    output
}

func (a *app) eventsCommand() *cobra.Command {
	op := eventsOp{}
	cmd := &cobra.Command{
		Use:   "events GROUP",
		Short: "Show what was said of a group, its pods and volumes, the oldest first",
		Long: `Show the events of a group together with those of its pods, Deployments and volumes, in the order in which they
happened. Kubernetes keeps events for an hour by default; kubectl mfg history goes back further.

` + exitCodes,
		Example: `  # What happened in the last ten minutes, and what happens now
  kubectl mfg events orders --since 10m -w

  # Only what is wrong
  kubectl mfg events orders --warnings`,
		Args:              exactly("GROUP"),
		ValidArgsFunction: a.completeGroup,
	}
	cmd.Flags().BoolVarP(&op.Watch, "watch", "w", false, "Keep showing new ones, until interrupted.")
	cmd.Flags().DurationVar(&op.Since, "since", 0, "Show only those that are not older. Default: all that are kept.")
	cmd.Flags().BoolVar(&op.Warnings, "warnings", false, "Show only warnings.")
	out := addOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if op.Output, err = out(); err != nil {
			return err
		}
		if op.Group, err = groupArgument(args[0]); err != nil {
			return err
		}
		if op.Namespace, err = a.namespace(); err != nil {
			return err
		}
		return a.perform(cmd.Context(), &op)
	}
	return cmd
}

func (op *eventsOp) validate() error {
	switch {
	case op.Since < 0:
		return errors.New("--since is above 0")
	case op.Watch && op.Output.printer != nil:
		return errors.New("--watch and --output exclude each other")
	}
	return nil
}

func (op *eventsOp) run(ctx context.Context, env Environment, c Cluster) (int, error) {
	told := map[string]bool{}
	for first := true; ; first = false {
		all, err := op.gather(ctx, env, c)
		switch {
		case interrupted(ctx): // how a watch ends well
			return exitHealthy, nil
		case err != nil && first:
			return exitError, err
		case err != nil:
			fmt.Fprintf(env.ErrOut, "warning: %v (trying again)\n", err)
		}
		if op.Output.printer != nil {
			list := report.EventList{APIVersion: report.APIVersion, Kind: report.EventListKind, Items: all}
			return exitHealthy, op.Output.print(env.Out, &list)
		}
		op.show(env, all, told, first)
		if !op.Watch || !env.Wait(ctx, time.Second) {
			return exitHealthy, nil
		}
	}
}

func (op *eventsOp) show(env Environment, all []report.Event, told map[string]bool, first bool) {
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
	fmt.Fprint(env.Out, screen.Events(fresh, screen.Options{Width: width, Color: colored(colorAuto, env), Now: env.Now()}, first))
}

// nothing says what was looked for: older events may well be kept, and others than warnings.
func (op *eventsOp) nothing() string {
	what := "events"
	if op.Warnings {
		what = "warnings"
	}
	if op.Since > 0 {
		return fmt.Sprintf("No %s in the last %s.", what, duration.HumanDuration(op.Since))
	}
	return fmt.Sprintf("No %s are kept.", what)
}

func (op *eventsOp) gather(ctx context.Context, env Environment, c Cluster) ([]report.Event, error) {
	g, err := c.Group(ctx, op.Namespace, op.Group)
	if err != nil {
		return nil, err
	}
	others, _ := c.Groups(ctx, op.Namespace) // without the right to list them, what is ours is guessed by the name alone
	ours := op.belongs(g, others)
	list, err := c.Kube().CoreV1().Events(op.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, rightsHint(err, "list", "events", op.Namespace)
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

// belongs tells whether an object is the group or one of its parts. Names of what is gone by now are known by their
// pattern: mysql-GROUP-SITE and what Kubernetes adds. The longest such name of any group counts: mysql-orders-eu-paris-x is no
// part of the site eu of orders where there is a group orders-eu with a site paris.
func (op *eventsOp) belongs(g *v1alpha1.MysqlFailoverGroup, others []v1alpha1.MysqlFailoverGroup) func(corev1.ObjectReference) bool {
	names := func(g *v1alpha1.MysqlFailoverGroup) (parts []string) {
		for _, s := range g.Spec.Sites {
			parts = append(parts, v1alpha1.SiteName(g.Name, s.Name))
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

// podSelector finds the pods of a group, or of one site.
func podSelector(group, site string) string {
	set := labels.Set{v1alpha1.LabelGroup: group, v1alpha1.LabelName: v1alpha1.NameMySQL}
	if site != "" {
		set[v1alpha1.LabelSite] = site
	}
	return set.String()
}

// rightsHint adds to a refusal how to see what one may do.
func rightsHint(err error, verb, kind, namespace string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w\n  see what you may do: kubectl auth can-i %s %s -n %s", err, verb, kind, namespace)
	}
	return fmt.Errorf("ask the API server: %w", err)
}
