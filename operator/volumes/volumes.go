// SPDX-License-Identifier: Apache-2.0

// Package volumes says how the data volumes of sites differ from the specification, and what may be asked of them. It changes nothing.
package volumes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventGrowing     = events.Normal(v1alpha1.ReasonVolumeGrowing, "Grow")
	eventCannotGrow  = events.Warning(v1alpha1.ReasonVolumeCannotGrow, "Wait")
	eventLarger      = events.Warning(v1alpha1.ReasonVolumeLarger, "Refuse")
	eventTerminating = events.Warning(v1alpha1.ReasonVolumeTerminating, "Wait")
)

// Events are what there is to say of a volume.
func Events() []events.Event {
	return []events.Event{eventGrowing, eventCannotGrow, eventLarger, eventTerminating}
}

// Terminating is the note on a claim that is being deleted, while a pod of the site uses it: Kubernetes keeps the volume as long, and nobody can
// take the deletion back.
func Terminating(have *corev1.PersistentVolumeClaim, pod *corev1.Pod, active bool) scope.VolumeNote {
	if pod == nil || pod.DeletionTimestamp != nil {
		return scope.VolumeNote{} // the claim goes now, and the operator makes another one
	}
	first := "To give the site a new volume with the data of the active site: "
	if active {
		first = "Move the role to another site (kubectl mfg failover). Then, to give this site a new volume with the data: "
	}
	return scope.VolumeNote{
		Reason: v1alpha1.ReasonVolumeTerminating, Event: eventTerminating,
		Message: fmt.Sprintf("somebody deleted the volume claim %s: the data of the site is gone as soon as its pod ends. %skubectl delete pod %s -n %s",
			have.Name, first, pod.Name, pod.Namespace),
	}
}

func storage(claim *corev1.PersistentVolumeClaim) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return size.String()
}

// Resize gives the wanted claim a size that may be requested. It returns true if that is more than before. Live reads storage classes: they are
// read only here, and need no cache.
func Resize(ctx context.Context, live client.Reader, have, want *corev1.PersistentVolumeClaim) (scope.VolumeNote, bool) {
	old, asked := have.Spec.Resources.Requests[corev1.ResourceStorage], want.Spec.Resources.Requests[corev1.ResourceStorage]
	if asked.Cmp(old) == 0 {
		return scope.VolumeNote{}, false
	}
	growing := scope.VolumeNote{
		Reason: v1alpha1.ReasonVolumeGrowing, Event: eventGrowing,
		Message: fmt.Sprintf("volume %s grows to %s", have.Name, &asked),
	}
	keep := func(note scope.VolumeNote) (scope.VolumeNote, bool) {
		want.Spec.Resources.Requests[corev1.ResourceStorage] = old
		return note, false
	}
	if capacity := have.Status.Capacity[corev1.ResourceStorage]; asked.Cmp(old) < 0 && !capacity.IsZero() && asked.Cmp(capacity) > 0 {
		// It was asked to grow and has not yet: a mistake can be undone as long as the volume is not larger than the wanted size.
		return growing, true
	}
	if asked.Cmp(old) < 0 {
		return keep(scope.VolumeNote{
			Reason: v1alpha1.ReasonVolumeLarger, Event: eventLarger,
			Message: fmt.Sprintf("volume %s has %s, more than the %s that are specified, and volumes do not shrink: "+
				"set the size to %s, or move to a new site with a smaller volume", have.Name, &old, &asked, &old),
		})
	}
	if have.Status.Phase != corev1.ClaimBound {
		growing.Message += " once it is bound"
		return keep(growing)
	}
	if why := whyFixed(ctx, live, have); why != "" {
		return keep(CannotGrow(have, asked, why))
	}
	return growing, true
}

// whyFixed says why a claim cannot grow; empty if it can.
func whyFixed(ctx context.Context, live client.Reader, have *corev1.PersistentVolumeClaim) string {
	class := have.Spec.StorageClassName
	if class == nil || *class == "" {
		return "it has no storage class"
	}
	found := &storagev1.StorageClass{}
	if err := live.Get(ctx, client.ObjectKey{Name: *class}, found); err != nil {
		return fmt.Sprintf("its storage class cannot be read: %v", err)
	}
	if found.AllowVolumeExpansion == nil || !*found.AllowVolumeExpansion {
		return fmt.Sprintf("storage class %s does not allow it (allowVolumeExpansion)", *class)
	}
	return ""
}

// CannotGrow is the note on a claim that should be larger.
func CannotGrow(have *corev1.PersistentVolumeClaim, to resource.Quantity, why string) scope.VolumeNote {
	return scope.VolumeNote{
		Reason: v1alpha1.ReasonVolumeCannotGrow, Event: eventCannotGrow,
		Message: fmt.Sprintf("volume %s has %s and cannot grow to %s: %s. Allow it in the storage class if the storage can, "+
			"or add a site with a larger volume, move the role there and remove this one", have.Name, storage(have), &to, why),
	}
}

// Resizing says how far a volume is that was asked to grow.
func Resizing(have *corev1.PersistentVolumeClaim) scope.VolumeNote {
	request, capacity := have.Spec.Resources.Requests[corev1.ResourceStorage], have.Status.Capacity[corev1.ResourceStorage]
	if have.Status.Phase != corev1.ClaimBound || capacity.IsZero() || capacity.Cmp(request) >= 0 {
		return scope.VolumeNote{}
	}
	state := have.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	if state == corev1.PersistentVolumeClaimControllerResizeInfeasible || state == corev1.PersistentVolumeClaimNodeResizeInfeasible {
		return scope.VolumeNote{
			Reason: v1alpha1.ReasonVolumeCannotGrow, Event: eventCannotGrow,
			Message: fmt.Sprintf("volume %s does not grow to %s: its storage says that it cannot; see the events of the claim", have.Name, &request),
		}
	}
	note := scope.VolumeNote{
		Reason: v1alpha1.ReasonVolumeGrowing, Event: eventGrowing,
		Message: fmt.Sprintf("volume %s grows to %s", have.Name, &request),
	}
	for _, c := range have.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue {
			note.Message += "; what is left is its file system, for which some storage needs the pod to start again: delete the pod of the site if it stays so"
		}
	}
	return note
}
