// SPDX-License-Identifier: Apache-2.0

// Package apply makes objects of a group be as they are wished, and takes them away, without touching what belongs to others.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

var (
	// ErrForeign means that an object with a name that the group needs belongs to somebody else. It is left alone.
	ErrForeign = errors.New("belongs to somebody else")
	// ErrLeftOver means that an object of an earlier group of the same name is still being collected.
	ErrLeftOver = errors.New("is left over from an earlier group of this name and is being removed")
)

// NeedsAPerson is true for an error that goes on until a person settles it: the object is somebody else's, or the API server refuses what is
// written.
func NeedsAPerson(err error) bool {
	return errors.Is(err, ErrForeign) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// Applier applies objects by server-side apply, and only when something differs: reconciles come often, and each apply
// costs the API server a merge.
type Applier struct {
	client client.Client
	live   client.Reader
	// Restored is told of an object that somebody else had changed.
	Restored func(*v1alpha1.MysqlFailoverGroup, client.Object)

	mu   sync.Mutex
	done map[types.NamespacedName]map[string]applied
}

// applied is what was applied last, and the version of the object that it led to.
type applied struct {
	sum     [sha256.Size]byte
	version string
}

// NewApplier makes an Applier that has applied nothing yet.
func NewApplier(c client.Client, live client.Reader) *Applier {
	return &Applier{client: c, live: live, Restored: func(*v1alpha1.MysqlFailoverGroup, client.Object) {}, done: map[types.NamespacedName]map[string]applied{}}
}

// Forget drops what is kept about a group that is gone.
func (a *Applier) Forget(group types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.done, group)
}

// Groups is how many groups something was applied of.
func (a *Applier) Groups() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.done)
}

// Apply makes an object of the group be as given, in the fields that are given.
func (a *Applier) Apply(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error {
	// Whether somebody prepared it must be known for sure: an apply that does not know it takes ownership.
	known := !mayBePrepared(obj) && a.last(client.ObjectKeyFromObject(group), nameOf(obj)).version != ""
	current, err := a.Current(ctx, obj, known)
	if err != nil {
		return fmt.Errorf("read %s: %w", nameOf(obj), err)
	}
	return a.ApplyOver(ctx, group, obj, current)
}

// ApplyOver applies an object over the one in place, which may be nil.
func (a *Applier) ApplyOver(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj, current client.Object) error {
	name := nameOf(obj)
	config, err := configuration(obj)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	found := current != nil && IsPrepared(current)
	if found {
		config.SetOwnerReferences(nil) // the garbage collector would delete it
	}
	body, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	sum := sha256.Sum256(body)
	last := a.last(client.ObjectKeyFromObject(group), name)
	if current != nil {
		if last == (applied{sum: sum, version: current.GetResourceVersion()}) {
			return nil
		}
		if err := Belongs(group, obj, current); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if found {
		// First: with our labels and without the mark it would count as the group's own.
		if err := a.mark(ctx, config, current); err != nil {
			return fmt.Errorf("mark %s as prepared: %w", name, err)
		}
	}
	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config),
		client.FieldOwner(v1alpha1.ManagerController), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply %s: %w", name, err)
	}
	now := config.GetResourceVersion()
	a.remember(client.ObjectKeyFromObject(group), name, applied{sum: sum, version: now})
	if last.sum == sum && last.version != now && (current == nil || current.GetResourceVersion() != now) {
		a.Restored(group, obj)
	}
	return nil
}

func nameOf(obj client.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + obj.GetName()
}

// Current is the object in place, or nil. The cache holds only what carries our labels; whether somebody else's object
// is in the way is asked live, once.
func (a *Applier) Current(ctx context.Context, obj client.Object, known bool) (client.Object, error) {
	into, ok := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("impossible type %T", obj)
	}
	into.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	err := a.client.Get(ctx, client.ObjectKeyFromObject(obj), into)
	if apierrors.IsNotFound(err) && !known {
		err = a.live.Get(ctx, client.ObjectKeyFromObject(obj), into)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return into, nil
}

