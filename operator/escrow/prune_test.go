// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
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
	withToken := func(spec corev1.PodSpec) corev1.PodSpec {
		sources := &spec.Volumes[1].Projected.Sources
		*sources = append([]corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}, *sources...)
		return spec
	}
	const second, third = "mysql-orders-paris-keyring-v2", "mysql-orders-paris-keyring-v3"
	tests := map[string]struct {
		reason string
		also   []client.Object
		status string
		// version and seed are the numbers in status.
		version, seed int64
		name          string
		want          error
		gone          bool
	}{
		"Superseded":      {reason: "nobody needs it", name: second, gone: true},
		"Newest":          {reason: "its number would be given again", name: third, want: ErrInUse},
		"Sealed":          {reason: "status names it", status: second, name: second, want: ErrInUse},
		"RolledBack":      {reason: "the site can be rolled forward to it", version: 1, name: second, want: ErrInUse},
		"OlderThanSealed": {reason: "it is superseded", version: 3, name: second, gone: true},
		"Seed":            {reason: "a pod that is about to be made starts from it", version: 3, seed: 2, name: second, want: ErrInUse},
		"SeedOfAnother":   {reason: "the site is unsealed from another", version: 3, seed: 1, name: second, gone: true},
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
		"Projected": {reason: "other Secrets do not count, nor what is no Secret", name: second, gone: true, also: []client.Object{
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: labels}, Spec: withToken(template(third, true))},
		}},
		"Gone": {reason: "it is pruned already", name: "mysql-orders-paris-keyring-v1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.also, version("paris", 2, one("02")), version("paris", 3, one("03")))...)
			w.status("paris", func(s *v1alpha1.SiteKeyringStatus) {
				s.KeyringSecret, s.KeyringVersion, s.SeedVersion = tc.status, tc.version, tc.seed
			})
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

// I17: only what is listed as a version of the site is pruned, whatever name is given: not the Secret of another site, of another
// program, or one whose number is too far away.
func TestPruneTakesOnlyVersionsOfTheSiteI17(t *testing.T) {
	unlabelled := version("paris", 1, one("01"))
	unlabelled.Labels = nil
	odd := version("paris", 2, one("02"))
	odd.Name = "mysql-orders-paris-keyring-v02"
	others := []client.Object{unlabelled, odd, version("madrid", 1, one("04")), version("paris", 2*farthest, one("05"))}
	w := newWorld(t, append(others, version("paris", 2, one("02")), version("paris", 3, one("03")))...)
	for _, o := range others {
		if err := w.store.Prune(t.Context(), w.group, "paris", o.GetName()); err != nil {
			t.Errorf("I17: %s: %v", o.GetName(), err)
		}
		if !slices.Contains(w.names(), o.GetName()) {
			t.Errorf("I17: %s is gone", o.GetName())
		}
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

// TestWhatCannotBeReadIsInUseI17: a version goes only if everything that could refer to it was seen not to.
func TestWhatCannotBeReadIsInUseI17(t *testing.T) {
	away, gone := errors.New("away"), apierrors.NewNotFound(corev1.Resource("secrets"), "v2")
	const second = "mysql-orders-paris-keyring-v2"
	reads := func(err error, is func(client.Object) bool) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if is(obj) {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		}}
	}
	lists := func(is func(client.ObjectList) bool) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if is(list) {
				return away
			}
			return c.List(ctx, list, opts...)
		}}
	}
	deletes := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return err }}
	}
	secrets := func(o client.Object) bool { _, is := o.(*corev1.Secret); return is }
	for name, tc := range map[string]struct {
		funcs interceptor.Funcs
		want  error
	}{
		"what is in escrow":       {lists(func(l client.ObjectList) bool { _, is := l.(*metav1.PartialObjectMetadataList); return is }), away},
		"the pods":                {lists(func(l client.ObjectList) bool { _, is := l.(*corev1.PodList); return is }), away},
		"the group":               {reads(away, func(o client.Object) bool { _, is := o.(*v1alpha1.MysqlFailoverGroup); return is }), away},
		"the deployment":          {reads(away, func(o client.Object) bool { _, is := o.(*appsv1.Deployment); return is }), away},
		"the version itself":      {reads(away, secrets), away},
		"it went before it was":   {reads(gone, secrets), nil},
		"it cannot be deleted":    {deletes(away), away},
		"it went in between":      {deletes(gone), nil},
		"all of it, and it stays": {deletes(nil), nil},
	} {
		w := newWorld(t, version("paris", 2, one("02")), version("paris", 3, one("03")))
		w.intercept(tc.funcs)
		if err := w.store.Prune(t.Context(), w.group, "paris", second); !errors.Is(err, tc.want) {
			t.Errorf("I17: %s: %v, want %v", name, err, tc.want)
		}
		if !slices.Contains(w.names(), second) {
			t.Errorf("I17: %s: it is gone", name)
		}
	}
}

// TestWhatIsNotReadHasNoDigest: an API server that is away, and a Secret without content, are told apart from what is in escrow.
func TestWhatIsNotReadHasNoDigest(t *testing.T) {
	empty := version("paris", 2, one("02"))
	empty.Data = map[string][]byte{"other": one("02")}
	w := newWorld(t, version("paris", 1, one("01")), empty)
	digest := func(n int) (string, error) {
		return w.store.Digest(t.Context(), "shop", []string{"", "mysql-orders-paris-keyring-v1", "mysql-orders-paris-keyring-v2"}[n])
	}
	if got, err := digest(1); err != nil || got != wire.KeyringDigest(one("01")) {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := digest(2); !errors.Is(err, ErrMissing) || got != "" {
		t.Errorf("%s, %v", got, err)
	}
	away := errors.New("away")
	w.intercept(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return away
	}})
	if got, err := digest(1); !errors.Is(err, away) || got != "" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestWhichNamesHaveNumbers: what another program, or a person, called likewise is passed by.
func TestWhichNamesHaveNumbers(t *testing.T) {
	const prefix = "mysql-orders-paris-keyring-v"
	for name, want := range map[string]int64{
		prefix + "1": 1, prefix + "1000000000": highestVersion, prefix + "1000000001": 0, prefix + "0": 0, prefix + "-1": 0, prefix + "01": 0, prefix + "x": 0, prefix: 0,
		prefix + "9223372036854775808": 0, "12": 0, "mysql-orders-madrid-keyring-v1": 0,
	} {
		if got, ok := numberOf(testGroup, "paris", name); got != want || ok != (want > 0) {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
}
