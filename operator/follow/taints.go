// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// taintAttempts is how often a node is read again when somebody else changed it at the same time.
const taintAttempts = 3

// followTaints puts the group's taint on the nodes of the sites that are not active and takes it off all others. A node
// that the active site shares with another site is fit.
func (r *Follow) followTaints(ctx context.Context, s *scope.Scope) (conditions.Condition, error) {
	want := unfitNodes(s)
	var nodes corev1.NodeList
	// The nodes in the cache are shared: retaint copies the one that it changes.
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return conditions.Condition{}, fmt.Errorf("list nodes: %w", err)
	}
	var failures []error
	var tainted []string
	for i := range nodes.Items {
		node := &nodes.Items[i]
		site, unfit := want[node.Name]
		if err := r.retaint(ctx, s.Group, node, site); err != nil {
			failures = append(failures, err)
		} else if unfit {
			tainted = append(tainted, fmt.Sprintf("%s (%s)", node.Name, site))
		}
	}
	if len(failures) > 0 {
		return conditions.Condition{}, taintError(s.Group, errors.Join(failures...))
	}
	message := fmt.Sprintf("no node is tainted: the only sites with a node are on that of the active site %s", s.ActiveSite())
	if len(tainted) > 0 {
		slices.Sort(tainted)
		message = fmt.Sprintf("%s=<site>:%s is on %s; %s is active", v1alpha1.InactiveSiteTaint(s.Key.Namespace, s.Key.Name),
			v1alpha1.InactiveSiteEffect, strings.Join(tainted, ", "), s.ActiveSite())
	}
	return conditions.True(v1alpha1.ConditionTaintsReady, v1alpha1.ReasonAsExpected, message), nil
}

// unfitNodes are the nodes that must carry the taint, with the site that it names.
func unfitNodes(s *scope.Scope) map[string]string {
	known := map[string]string{}
	for _, site := range s.Group.Status.Sites {
		known[site.Name] = site.Node
	}
	for name, pod := range s.Pods {
		if pod.Spec.NodeName != "" {
			known[name] = pod.Spec.NodeName
		}
	}
	out := map[string]string{}
	for _, name := range scope.Sorted(s.Sites()) {
		// Of several sites on a node it names the first, always the same.
		if node := known[name]; node != "" && out[node] == "" && node != known[s.ActiveSite()] {
			out[node] = name
		}
	}
	return out
}

// clearTaints takes the group's taint off all nodes.
func (r *Follow) clearTaints(ctx context.Context, s *scope.Scope) error {
	return r.untaint(ctx, s.Group)
}

// untaint takes the group's taint off all nodes. It reads them live: a taint that the cache does not show yet would
// stay for ever.
func (r *Follow) untaint(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) error {
	var nodes corev1.NodeList
	if err := r.Live.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	var failures []error
	for i := range nodes.Items {
		if err := r.retaint(ctx, group, &nodes.Items[i], ""); err != nil {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return taintError(group, errors.Join(failures...))
	}
	return nil
}

// LetGoOfNodes takes the taints of a group off that is being deleted. Without the right to do it the group must go all
// the same: the taint only asks the scheduler, and the event says how to remove it.
func (r *Follow) LetGoOfNodes(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) error {
	if meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionTaintsReady) == nil {
		return nil
	}
	err := r.untaint(ctx, group)
	if refusedForGood(err) {
		r.Recorder.Emit(group, nil, eventTaintsFailed, "The taint stays on the nodes, because the operator may not change them. "+
			"To remove it: kubectl taint nodes --all %s-", v1alpha1.InactiveSiteTaint(group.Namespace, group.Name))
		return nil
	}
	return err
}

// refusedForGood is true if the API server, or an admission webhook, said no, and would say so again: a webhook that names
// no code denies with 400.
func refusedForGood(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// retaint makes a node carry the group's taint for a site, or not carry it if site is empty. Taints of others stay as
// they are: the list is replaced as a whole, so the patch fails if anybody else changed the node meanwhile.
func (r *Follow) retaint(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, node *corev1.Node, site string) error {
	var err error
	for attempt := range taintAttempts {
		if attempt > 0 {
			fresh := &corev1.Node{}
			if err := r.Live.Get(ctx, client.ObjectKeyFromObject(node), fresh); err != nil {
				// A node that is gone carries no taint.
				return client.IgnoreNotFound(err)
			}
			node = fresh
		}
		taints, changed := withTaint(node.Spec.Taints, v1alpha1.InactiveSiteTaint(group.Namespace, group.Name), site)
		if !changed {
			return nil
		}
		after := node.DeepCopy()
		after.Spec.Taints = taints
		patch := client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
		err = r.Client.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.ManagerController))
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("taint node %s: %w", node.Name, err)
	}
	return nil
}

// withTaint returns taints with exactly one of a key, for a site, or with none if site is empty.
func withTaint(taints []corev1.Taint, key, site string) (out []corev1.Taint, changed bool) {
	there := false
	for _, t := range taints {
		switch {
		case t.Key != key:
			out = append(out, t)
		case site != "" && t.Value == site && t.Effect == v1alpha1.InactiveSiteEffect && !there:
			there = true
			out = append(out, t)
		default:
			changed = true
		}
	}
	if site == "" || there {
		return out, changed
	}
	return append(out, corev1.Taint{Key: key, Value: site, Effect: v1alpha1.InactiveSiteEffect}), true
}

// taintError says what to do where the right to change nodes is missing, which it is unless the chart was told to give
// it.
func taintError(group *v1alpha1.MysqlFailoverGroup, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return hindrance{reason: v1alpha1.ReasonForbidden, cause: err, message: fmt.Sprintf(
		"the operator may not change nodes: install its chart with nodeTaints.enabled=true, or set spec.taints.enabled=false "+
			"and remove what is left with kubectl taint nodes --all %s-: %v", v1alpha1.InactiveSiteTaint(group.Namespace, group.Name), err)}
}