// Belongs checks that the object in place is the group's own, or nobody's and of a kind that may be prepared for it.
func Belongs(group *v1alpha1.MysqlFailoverGroup, obj, current client.Object) error {
	labels := current.GetLabels()
	if owner := metav1.GetControllerOf(current); owner != nil && owner.UID != group.UID {
		if owner.Kind == "MysqlFailoverGroup" && owner.Name == group.Name {
			return ErrLeftOver
		}
		return fmt.Errorf("%w: its controller is %s %s", ErrForeign, owner.Kind, owner.Name)
	}
	if other := labels[v1alpha1.LabelGroup]; other != "" && other != group.Name {
		return fmt.Errorf("%w: it is labelled as part of group %s", ErrForeign, other)
	}
	if site := labels[v1alpha1.LabelSite]; site != "" && site != obj.GetLabels()[v1alpha1.LabelSite] {
		return fmt.Errorf("%w: it is labelled as part of site %s", ErrForeign, site)
	}
	if labels[v1alpha1.LabelGroup] == "" {
		if owner := metav1.GetControllerOf(current); owner != nil {
			return nil // the group's own, from which somebody took the labels: they come back
		}
		// A volume that somebody prepared, from a snapshot for example, is welcome. So is a certificate.
		if mayBePrepared(current) {
			return nil
		}
		return fmt.Errorf("%w: it has no label %s; rename or delete it", ErrForeign, v1alpha1.LabelGroup)
	}
	return nil
}

func mayBePrepared(obj client.Object) bool {
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim, *corev1.Secret:
		return true
	}
	return false
}

// IsPrepared is true for a volume or a Secret that the group found and did not make. People who may edit groups choose the names, so it may
// belong to another application: the group uses it, does not own it and never deletes it. What the group made and somebody took the labels
// of counts as prepared too, unless the group controls it: nobody can tell, and what stays can still be deleted.
func IsPrepared(obj client.Object) bool {
	unclaimed := obj.GetLabels()[v1alpha1.LabelGroup] == "" && metav1.GetControllerOf(obj) == nil
	return mayBePrepared(obj) && (unclaimed || obj.GetAnnotations()[v1alpha1.AnnotationPrepared] != "")
}

// Prepared is true if the object in place was prepared.
func (a *Applier) Prepared(ctx context.Context, obj client.Object) (bool, error) {
	current, err := a.Current(ctx, obj, true)
	return current != nil && IsPrepared(current), err
}

// mark has an object say that it was prepared. The mark has a field manager of its own: an apply takes away what its own manager said before
// and does not say again, and an older operator does not say it.
func (a *Applier) mark(ctx context.Context, config *unstructured.Unstructured, current client.Object) error {
	mark := &unstructured.Unstructured{}
	mark.SetGroupVersionKind(config.GroupVersionKind())
	mark.SetNamespace(current.GetNamespace())
	mark.SetName(current.GetName())
	mark.SetUID(current.GetUID()) // one that is gone is not made again
	mark.SetAnnotations(map[string]string{v1alpha1.AnnotationPrepared: "true"})
	return a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(mark), client.FieldOwner(v1alpha1.ManagerPrepared), client.ForceOwnership)
}

// configuration turns an object into what is applied: only fields that were set. Zero values of the API types that would
// encode as null, and status, are left out.
func configuration(obj client.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy(), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	dropNulls(content)
	return &unstructured.Unstructured{Object: content}, nil
}

func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if item == nil {
				delete(v, key)
				continue
			}
			dropNulls(item)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}

func (a *Applier) last(group types.NamespacedName, name string) applied {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done[group][name]
}

func (a *Applier) remember(group types.NamespacedName, name string, what applied) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done[group] == nil {
		a.done[group] = map[string]applied{}
	}
	a.done[group][name] = what
}

// Remove deletes an object if it is the group's, exactly the one that was looked at.
func (a *Applier) Remove(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, obj client.Object) error {
	current, err := a.Current(ctx, obj, true)
	if err != nil || current == nil || current.GetDeletionTimestamp() != nil {
		return err
	}
	if !deletable(group, obj, current) {
		return nil
	}
	uid := current.GetUID()
	return client.IgnoreNotFound(a.client.Delete(ctx, current, client.Preconditions{UID: &uid}))
}

// deletable is true only for an object that is certainly the group's own, and was made for it.
func deletable(group *v1alpha1.MysqlFailoverGroup, obj, current client.Object) bool {
	return Belongs(group, obj, current) == nil && current.GetLabels()[v1alpha1.LabelGroup] == group.Name && !IsPrepared(current)
}
