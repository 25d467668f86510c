// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventVolumeGrowing    = events.Normal(v1alpha1.ReasonVolumeGrowing, "Grow")
	eventVolumeCannotGrow = events.Warning(v1alpha1.ReasonVolumeCannotGrow, "Wait")
	eventVolumeLarger     = events.Warning(v1alpha1.ReasonVolumeLarger, "Refuse")
)

// volume applies the PVC of a site. An existing PVC keeps its class, and grows if its storage allows that. A volume
// that does not fit the specification is reported and stops nothing.
func (r *Reconciler) volume(ctx context.Context, s *scope.Scope, site v1alpha1.Site) error {
	want := render.DataVolume(s.In, site)
	current, err := r.apply.Current(ctx, want, false)
	if err != nil {
		return fmt.Errorf("read volume of %s: %w", site.Name, err)
	}
	have, ok := current.(*corev1.PersistentVolumeClaim)
	if !ok {
		return r.apply.Apply(ctx, s.Group, want)
	}
	want.Spec.StorageClassName, want.Spec.AccessModes = have.Spec.StorageClassName, have.Spec.AccessModes
	note, grows := r.resize(ctx, have, want)
	err = r.apply.Apply(ctx, s.Group, want)
	switch {
	case grows && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)):
		// The data is unharmed; only the growth is refused.
		note, err = cannotGrow(have, want.Spec.Resources.Requests[corev1.ResourceStorage], "the API server refuses it: "+err.Error()), nil
	case err != nil:
		return err
	}
	if note.Reason == "" {
		note = resizing(have)
	}
	note.Site = site.Name
	s.VolumeNotes = append(s.VolumeNotes, note)
	return err
}

func storage(claim *corev1.PersistentVolumeClaim) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return size.String()
}

// resize gives the wanted claim a size that may be requested. It returns true if that is more than before.
func (r *Reconciler) resize(ctx context.Context, have, want *corev1.PersistentVolumeClaim) (scope.VolumeNote, bool) {
	old, asked := have.Spec.Resources.Requests[corev1.ResourceStorage], want.Spec.Resources.Requests[corev1.ResourceStorage]
	if asked.Cmp(old) == 0 {
		return scope.VolumeNote{}, false
	}
	growing := scope.VolumeNote{
		Reason: v1alpha1.ReasonVolumeGrowing, Event: eventVolumeGrowing,
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
			Reason: v1alpha1.ReasonVolumeLarger, Event: eventVolumeLarger,
			Message: fmt.Sprintf("volume %s has %s, more than the %s that are specified, and volumes do not shrink: "+
				"set the size to %s, or move to a new site with a smaller volume", have.Name, &old, &asked, &old),
		})
	}
	if have.Status.Phase != corev1.ClaimBound {
		growing.Message += " once it is bound"
		return keep(growing)
	}
	if why := r.whyFixed(ctx, have); why != "" {
		return keep(cannotGrow(have, asked, why))
	}
	return growing, true
}

// whyFixed says why a claim cannot grow; empty if it can.
func (r *Reconciler) whyFixed(ctx context.Context, have *corev1.PersistentVolumeClaim) string {
	class := have.Spec.StorageClassName
	if class == nil || *class == "" {
		return "it has no storage class"
	}
	found := &storagev1.StorageClass{}
	// Live: storage classes are read only here, and need no cache.
	if err := r.Live.Get(ctx, client.ObjectKey{Name: *class}, found); err != nil {
		return fmt.Sprintf("its storage class cannot be read: %v", err)
	}
	if found.AllowVolumeExpansion == nil || !*found.AllowVolumeExpansion {
		return fmt.Sprintf("storage class %s does not allow it (allowVolumeExpansion)", *class)
	}
	return ""
}

func cannotGrow(have *corev1.PersistentVolumeClaim, to resource.Quantity, why string) scope.VolumeNote {
	return scope.VolumeNote{
		Reason: v1alpha1.ReasonVolumeCannotGrow, Event: eventVolumeCannotGrow,
		Message: fmt.Sprintf("volume %s has %s and cannot grow to %s: %s. Allow it in the storage class if the storage can, "+
			"or add a site with a larger volume, move the role there and remove this one", have.Name, storage(have), &to, why),
	}
}

// resizing says how far a volume is that was asked to grow.
func resizing(have *corev1.PersistentVolumeClaim) scope.VolumeNote {
	request, capacity := have.Spec.Resources.Requests[corev1.ResourceStorage], have.Status.Capacity[corev1.ResourceStorage]
	if have.Status.Phase != corev1.ClaimBound || capacity.IsZero() || capacity.Cmp(request) >= 0 {
		return scope.VolumeNote{}
	}
	state := have.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	if state == corev1.PersistentVolumeClaimControllerResizeInfeasible || state == corev1.PersistentVolumeClaimNodeResizeInfeasible {
		return scope.VolumeNote{
			Reason: v1alpha1.ReasonVolumeCannotGrow, Event: eventVolumeCannotGrow,
			Message: fmt.Sprintf("volume %s does not grow to %s: its storage says that it cannot; see the events of the claim", have.Name, &request),
		}
	}
	note := scope.VolumeNote{
		Reason: v1alpha1.ReasonVolumeGrowing, Event: eventVolumeGrowing,
		Message: fmt.Sprintf("volume %s grows to %s", have.Name, &request),
	}
	for _, c := range have.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue {
			note.Message += "; what is left is its file system, for which some storage needs the pod to start again: delete the pod of the site if it stays so"
		}
	}
	return note
}

// tellVolumes reports what earlier phases found about the volumes. It comes last: pods and data matter more.
func (r *Reconciler) tellVolumes(_ context.Context, s *scope.Scope) error {
	for _, e := range []events.Event{eventVolumeGrowing, eventVolumeCannotGrow, eventVolumeLarger} {
		for _, note := range s.VolumeNotes {
			text := ""
			if note.Event == e {
				text = "Site " + note.Site + ": " + note.Message
			}
			r.base.Say(s, note.Site, e, text)
		}
	}
	for _, note := range s.VolumeNotes {
		switch note.Reason {
		case "":
		case v1alpha1.ReasonVolumeGrowing:
			s.Progress(scope.Moving(note.Reason, "site "+note.Site+": "+note.Message), scope.WhenWaiting)
		default:
			s.Progress(scope.Stuck(note.Reason, "site "+note.Site+": "+note.Message), scope.WhenSettled)
		}
	}
	return nil
}
