// SPDX-License-Identifier: Apache-2.0

package restoring

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// Loading is true while a backup is loaded onto a site, which may take hours: a new pod would begin again. It is false once the load has
// failed, and once its pod goes.
func Loading(s *scope.Scope, site string) bool {
	return s.RestorePending && s.RestoreSite == site && s.Restore != nil && s.Restore.Phase == v1alpha1.RestoreLoading
}

// SameOrder is true if two Deployments of a site load the same, as far as they tell: then nothing is gained by a load that begins again.
func SameOrder(a, b *appsv1.Deployment) bool {
	return sameNote(a.Annotations[v1alpha1.AnnotationRestores], b.Annotations[v1alpha1.AnnotationRestores])
}

// sameNote is true, too, if one of them tells nothing.
func sameNote(one, other string) bool { return one == other || one == "" || other == "" }

// isOtherOrder is true if the Deployment of a site notes another order than the specification's. Its pod may be current, and load what was
// ordered before: the phases before the roll-out see it so.
func isOtherOrder(s *scope.Scope, site string) bool {
	d := s.Deployments[site]
	return d != nil && !sameNote(d.Annotations[v1alpha1.AnnotationRestores], noteOf(input(s.Group, site)))
}

// noteOrder notes on a Deployment what its pod loads: the cache keeps no templates. Only what people ask for is part of it, so that another
// version of the operator makes no other order.
func noteOrder(d *appsv1.Deployment, in *render.Restore) {
	if in == nil || d.Labels[v1alpha1.LabelSite] != in.Site {
		return
	}
	if note := noteOf(in); note != "" {
		d.Annotations[v1alpha1.AnnotationRestores] = note
	}
}

// noteOf tells orders apart; empty if there is none.
func noteOf(in *render.Restore) string {
	raw, err := json.Marshal(in)
	if err != nil || in == nil {
		return "" // one without a note counts as the same order
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
