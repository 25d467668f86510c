// SPDX-License-Identifier: Apache-2.0

package cacheobjects_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cacheobjects"
	"github.com/mysql-mfg/mfg/operator/render"
)

var key = types.NamespacedName{Namespace: "shop", Name: "orders"}

// world is an API server with a group of three sites, whose cache is Valkey's.
type world struct {
	t     *testing.T
	c     client.Client
	o     *cacheobjects.Objects
	group *v1alpha1.MysqlFailoverGroup
	// done is what was applied and removed, in order.
	done []string
	// refuse fails it.
	refuse func(what string) error
	paused string
}

func newWorld(t *testing.T, there ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, group: &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u"}}}
	w.group.Spec.Sites = []v1alpha1.Site{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	w.group.Spec.Cache = &v1alpha1.CacheSpec{Enabled: true, Engine: v1alpha1.CacheValkey}
	w.c = fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).
		WithIndex(&appsv1.StatefulSet{}, v1alpha1.IndexCacheSets, func(obj client.Object) []string {
			if obj.GetLabels()[v1alpha1.LabelName] != v1alpha1.NameCache {
				return nil
			}
			return []string{obj.GetLabels()[v1alpha1.LabelGroup]}
		}).Build()
	w.o = &cacheobjects.Objects{Client: w.c, Live: w.c, Troubles: &cacheobjects.Troubles{}, Apply: w.apply, Remove: w.remove}
	return w
}

func nameOf(obj client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.") + " " + obj.GetName()
}

func (w *world) did(what string) error {
	w.done = append(w.done, what)
	if w.refuse != nil {
		return w.refuse(what)
	}
	return nil
}

// apply keeps out of what belongs to another group, as the controller's does.
func (w *world) apply(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error {
	if err := w.did("apply " + nameOf(obj)); err != nil {
		return err
	}
	have := obj.DeepCopyObject().(client.Object)
	err := w.c.Get(ctx, client.ObjectKeyFromObject(obj), have)
	if apierrors.IsNotFound(err) {
		return w.c.Create(ctx, obj.DeepCopyObject().(client.Object))
	}
	if err == nil && have.GetLabels()[v1alpha1.LabelGroup] != group.Name {
		return fmt.Errorf("%w: %s", cacheobjects.ErrForeign, have.GetLabels()[v1alpha1.LabelGroup])
	}
	if err != nil {
		return err
	}
	next := obj.DeepCopyObject().(client.Object)
	next.SetResourceVersion(have.GetResourceVersion())
	return w.c.Update(ctx, next)
}

func (w *world) remove(ctx context.Context, _ *v1alpha1.MysqlFailoverGroup, obj client.Object) error {
	if err := w.did("remove " + nameOf(obj)); err != nil {
		return err
	}
	return client.IgnoreNotFound(w.c.Delete(ctx, obj))
}

// converge looks once; what it did is in done.
func (w *world) converge() (cacheobjects.Result, error) {
	w.done = nil
	return w.o.Converge(w.t.Context(), render.Input{Group: w.group}, cacheobjects.Patience{Paused: w.paused})
}

func (w *world) must() cacheobjects.Result {
	w.t.Helper()
	out, err := w.converge()
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// run makes the pods that StatefulSets ask for, ready.
func (w *world) run(sites ...string) {
	w.t.Helper()
	for _, site := range sites {
		set := &appsv1.StatefulSet{}
		w.check(w.c.Get(w.t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: v1alpha1.CacheSiteName(key.Name, site)}, set))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: set.Name + "-0", UID: types.UID("pod-" + site),
			Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations}, Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		w.check(w.c.Create(w.t.Context(), pod))
	}
}

// master has status name the master, and its replicas linked.
func (w *world) master(site string) {
	w.t.Helper()
	w.group.Status.Cache = &v1alpha1.CacheStatus{ActiveSite: site}
	for _, s := range w.group.Spec.Sites {
		is := v1alpha1.CacheSiteStatus{Name: s.Name, Role: v1alpha1.CacheReplica, Link: "Up"}
		if s.Name == site {
			is.Role, is.Link = v1alpha1.CacheMaster, ""
		}
		w.group.Status.Cache.Sites = append(w.group.Status.Cache.Sites, is)
	}
}

func (w *world) pod(site string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	err := w.c.Get(w.t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: v1alpha1.CacheSiteName(key.Name, site) + "-0"}, pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.check(err)
	return pod
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// sets are the sites that have a StatefulSet.
func (w *world) sets() []string {
	w.t.Helper()
	var list appsv1.StatefulSetList
	w.check(w.c.List(w.t.Context(), &list, client.InNamespace(key.Namespace)))
	var out []string
	for _, s := range list.Items {
		out = append(out, s.Labels[v1alpha1.LabelSite])
	}
	slices.Sort(out)
	return out
}

func (w *world) trouble() string {
	reason, _ := w.o.Troubles.Of(key)
	return string(reason)
}

var errAway = errors.New("the API server is away")
