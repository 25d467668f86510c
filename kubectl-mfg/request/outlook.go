// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/live"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// Outlook is what is known of a group before a request.
type Outlook struct {
	Group       *v1alpha1.MysqlFailoverGroup
	Report      report.MysqlFailoverGroupReport
	Explanation *wire.Explanation
	// Down is why it is certain that no operator looks after groups now; empty if it is not certain.
	Down string
}

// Look refuses if no operator would carry out the request.
func (r *Request) Look(ctx context.Context, c Cluster) (Outlook, error) {
	view, err := r.See(ctx, c)
	if err == nil && view.Down != "" {
		return Outlook{}, cli.Refused("refused: %s: it would not be carried out now, but unexpectedly later\n  see why: kubectl get pods -n %s -l %s",
			view.Down, r.OperatorNamespace, live.Selector)
	}
	return view, err
}

// See looks at a group, whether an operator runs or not.
func (r *Request) See(ctx context.Context, c Cluster) (Outlook, error) {
	g, err := c.Group(ctx, r.Namespace, r.Group)
	if err != nil {
		return Outlook{}, err
	}
	list, err := c.Explain(ctx, r.OperatorNamespace, r.Namespace, r.Group)
	if ctx.Err() != nil {
		return Outlook{}, ctx.Err()
	}
	view, e := live.View(list, err, r.OperatorNamespace)
	seen := Outlook{Group: g, Report: report.Build(g, view), Explanation: e}
	if view.Down {
		seen.Down = view.Missing
	}
	return seen, nil
}

// Site returns what is known of a site of the group.
func (o Outlook) Site(name string) (report.Site, bool) {
	for _, s := range o.Report.Sites {
		if s.Name == name {
			return s, true
		}
	}
	return report.Site{}, false
}

// Candidate returns what the operator says of a site that should become active.
func (o Outlook) Candidate(name string) (wire.ExplainedCandidate, bool) {
	if o.Explanation == nil {
		return wire.ExplainedCandidate{}, false
	}
	for _, c := range o.Explanation.Candidates {
		if c.Site == name {
			return c, true
		}
	}
	return wire.ExplainedCandidate{}, false
}

// RoleOf returns the role of a site of the group.
func RoleOf(g *v1alpha1.MysqlFailoverGroup, site string) (v1alpha1.SiteRole, bool) {
	for _, s := range g.Spec.Sites {
		if s.Name == site {
			return s.Role, true
		}
	}
	return "", false
}

// SiteNames lists the sites of a group for people.
func SiteNames(g *v1alpha1.MysqlFailoverGroup) string {
	names := make([]string, 0, len(g.Spec.Sites))
	for _, s := range g.Spec.Sites {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// NextStep returns, in words, what the operator says that a person can do about a planned failover that did not happen. An older
// operator says nothing: then it is the command that explains every rule.
func NextStep(namespace, group string, remedies []wire.Remedy) string {
	if len(remedies) == 0 {
		remedies = []wire.Remedy{{Text: "see every rule", Command: fmt.Sprintf("kubectl mfg explain %s -n %s", group, namespace)}}
	}
	return wire.InWords(remedies)
}

// Unheard says that no operator hears a request yet, and where to look.
func (r *Request) Unheard(view Outlook) string {
	return fmt.Sprintf("%s (see why: kubectl get pods -n %s -l %s)", view.Down, r.OperatorNamespace, live.Selector)
}

// Clock prefers the operator's clock, by which the pause ends, then the API server's; this machine's may be wrong by hours.
func (r *Request) Clock(ctx context.Context, env cli.Environment, c Cluster) (now time.Time, whose string) {
	if list, err := c.Live(ctx, r.OperatorNamespace, r.Namespace, r.Group); err == nil && !list.IssuedAt.IsZero() {
		return list.IssuedAt, "the operator's clock"
	}
	if at, _, err := c.Clock(ctx); err == nil {
		return at, "the API server's clock"
	}
	return env.Now(), "this machine's clock"
}

// PausedNow says whether, and until when, a group is paused.
func PausedNow(g *v1alpha1.MysqlFailoverGroup) string {
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) {
		return "paused until " + g.Annotations[v1alpha1.AnnotationPauseUntil]
	}
	if until, is := g.Annotations[v1alpha1.AnnotationPauseUntil]; is {
		return "a pause until " + until + " is asked for, and no operator says that it holds"
	}
	return "not paused"
}
