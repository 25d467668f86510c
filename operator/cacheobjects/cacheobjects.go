// SPDX-License-Identifier: Apache-2.0

// Package cacheobjects makes, updates and removes the objects of a group's cache store. Who of the pods is the master and takes the
// traffic it leaves to operator/cache. Nothing that is wrong here keeps MySQL's objects from being looked after: it comes last, and what it
// has to say it returns.
package cacheobjects

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cacheobjects/turn"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/render"
)

// Objects converges the cache objects of groups.
type Objects struct {
	// Client reads from the operator's cache and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Limits limits.Limits
	// Apply and Remove are the controller's: they touch only what is the group's own.
	Apply  func(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error
	Remove func(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error
	// Troubles are told of what keeps the cache from working.
	Troubles *Troubles
}

// Refusal is what the specification asks for in vain.
type Refusal struct {
	Reason  v1alpha1.Reason
	Message string
}

// Result is what there is to say.
type Result struct {
	// Refused are told with the condition SpecRefused.
	Refused []Refusal
	// Reason and Message are what is under way, or stuck; empty if nothing is.
	Reason  v1alpha1.Reason
	Message string
	Stuck   bool
	// Asked is the site whose master is asked to leave by this look, and Replaced the one whose pod was deleted.
	Asked, Replaced string
	// Again is when to look again; 0 if only something that happens needs it.
	Again time.Duration
}

const (
	whenMoving  = 2 * time.Second
	whenWaiting = 10 * time.Second
)

// Patience says why pods stay as they are for now.
type Patience struct {
	// Paused is until when a person keeps pods from being replaced; empty if nobody does.
	Paused string
	// Held says whether the pod of a site, which has one template where another is wanted, waits for the group's turn in an upgrade of the
	// operator. It is asked of every pod; nil holds none.
	Held func(site, has, want string) bool
}

// Converge makes the cache objects of a group be as the specification says. An error means that it is to be tried again.
func (o *Objects) Converge(ctx context.Context, in render.Input, wait Patience) (Result, error) {
	key := client.ObjectKeyFromObject(in.Group)
	have, err := o.look(ctx, key)
	if err != nil {
		return Result{}, err
	}
	if !render.CacheEnabled(in.Group) {
		o.Troubles.Forget(key)
		return Result{}, o.removeAll(ctx, in, have)
	}
	var out Result
	if ignored := render.CacheIgnored(in.Group.Spec.Cache); len(ignored) > 0 {
		out.Refused = append(out.Refused, Refusal{v1alpha1.ReasonSettingsRefused,
			"spec.cache.config has settings that are not passed on: " + strings.Join(ignored, ", ") + "; remove them"})
	}
	trouble, err := o.converge(ctx, in, have, &out)
	if err != nil {
		return out, err
	}
	if trouble == (Trouble{}) {
		trouble, err = o.checkTLS(ctx, in)
	}
	o.Troubles.set(key, trouble)
	if err == nil {
		err = o.removeSites(ctx, in, have)
	}
	if err == nil {
		err = o.replace(ctx, in, have, wait, &out)
	}
	return out, err
}

// converge applies everything but pods. What a person has to settle comes back as a trouble.
func (o *Objects) converge(ctx context.Context, in render.Input, have objects, out *Result) (Trouble, error) {
	if trouble, err := o.password(ctx, in); err != nil || trouble != (Trouble{}) {
		if trouble != (Trouble{}) {
			out.stuck(trouble)
		}
		return trouble, err
	}
	images, allowed, err := o.images(ctx, in, have, out)
	if err == nil && allowed {
		allowed, err = o.apart(ctx, in.Group, out)
	}
	if err != nil {
		return Trouble{}, err
	}
	wanted := []client.Object{render.CacheService(in), render.CacheConfigMap(in)}
	for _, site := range in.Group.Spec.Sites {
		wanted = append(wanted, render.CacheSiteService(in, site), render.CacheDisruptionBudget(in, site))
		if volume := render.CacheVolume(in, site); volume != nil {
			wanted = append(wanted, volume)
		}
		if images[site.Name] == "" {
			continue
		}
		set := withImage(in, site, images[site.Name])
		have.want[site.Name] = set.Annotations[v1alpha1.AnnotationSpecHash]
		if allowed || have.sets[site.Name] != nil {
			wanted = append(wanted, set)
		}
	}
	return o.applyAll(ctx, in, wanted, out)
}

func (o *Objects) applyAll(ctx context.Context, in render.Input, wanted []client.Object, out *Result) (Trouble, error) {
	for _, obj := range wanted {
		err := o.Apply(ctx, in.Group, obj)
		if err == nil {
			continue
		}
		if why := Settle(err); why != "" {
			trouble := Trouble{why, err.Error()}
			out.stuck(trouble)
			return trouble, nil
		}
		return Trouble{}, fmt.Errorf("apply %s: %w", obj.GetName(), err)
	}
	return Trouble{}, nil
}

func (r *Result) stuck(t Trouble) {
	r.Reason, r.Message, r.Stuck, r.Again = t.Reason, t.Message, true, whenWaiting
}

// objects are the StatefulSets and pods that there are, by site, and the template that each should have.
type objects struct {
	sets map[string]*appsv1.StatefulSet
	pods map[string]*corev1.Pod
	want map[string]string
}

func (o *Objects) look(ctx context.Context, key types.NamespacedName) (objects, error) {
	out := objects{sets: map[string]*appsv1.StatefulSet{}, pods: map[string]*corev1.Pod{}, want: map[string]string{}}
	var sets appsv1.StatefulSetList
	err := o.Client.List(ctx, &sets, client.InNamespace(key.Namespace), client.MatchingFields{v1alpha1.IndexCacheSets: key.Name})
	if err != nil {
		return out, fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		site := set.Labels[v1alpha1.LabelSite]
		out.sets[site] = set
		pod := &corev1.Pod{}
		err := o.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: set.Name + "-0"}, pod)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("read the cache pod of %s: %w", site, err)
		}
		out.pods[site] = pod
	}
	return out, nil
}

