// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// I17: the version that a site is sealed with is never pruned, whoever says so: not by an old status, not while a
// Deployment or a pod still refers to it.
func TestPruneNeverTakesWhatIsInUse(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelGroup: testGroup, v1alpha1.LabelSite: "paris"}
	template := func(secret string, projected bool) corev1.PodSpec {
		v := corev1.Volume{Name: "keyring"}
		if projected {
			v.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}},
			}}}
		} else {
			v.Secret = &corev1.SecretVolumeSource{SecretName: secret}
		}
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data"}, v}}
	}
	const second, third = "mysql-orders-paris-keyring-v2", "mysql-orders-paris-keyring-v3"
	tests := map[string]struct {
		reason string
		also   []client.Object
		status string
		name   string
		want   error
		gone   bool
	}{
		"Superseded": {reason: "nobody needs it", name: second, gone: true},
		"Newest":     {reason: "its number would be given again", name: third, want: ErrInUse},
		"Sealed":     {reason: "status names it", status: second, name: second, want: ErrInUse},
		"Deployment": {reason: "a pod would not start", name: second, want: ErrInUse, also: []client.Object{&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mysql-orders-paris"},
			Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: template(second, false)}},
		}}},
		"Pod": {reason: "a pod that is seeded from it or sealed with it", name: second, want: ErrInUse, also: []client.Object{
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: labels}, Spec: template(second, true)},
		}},
		"PodOfAnother": {reason: "other Secrets do not count", name: second, gone: true, also: []client.Object{
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: labels}, Spec: template(third, false)},
		}},
		"Gone": {reason: "it is pruned already", name: "mysql-orders-paris-keyring-v1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.also, version("paris", 2, one("02")), version("paris", 3, one("03")))...)
			w.status("paris", func(s *v1alpha1.SiteKeyringStatus) { s.KeyringSecret = tc.status })
			// w.group is what was read before the status changed.
			if err := w.store.Prune(t.Context(), w.group, "paris", tc.name); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, err, tc.want)
			}
			if there := slices.Contains(w.names(), second); there == tc.gone {
				t.Errorf("%s: v2 is there: %v", tc.reason, there)
			}
		})
	}
}

// I17: what was looked at is what is deleted: a person may restore another keyring under its name meanwhile.
func TestPruneDeletesOnlyWhatItLookedAtI17(t *testing.T) {
	second := version("paris", 2, one("02"))
	second.UID = "looked at"
	w := newWorld(t, second, version("paris", 3, one("03")))
	w.replace(second.Name)
	if err := w.store.Prune(t.Context(), w.group, "paris", second.Name); !apierrors.IsConflict(err) {
		t.Errorf("I17: %v", err)
	}
	if s := w.secret(second.Name); s.UID != "made anew" {
		t.Errorf("I17: %+v", s.ObjectMeta)
	}
}
