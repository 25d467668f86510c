// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	reconcilers      = 4
	reconcileTimeout = time.Minute
)

// managed are the kinds that the operator makes or follows. Of these the cache holds only objects with the operator's
// label. Secrets are not among them: watching needs the right to list every Secret, so the operator reads them one by one,
// at the latest when it looks at a settled group again. It watches Secrets with keyrings if there is an escrow listener.
func managed() []client.Object {
	return []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}, &corev1.Pod{},
		&corev1.PersistentVolumeClaim{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{},
	}
}

// Cached returns the kinds that this process watches in full once it leads.
func Cached() []client.Object { return append(managed(), &batchv1.Job{}) }

// CacheByObject restricts the cache to managed objects: the operator does not need other pods, and they would cost
// memory. It is for the manager's cache options.
func CacheByObject() map[client.Object]cache.ByObject {
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator})
	out := map[client.Object]cache.ByObject{}
	for _, kind := range managed() {
		out[kind] = cache.ByObject{Label: ours}
	}
	// The Jobs of backups, which operator/backups watches.
	out[&batchv1.Job{}] = cache.ByObject{Label: ours}
	// Only watched, as metadata: no key is ever in the cache.
	out[&corev1.Secret{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelName: v1alpha1.NameKeyring,
	})}
	return out
}

// index makes the index by which this package and the poll loops find the pods, Deployments and Services of a group; without it, each
// search would go through those of all groups in the namespace.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&corev1.Pod{}, &appsv1.Deployment{}, &corev1.Service{}} {
		if err := indexer.IndexField(ctx, kind, v1alpha1.IndexGroup, indexed); err != nil {
			return err
		}
	}
	return indexer.IndexField(ctx, &appsv1.StatefulSet{}, v1alpha1.IndexCacheSets, indexedCache)
}

func indexedCache(obj client.Object) []string {
	if obj.GetLabels()[v1alpha1.LabelName] != v1alpha1.NameCache {
		return nil
	}
	return []string{obj.GetLabels()[v1alpha1.LabelGroup]}
}

func indexed(obj client.Object) []string {
	if obj.GetLabels()[v1alpha1.LabelName] != v1alpha1.NameMySQL {
		return nil
	}
	return []string{obj.GetLabels()[v1alpha1.LabelGroup]}
}

// SetupWithManager registers the controller and its long work with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.Add(r.runner); err != nil {
		return err
	}
	if err := index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index the cache: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.MysqlFailoverGroup{}, builder.WithPredicates(relevantGroup())).
		Watches(&v1alpha1.MysqlFailoverGroup{}, queueLast()).
		WatchesRawSource(source.TypedChannel(r.wakes, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				q.Add(reconcile.Request{NamespacedName: e.Object})
			},
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: reconcilers, ReconciliationTimeout: reconcileTimeout})
	for _, kind := range managed() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(groupOf))
	}
	if r.Escrow != nil {
		b = b.WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.encryption.GroupOfKeyring))
	}
	return b.Complete(r)
}

// groupOf finds the group by label and not by owner: objects that outlive the group have no owner.
func groupOf(_ context.Context, obj client.Object) []reconcile.Request {
	group := obj.GetLabels()[v1alpha1.LabelGroup]
	if group == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: group}}}
}

// states returns the state of each site.
func states(group *v1alpha1.MysqlFailoverGroup) map[string]v1alpha1.SiteState {
	out := map[string]v1alpha1.SiteState{}
	for _, site := range group.Status.Sites {
		out[site.Name] = site.State
	}
	return out
}

// sealedWith returns what a person may patch of the keyrings: the phase, and the version to roll back to.
func sealedWith(group *v1alpha1.MysqlFailoverGroup) map[string]string {
	out := map[string]string{}
	if e := group.Status.EncryptionAtRest; e != nil {
		for _, site := range e.Sites {
			out[site.Name] = string(site.Phase) + " " + site.KeyringSecret
		}
	}
	return out
}

// cacheMaster says which cache is the master, and whether that is about to change.
func cacheMaster(group *v1alpha1.MysqlFailoverGroup) string {
	c := group.Status.Cache
	if c == nil {
		return ""
	}
	links := ""
	for _, site := range c.Sites {
		links += " " + site.Name + site.Link
	}
	return fmt.Sprint(c.ActiveSite, c.Transition != nil, links)
}

// leaseOfClaim says which release operates a group.
func leaseOfClaim(group *v1alpha1.MysqlFailoverGroup) string {
	if group.Status.Claim == nil {
		return ""
	}
	return group.Status.Claim.Lease
}

// afterAll is below the priority of everything else, even of groups that existed when the operator started. New groups
// have it, and looks that only the clock asks for.
const afterAll = 2 * handler.LowPriority

// begun is true for a group that already has some of its objects.
func begun(group client.Object) bool {
	return controllerutil.ContainsFinalizer(group, v1alpha1.Finalizer)
}

// queueLast lets a new group wait until those under way were looked at: if a thousand come at once, each is ready soon
// after it was begun, instead of all waiting for the last one and being polled often meanwhile.
func queueLast() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}
		queue, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
		switch {
		case begun(e.Object):
		case ok:
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(afterAll)}, request)
		default:
			q.Add(request)
		}
	}}
}

// relevantGroup leaves out groups that have no objects yet, which queueLast queues, and most of the status that the poll loop writes all the time:
// only the active site, the states of the sites and their keyrings matter.
func relevantGroup() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return begun(e.Object) }, UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*v1alpha1.MysqlFailoverGroup)
		after, ok2 := e.ObjectNew.(*v1alpha1.MysqlFailoverGroup)
		if !ok1 || !ok2 {
			return true
		}
		return before.Generation != after.Generation ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || begun(before) != begun(after) ||
			!maps.Equal(before.Annotations, after.Annotations) ||
			!maps.Equal(states(before), states(after)) ||
			!maps.Equal(sealedWith(before), sealedWith(after)) ||
			leaseOfClaim(before) != leaseOfClaim(after) || before.Status.ActiveSite != after.Status.ActiveSite || before.Status.Epoch != after.Status.Epoch ||
			(before.Status.Transition == nil) != (after.Status.Transition == nil) || cacheMaster(before) != cacheMaster(after)
	}}
}