// removeSites removes the caches of sites that left the specification. The master's stays until it has moved: the loop moves it away from a
// site that is gone.
func (o *Objects) removeSites(ctx context.Context, in render.Input, have objects) error {
	listed := map[string]bool{}
	for _, site := range in.Group.Spec.Sites {
		listed[site.Name] = true
	}
	for site := range have.sets {
		if listed[site] || holds(in.Group, site) && len(have.sets) > 1 {
			continue
		}
		if err := o.removeSite(ctx, in, site); err != nil {
			return err
		}
	}
	return nil
}

// holds is true for the site of the master, and for both ends while it moves.
func holds(group *v1alpha1.MysqlFailoverGroup, site string) bool {
	status := group.Status.Cache
	if status == nil {
		return false
	}
	return status.ActiveSite == site || status.Transition != nil && (status.Transition.From == site || status.Transition.To == site)
}

// removeAll removes a cache that was turned off. The Service for applications goes first, so that no one begins to use what goes away. The
// StatefulSets go last: without them, and with no word of a cache in the group, nobody would look for what is left.
func (o *Objects) removeAll(ctx context.Context, in render.Input, have objects) error {
	if len(have.sets) == 0 && in.Group.Spec.Cache == nil && in.Group.Status.Cache == nil {
		return nil
	}
	in.Group = in.Group.DeepCopy()
	if in.Group.Spec.Cache == nil {
		in.Group.Spec.Cache = &v1alpha1.CacheSpec{}
	}
	if err := o.remove(ctx, in.Group, render.CacheService(in)); err != nil {
		return err
	}
	sites := map[string]bool{}
	for _, site := range in.Group.Spec.Sites {
		sites[site.Name] = true
	}
	for site := range have.sets {
		sites[site] = true
	}
	var objects, last []client.Object
	for site := range sites {
		around, set := ofSite(in, site)
		objects, last = append(objects, around...), append(last, set)
	}
	objects = append(objects, render.CacheConfigMap(in), render.CacheSecret(in, "", ""))
	return o.removeInTurn(ctx, in.Group, append(objects, last...))
}

// removeSite removes what one site's cache has. The StatefulSet goes last: it is how the site is found.
func (o *Objects) removeSite(ctx context.Context, in render.Input, name string) error {
	around, set := ofSite(in, name)
	return o.removeInTurn(ctx, in.Group, append(around, set))
}

// ofSite is what one site's cache has: the StatefulSet, and what is around it.
func ofSite(in render.Input, name string) (around []client.Object, set client.Object) {
	site := v1alpha1.Site{Name: name}
	with := in
	with.Group = in.Group.DeepCopy()
	with.Group.Spec.Cache.Storage = &v1alpha1.CacheStorage{}
	volume := render.CacheVolume(with, site)
	return []client.Object{render.CacheSiteService(in, site), render.CacheDisruptionBudget(in, site), volume}, render.CacheStatefulSet(in, site)
}

