// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventGroupDataKept    = events.Warning(v1alpha1.ReasonGroupDataKept, "Retain")
	eventGroupDataRemoved = events.Normal(v1alpha1.ReasonGroupDataRemoved, "Delete")
)

// addFinalizer makes sure that the group does not go before it has released what must outlive it.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope.Scope) error {
	return r.setFinalizer(ctx, s.Group, controllerutil.AddFinalizer)
}

func (r *Reconciler) setFinalizer(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, set func(client.Object, string) bool) error {
	before := group.DeepCopy()
	if !set(group, v1alpha1.Finalizer) {
		return nil
	}
	// The optimistic lock keeps finalizers that others added meanwhile.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return r.Client.Patch(ctx, group, patch, client.FieldOwner(v1alpha1.ManagerController))
}

// finalize ends the work and the loop of a group that is being deleted, and deletes or keeps its data as the deletion policy says.
// The garbage collector ends the pods with the group. It returns when to look again, if it must wait for something.
func (r *Reconciler) finalize(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (time.Duration, error) {
	key := scope.KeyOf(group)
	if !controllerutil.ContainsFinalizer(group, v1alpha1.Finalizer) {
		r.forget(key)
		return 0, nil
	}
	r.Work.Forget(key)
	keeps, err := r.encryption.KeepsKeyrings(ctx, group)
	if err != nil {
		return 0, err
	}
	if !keeps {
		r.Loops.Forget(key)
	}
	if err := r.follow.LetGoOfNodes(ctx, group); err != nil {
		return 0, err
	}
	data, err := r.letGo(ctx, group)
	if err != nil {
		return 0, err
	}
	if keeps {
		// Only after letGo: in a foreground deletion the garbage collector does not wait.
		if waits, err := r.encryption.AwaitEscrow(ctx, group); err != nil || waits {
			return scope.WhenMoving, err
		}
		r.Loops.Forget(key)
		// Data that a person brought back meanwhile belongs to the group too.
		if data, err = r.letGo(ctx, group); err != nil {
			return 0, err
		}
	}
	// Only now: the pods that are waited for speak with the passwords and keys in the group's own Secrets.
	if err := r.deleteOwn(ctx, group, data); err != nil {
		return 0, err
	}
	// No owner can be in another namespace, so the operator deletes the key. A new group of the same name gets another key, and new pods too.
	if err := r.Keys.Delete(ctx, group.UID); err != nil {
		return 0, err
	}
	if err := r.setFinalizer(ctx, group, controllerutil.RemoveFinalizer); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	r.farewell(ctx, group, data)
	r.forget(key)
	return 0, nil
}

// letGo removes the group from the owners of what stays, and returns all of its data. What only has the labels of the group, or was prepared
// for it, is not its data: it stays, and with a volume what it was encrypted with.
func (r *Reconciler) letGo(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) ([]client.Object, error) {
	data, err := r.data(ctx, group)
	if err != nil {
		return nil, err
	}
	own, stays := split(group, data)
	if scope.Keeps(group) {
		stays = append(stays, own...)
	}
	for _, obj := range stays {
		if err := apply.Orphan(ctx, r.Client, group, obj); err != nil {
			return nil, fmt.Errorf("let go of %s: %w", obj.GetName(), err)
		}
	}
	return data, nil
}

// deleteOwn deletes the group's own data, unless it stays.
func (r *Reconciler) deleteOwn(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, data []client.Object) error {
	if scope.Keeps(group) {
		return nil
	}
	own, _ := split(group, data)
	for _, obj := range own {
		uid := obj.GetUID()
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, obj, client.Preconditions{UID: &uid})); err != nil {
			return fmt.Errorf("delete %s: %w", obj.GetName(), err)
		}
	}
	return nil
}

