// SPDX-License-Identifier: Apache-2.0

// Package restart asks the operator to replace the pods of a group, in the safe order of its updates.
package restart

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
	"github.com/mysql-mfg/mfg/kubectl-mfg/screen"
)

// Cluster is what the verb needs of the cluster.
type Cluster interface {
	request.Cluster
	Kube() kubernetes.Interface
}

// Op is `kubectl mfg restart`: of all pods of MySQL of a group, or with Site of one.
type Op struct {
	request.Request
	Site string
}

// lookEvery is how often the command looks at the pods that it waits for.
const lookEvery = time.Second

// Run asks for it and follows the pods.
func (op *Op) Run(ctx context.Context, env cli.Environment, c Cluster) (int, error) {
	view, err := op.Look(ctx, c)
	if err != nil {
		return cli.ExitError, err
	}
	if err := op.allowed(view.Group); err != nil {
		return cli.ExitError, err
	}
	plan, title := op.plan(view.Group), fmt.Sprintf("Restart %s (namespace %s)", op.Group, op.Namespace)
	if op.Site != "" {
		title = fmt.Sprintf("Restart %s of %s (namespace %s)", op.Site, op.Group, op.Namespace)
	}
	op.ShowPlan(env, title, plan)
	if err := op.Confirm(ctx, env, "Restart?"); err != nil {
		return cli.ExitError, err
	}
	now, _ := op.Clock(ctx, env, c)
	at := op.after(view.Group, now)
	change := map[string]string{v1alpha1.AnnotationRestartedAt: at}
	if op.Site != "" {
		change = map[string]string{v1alpha1.RestartedAtSite(op.Site): at}
	}
	rep := op.Report("restart", plan, change)
	rep.Site = op.Site
	allowed := func(g *v1alpha1.MysqlFailoverGroup) error {
		// This order would replace a later one, and the person who gave that would wait until the timeout.
		if op.after(g, now) != at {
			return cli.Refused("refused: another restart of %s was ordered meanwhile\n  see how far it is: kubectl mfg status %s -n %s", op.Group, op.Group, op.Namespace)
		}
		return op.allowed(g)
	}
	if _, err := op.Submit(ctx, env, c, change, allowed); err != nil {
		return cli.ExitError, err
	}
	if op.DryRun != request.DryRunNone {
		return cli.ExitHealthy, op.DryRunDone(env, rep)
	}
	rep.Requested("asked for", fmt.Sprintf("kubectl mfg status %s -n %s -w", op.Group, op.Namespace))
	if op.Wait {
		if err := op.follow(ctx, env, c, at); err != nil {
			return cli.ExitError, err
		}
		rep.Outcome, rep.Message = cli.OutcomeDone, "done: "+op.what(view.Group)+" has a new pod"
	}
	return op.Finish(env, rep)
}

// after returns the time of the order. It is later than every earlier one: the pods carry the latest, and an order that is not later replaces none.
func (op *Op) after(g *v1alpha1.MysqlFailoverGroup, now time.Time) string {
	now = now.UTC().Truncate(time.Second)
	for _, site := range g.Spec.Sites {
		before, err := time.Parse(time.RFC3339, v1alpha1.RestartedAt(g, site.Name))
		if (op.Site == "" || op.Site == site.Name) && err == nil && !now.After(before) {
			now = before.Add(time.Second)
		}
	}
	return now.Format(time.RFC3339)
}

func (op *Op) what(g *v1alpha1.MysqlFailoverGroup) string {
	switch stays := op.stays(g); {
	case op.Site != "":
		return op.Site
	case stays != "":
		return "every site but " + stays
	}
	return "every site"
}

// stays returns the site whose pod is not replaced, because the operator moves no role; empty normally.
func (op *Op) stays(g *v1alpha1.MysqlFailoverGroup) string {
	if op.Site == "" && g.Spec.Failover.Mode == v1alpha1.FailoverObserve {
		return g.Status.ActiveSite
	}
	return ""
}