// removeInTurn removes objects in their order, and ends at the first that cannot be removed.
func (o *Objects) removeInTurn(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, objects []client.Object) error {
	for _, obj := range objects {
		if err := o.remove(ctx, group, obj); err != nil {
			return err
		}
	}
	return nil
}

func (o *Objects) remove(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error {
	if err := o.Remove(ctx, group, obj); err != nil {
		return fmt.Errorf("remove %s: %w", obj.GetName(), err)
	}
	return nil
}

// replace replaces at most one pod, or asks the master to leave.
func (o *Objects) replace(ctx context.Context, in render.Input, have objects, wait Patience, out *Result) error {
	if out.Stuck {
		return nil
	}
	d := turn.Next(group(in, have, wait))
	for _, site := range in.Group.Spec.Sites {
		if pod := have.pods[site.Name]; pod != nil {
			asked, err := o.leave(ctx, pod, d.Leave == site.Name)
			if err != nil {
				return err
			}
			if asked {
				out.Asked = site.Name
			}
		}
	}
	if d.Reason != "" {
		out.Reason, out.Message, out.Again = d.Reason, d.Message, whenMoving
	}
	if d.Reason == v1alpha1.ReasonPaused {
		out.Stuck, out.Again = true, whenWaiting
	}
	if d.Replace == "" {
		return nil
	}
	pod := have.pods[d.Replace]
	err := o.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	if apierrors.IsConflict(err) {
		return nil // it changed since it was read: it may have got the traffic. The next look decides
	}
	out.Replaced = d.Replace
	return client.IgnoreNotFound(err)
}

// leavingForUpdate is what the master's pod says that is to be replaced.
const leavingForUpdate = "Update"

// leave sets or takes away the annotation with which the loop is asked to move the master. It leaves one of another cause alone.
func (o *Objects) leave(ctx context.Context, pod *corev1.Pod, wanted bool) (asked bool, err error) {
	now := pod.Annotations[v1alpha1.AnnotationCacheLeaving]
	// Of another cause the master leaves, too; to write over it would have it stay once the update is done.
	if now != "" && now != leavingForUpdate || wanted == (now == leavingForUpdate) {
		return false, nil
	}
	patch := pod.DeepCopy()
	if patch.Annotations == nil {
		patch.Annotations = map[string]string{}
	}
	patch.Annotations[v1alpha1.AnnotationCacheLeaving] = leavingForUpdate
	if !wanted {
		delete(patch.Annotations, v1alpha1.AnnotationCacheLeaving)
	}
	err = o.Client.Patch(ctx, patch, client.MergeFrom(pod), client.FieldOwner(v1alpha1.ManagerController))
	return wanted && err == nil, client.IgnoreNotFound(err)
}

// group collects what the decision stands on.
func group(in render.Input, have objects, wait Patience) turn.Group {
	g := turn.Group{Paused: wait.Paused}
	sites := map[string]v1alpha1.CacheSiteStatus{}
	if status := in.Group.Status.Cache; status != nil {
		g.Master = status.ActiveSite
		if t := status.Transition; t != nil {
			g.Moving, g.To = true, t.To
		}
		for _, site := range status.Sites {
			sites[site.Name] = site
		}
	}
	if c := meta.FindStatusCondition(in.Group.Status.Conditions, v1alpha1.ConditionCacheReady); c != nil {
		g.Full = c.Status == metav1.ConditionFalse && c.Reason == string(v1alpha1.ReasonCacheFull)
	}
	for _, site := range in.Group.Spec.Sites {
		if have.sets[site.Name] == nil && have.pods[site.Name] == nil {
			continue
		}
		p := turn.Pod{Site: site.Name}
		if pod := have.pods[site.Name]; pod != nil {
			p.Exists, p.Going = true, pod.DeletionTimestamp != nil
			p.Ready, p.Role, p.Linked = ready(pod), sites[site.Name].Role, sites[site.Name].Link == "Up"
			has, want := pod.Annotations[v1alpha1.AnnotationSpecHash], have.want[site.Name]
			held := wait.Held != nil && wait.Held(site.Name, has, want) && p.Ready // one that does not work may need just this version
			p.Current = (has == want || held) && pod.Annotations[v1alpha1.AnnotationCacheStale] == ""
			p.Traffic = pod.Labels[v1alpha1.LabelCacheTraffic] == v1alpha1.CacheTrafficOn
		}
		g.Pods = append(g.Pods, p)
	}
	return g
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