// data returns the volumes and generated Secrets of a group, read live: what is missed here is wrongly deleted or orphaned.
func (r *Reconciler) data(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) ([]client.Object, error) {
	var out []client.Object
	var volumes corev1.PersistentVolumeClaimList
	err := r.Live.List(ctx, &volumes, client.InNamespace(group.Namespace), client.MatchingLabels(render.GroupLabels(group.Name)))
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	for i := range volumes.Items {
		out = append(out, &volumes.Items[i])
	}
	names := []string{v1alpha1.AccountsSecret(group.Name), v1alpha1.RootSecret(group.Name)}
	if group.Spec.Application != nil {
		names = append(names, v1alpha1.ApplicationSecret(group.Name))
	}
	for _, name := range names {
		secret := &corev1.Secret{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read secret %s: %w", name, err)
		}
		if errors.Is(apply.Belongs(group, &corev1.Secret{}, secret), apply.ErrForeign) {
			continue // it has a name that the group wants, but the group never owned it: making and deleting a group must not delete another's Secret
		}
		out = append(out, secret)
	}
	made, err := r.made.Made(ctx, group)
	if err != nil {
		return nil, err
	}
	for _, secret := range made {
		out = append(out, secret)
	}
	keyrings, err := r.encryption.KeyringData(ctx, group)
	if err != nil {
		return nil, err
	}
	return append(out, keyrings...), nil
}

// split tells the group's own data from what always stays: what others have there, and the keyrings without which a prepared volume cannot be
// read.
func split(group *v1alpha1.MysqlFailoverGroup, data []client.Object) (own, others []client.Object) {
	needed := map[string]bool{}
	for _, obj := range data {
		if _, is := obj.(*corev1.PersistentVolumeClaim); is && apply.IsPrepared(obj) && !scope.Keeps(group) {
			needed[obj.GetLabels()[v1alpha1.LabelSite]] = true
		}
	}
	for _, obj := range data {
		if isOthers(group, obj) || isKeyring(obj) && needed[obj.GetLabels()[v1alpha1.LabelSite]] {
			others = append(others, obj)
		} else {
			own = append(own, obj)
		}
	}
	return own, others
}

// isOthers is true for what was prepared for the group, and for a volume with its labels that it never uses: one of another name, such as a copy
// that a person made of a site's volume, or one whose controller is somebody else.
func isOthers(group *v1alpha1.MysqlFailoverGroup, obj client.Object) bool {
	volume, is := obj.(*corev1.PersistentVolumeClaim)
	return apply.IsPrepared(obj) || is && (volume.Name != v1alpha1.DataVolumeName(group.Name, volume.Labels[v1alpha1.LabelSite]) ||
		errors.Is(apply.Belongs(group, volume, volume), apply.ErrForeign))
}

// farewell says what stays, and how to remove it.
func (r *Reconciler) farewell(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, data []client.Object) {
	ownData, othersData := split(group, data)
	names, others := named(ownData), named(othersData)
	left := ""
	if len(others) > 0 {
		left = ". What it used and is not its own stays: " + strings.Join(others, " ")
	}
	logger := log.FromContext(ctx)
	if !scope.Keeps(group) {
		r.Recorder.Emit(group, nil, eventGroupDataRemoved, "Deleted with the group: %s%s", strings.Join(names, " "), left)
		logger.Info("deleted group with its data", "objects", names, "others", others)
		return
	}
	command := ""
	if len(names) > 0 {
		command = fmt.Sprintf("kubectl -n %s delete %s", group.Namespace, strings.Join(names, " "))
	}
	if slices.ContainsFunc(ownData, isKeyring) {
		// The chart's admission policy protects keyrings in escrow from anyone who does not first label them for deletion.
		command = fmt.Sprintf("kubectl -n %s label secret -l %s,%s=%s %s=true && %s", group.Namespace, v1alpha1.LabelKeyringVersion,
			v1alpha1.LabelGroup, group.Name, v1alpha1.LabelAllowDeletion, command)
	}
	toRemove := ""
	if command != "" {
		toRemove = ". To remove it for good: " + command
	}
	r.Recorder.Emit(group, nil, eventGroupDataKept,
		"The data stays, and a new group of the same name would continue with it%s%s", toRemove, left)
	logger.Info("deleted group, its data stays", "objects", names, "others", others, "remove", command)
}

// named are objects as kubectl takes them.
func named(data []client.Object) []string {
	var out []string
	for _, obj := range data {
		kind := "secret"
		if _, ok := obj.(*corev1.PersistentVolumeClaim); ok {
			kind = "pvc"
		}
		out = append(out, kind+"/"+obj.GetName())
	}
	return out
}

func isKeyring(obj client.Object) bool { return obj.GetLabels()[v1alpha1.LabelKeyringVersion] != "" }
