// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/volumes"
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
	if s.Terminating[site.Name] = have.DeletionTimestamp != nil; s.Terminating[site.Name] {
		note := volumes.Terminating(have, s.Pods[site.Name], site.Name == s.ActiveSite())
		note.Site = site.Name
		s.VolumeNotes = append(s.VolumeNotes, note)
		return nil // nothing that is written to it lasts
	}
	want.Spec.StorageClassName, want.Spec.AccessModes = have.Spec.StorageClassName, have.Spec.AccessModes
	note, grows := volumes.Resize(ctx, r.Live, have, want)
	err = r.apply.Apply(ctx, s.Group, want)
	switch {
	case grows && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)):
		// The data is unharmed; only the growth is refused.
		note, err = volumes.CannotGrow(have, want.Spec.Resources.Requests[corev1.ResourceStorage], "the API server refuses it: "+err.Error()), nil
	case err != nil:
		return err
	}
	if note.Reason == "" {
		note = volumes.Resizing(have)
	}
	note.Site = site.Name
	s.VolumeNotes = append(s.VolumeNotes, note)
	return err
}

// tellVolumes reports what earlier phases found about the volumes. It comes last: pods and data matter more.
func (r *Reconciler) tellVolumes(_ context.Context, s *scope.Scope) error {
	for _, e := range volumes.Events() {
		for _, note := range s.VolumeNotes {
			text := ""
			if note.Event == e {
				text = "Site " + note.Site + ": " + note.Message
			}
			r.base.Say(s, note.Site, e, text)
		}
	}
	// The first is the condition. A volume that is being deleted comes before others: it keeps the group from a turn of an upgrade.
	others := func(note scope.VolumeNote) bool { return note.Reason != v1alpha1.ReasonVolumeTerminating }
	deleted := slices.DeleteFunc(slices.Clone(s.VolumeNotes), others)
	for _, note := range append(deleted, s.VolumeNotes...) {
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