// allowed refuses what would not happen, or not as intended.
func (op *Op) allowed(g *v1alpha1.MysqlFailoverGroup) error {
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionPaused) {
		return cli.Refused("refused: %s is paused, and no pod is replaced before that ends\n  end it: kubectl mfg resume %s -n %s", g.Name, g.Name, g.Namespace)
	}
	if op.Site == "" {
		return request.NotMoving(g)
	}
	if _, known := request.RoleOf(g, op.Site); !known {
		return cli.Refused("refused: %s has no site %q; its sites are %s", g.Name, op.Site, request.SiteNames(g))
	}
	if op.Site == g.Status.ActiveSite {
		return cli.Refused("refused: %s is the active site, and would have to give its role away first\n  move it: kubectl mfg failover %s -n %s --to SITE\n  or restart all sites, in the safe order: kubectl mfg restart %s -n %s",
			op.Site, g.Name, g.Namespace, g.Name, g.Namespace)
	}
	return request.NotMoving(g)
}

func (op *Op) plan(g *v1alpha1.MysqlFailoverGroup) []screen.Line {
	if op.Site != "" {
		return []screen.Line{
			{Label: "Replaces", Text: "the pod of " + op.Site + ", once every other site does its part"},
			{Label: "Meanwhile", Text: fmt.Sprintf("%s stays active; %s serves no reads and takes no role until it is back", cli.OrNoSite(g.Status.ActiveSite), op.Site)},
		}
	}
	last := screen.Line{Label: "Last", Text: fmt.Sprintf("the role moves away from %s by a planned failover, and its pod is replaced", cli.OrNoSite(g.Status.ActiveSite))}
	if op.stays(g) != "" {
		last.Text = fmt.Sprintf("the pod of %s stays: spec.failover.mode is Observe, and the role does not move", cli.OrNoSite(g.Status.ActiveSite))
	}
	return []screen.Line{
		{Label: "Replaces", Text: "the pods of MySQL of all sites, one at a time; each must be back before the next"},
		{Label: "First", Text: "the sites that are not active, those that are never promoted before the others"},
		last,
		{Label: "Clients", Text: "lose their sessions once, when the role moves; writes pause for some seconds"},
	}
}

// follow says how far it is until every pod is a new one and the operator has nothing left to do.
func (op *Op) follow(ctx context.Context, env cli.Environment, c Cluster, at string) error {
	began, looked, said := env.Now(), time.Time{}, ""
	_, err := op.Follow(ctx, env, c, func(g *v1alpha1.MysqlFailoverGroup) bool {
		if now := env.Now(); now.Sub(looked) < lookEvery {
			return false
		}
		looked = env.Now()
		list, err := c.Kube().CoreV1().Pods(op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pods.Selector(op.Group, op.Site)})
		words, done := "the pods cannot be listed: "+fmt.Sprint(err), false
		if err == nil {
			words, done = op.progress(g, list.Items, at)
		}
		if words != said {
			said = words
			fmt.Fprintf(env.ErrOut, "%6.1fs  %s\n", env.Now().Sub(began).Seconds(), words)
		}
		return done
	})
	return err
}

// progress says how far it is, with what the operator says of it.
func (op *Op) progress(g *v1alpha1.MysqlFailoverGroup, all []corev1.Pod, at string) (words string, done bool) {
	var left []string
	stays := op.stays(g)
	for _, site := range g.Spec.Sites {
		if (op.Site == "" || op.Site == site.Name) && site.Name != stays && !restarted(all, site.Name, at) {
			left = append(left, site.Name)
		}
	}
	words = op.what(g) + " has a new pod"
	if len(left) > 0 {
		words = "still to be replaced: " + strings.Join(left, ", ")
	}
	p := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionProgressing)
	settled := p == nil || p.Reason == string(v1alpha1.ReasonAsExpected) || stays != "" && p.Reason == string(v1alpha1.ReasonRoleStays)
	if !settled {
		words += "; " + p.Message
	}
	return words, len(left) == 0 && settled && g.Status.Transition == nil
}

// restarted is true if a site has a pod of this order that is ready.
func restarted(all []corev1.Pod, site, at string) bool {
	for _, p := range all {
		if p.Labels[v1alpha1.LabelSite] != site || p.DeletionTimestamp != nil || p.Annotations[v1alpha1.AnnotationRestartedAt] < at {
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}
