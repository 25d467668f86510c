// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

func TestNumbersAreNeverGivenTwice(t *testing.T) {
	leaving := version("paris", 7, one("07"))
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"example.org/keep"}, new(metav1.Now())
	foreign := version("paris", 5, one("05"))
	foreign.Labels = nil
	strange := version("paris", 1, one("01"))
	strange.Name = "mysql-orders-paris-keyring-v99999999999999999999"
	zeros := version("paris", 1, one("01"))
	zeros.Name = "mysql-orders-paris-keyring-v012"
	otherSite := version("madrid", 9, one("09"))
	mislabelled := version("paris", 2, one("02"))
	mislabelled.Labels[v1alpha1.LabelKeyringVersion] = "40"
	tests := map[string]struct {
		reason string
		have   []client.Object
		status v1alpha1.SiteKeyringStatus
		want   int64
	}{
		"First":       {reason: "from 1", want: 1},
		"Next":        {reason: "one above the highest", have: []client.Object{version("paris", 1, one("01")), version("paris", 2, one("02"))}, want: 3},
		"Gaps":        {reason: "pruned numbers stay used", have: []client.Object{version("paris", 6, one("06"))}, want: 7},
		"Ten":         {reason: "numbers, not text", have: []client.Object{version("paris", 9, one("09")), version("paris", 10, one("10"))}, want: 11},
		"Leaving":     {reason: "what is being deleted had its number", have: []client.Object{leaving}, want: 8},
		"Status":      {reason: "what status tells was there once", have: []client.Object{version("paris", 2, one("02"))}, status: v1alpha1.SiteKeyringStatus{KeyringVersion: 4}, want: 5},
		"RolledBack":  {reason: "status is older than the newest", have: []client.Object{version("paris", 2, one("02")), version("paris", 6, one("06"))}, status: v1alpha1.SiteKeyringStatus{KeyringVersion: 2}, want: 7},
		"Floor":       {reason: "what was there when the round began", have: []client.Object{version("paris", 2, one("02"))}, status: v1alpha1.SiteKeyringStatus{KeyringVersion: 2, FloorVersion: 6}, want: 7},
		"Seed":        {reason: "what the keyring was seeded from", status: v1alpha1.SiteKeyringStatus{SeedVersion: 3}, want: 4},
		"Rotated":     {reason: "what the last rotation ended with", status: v1alpha1.SiteKeyringStatus{KeyringVersion: 2, RotatedVersion: 8}, want: 9},
		"NameTaken":   {reason: "by what carries no label", have: []client.Object{version("paris", 4, one("04")), foreign}, want: 6},
		"OtherNames":  {reason: "no number of ours", have: []client.Object{strange, zeros}, want: 1},
		"OtherSite":   {reason: "each site counts alone", have: []client.Object{otherSite}, want: 1},
		"Mislabelled": {reason: "the name counts", have: []client.Object{mislabelled}, want: 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.have...)
			w.status("paris", func(s *v1alpha1.SiteKeyringStatus) {
				s.KeyringVersion, s.FloorVersion = tc.status.KeyringVersion, tc.status.FloorVersion
				s.SeedVersion, s.RotatedVersion = tc.status.SeedVersion, tc.status.RotatedVersion
			})
			got, err := w.put(pushOf(one("ff")))
			if err != nil || got.Version != tc.want {
				t.Errorf("%s: version %d, want %d (%v)", tc.reason, got.Version, tc.want, err)
			}
		})
	}
}

// Somebody who may make Secrets, and no more, keeps no keyring out of escrow: whatever has the names of the next versions is passed by,
// never taken for a keyring and never changed.
func TestPlantedNumbersDoNotKeepAKeyringOut(t *testing.T) {
	planted := func(n int64, labelled bool) client.Object {
		s := version("paris", n, one("66"))
		if !labelled {
			s.Labels, s.Annotations, s.Immutable, s.OwnerReferences = nil, nil, nil, nil
		}
		return s
	}
	dense := []client.Object{version("paris", 1, one("01"))}
	for n := range int64(40) {
		dense = append(dense, planted(n+2, false))
	}
	for name, tc := range map[string]struct {
		reason string
		have   []client.Object
		want   int64
	}{
		"dozens of names":        {"the next free one, however far", dense, 42},
		"the highest number":     {"no number of ours is that far from the others", []client.Object{version("paris", 3, one("03")), planted(highestVersion, true)}, 4},
		"the highest, and first": {"nor from none", []client.Object{planted(highestVersion-1, true)}, 1},
		"beyond a free one":      {"free numbers are not left out", []client.Object{planted(1, false), planted(3, false)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.have...)
			got, err := w.put(pushOf(one("ff")))
			if err != nil || got.Version != tc.want {
				t.Fatalf("%s: version %d, want %d (%v)", tc.reason, got.Version, tc.want, err)
			}
			if again, err := w.put(pushOf(one("ff"))); err != nil || again != got {
				t.Errorf("pushed again: %+v, %v", again, err)
			}
			for _, o := range tc.have {
				if s := w.secret(o.GetName()); string(s.Data["keyring"]) == string(one("ff")) {
					t.Errorf("%s was taken for ours", s.Name)
				}
			}
		})
	}
}

func TestTheSameContentHasOneVersion(t *testing.T) {
	a, b := one("0a"), one("0b")
	w := newWorld(t)
	for i, step := range []struct {
		content []byte
		want    int64
	}{{a, 1}, {a, 1}, {b, 2}, {b, 2}, {a, 3}, {a, 3}} {
		got, err := w.put(pushOf(step.content))
		if err != nil || got.Version != step.want {
			t.Errorf("push %d: version %d, want %d (%v)", i, got.Version, step.want, err)
		}
	}
}

// What only looks like the content of the newest version does not count as escrow.
func TestOnlyWhatIsKeptCountsAsEscrow(t *testing.T) {
	content := one("0a")
	for name, change := range map[string]func(*corev1.Secret){
		"other content under the digest": func(s *corev1.Secret) { s.Data["keyring"] = one("0b") },
		"no content":                     func(s *corev1.Secret) { s.Data = nil },
		"can be changed":                 func(s *corev1.Secret) { s.Immutable = nil },
		"is being deleted": func(s *corev1.Secret) {
			s.Finalizers, s.DeletionTimestamp = []string{"example.org/keep"}, new(metav1.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			have := version("paris", 1, content)
			change(have)
			got, err := newWorld(t, have).put(pushOf(content))
			if err != nil || got.Version != 2 {
				t.Errorf("version %d, want a new one (%v)", got.Version, err)
			}
		})
	}
}

// Only what the API server gives back is in escrow.
func TestWhatIsReadBackMustBeWhatWasStored(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret) error{
		"gone":      func(s *corev1.Secret) error { return apierrors.NewNotFound(corev1.Resource("secrets"), s.Name) },
		"damaged":   func(s *corev1.Secret) error { s.Data["keyring"] = one("0b"); return nil },
		"another":   func(s *corev1.Secret) error { s.UID = "other"; return nil },
		"mutable":   func(s *corev1.Secret) error { s.Immutable = new(false); return nil },
		"leaving":   func(s *corev1.Secret) error { s.DeletionTimestamp = new(metav1.Now()); return nil },
		"truncated": func(s *corev1.Secret) error { s.Data = nil; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.intercept(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, obj, opts...)
				if s, ok := obj.(*corev1.Secret); ok && strings.Contains(key.Name, "-keyring-v") && err == nil {
					return change(s)
				}
				return err
			}})
			if got, err := w.put(pushOf(one("0a"))); err == nil {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

func TestConcurrentPushes(t *testing.T) {
	const pushers = 8
	for name, content := range map[string]func(i int) []byte{
		"of the same":  func(int) []byte { return one("0a") },
		"of their own": func(i int) []byte { return one(fmt.Sprintf("%02x", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			answers := make([]wire.KeyringEscrowed, pushers)
			var all sync.WaitGroup
			for i := range pushers {
				all.Go(func() {
					var err error
					// A push that found no number in time is tried again, as a sidecar does.
					for range 5 {
						if answers[i], err = w.put(pushOf(content(i))); err == nil {
							return
						}
					}
					t.Error(err)
				})
			}
			all.Wait()
			for i, a := range answers {
				if got := string(w.secret(a.Secret).Data["keyring"]); got != string(content(i)) {
					t.Errorf("push %d: version %d holds something else", i, a.Version)
				}
			}
			if stored := len(w.names()); name == "of the same" && stored != 1 || name != "of the same" && stored < pushers {
				t.Errorf("%d versions are stored", stored)
			}
		})
	}
}

// I16: whatever a sidecar takes for a keyring fits into what the operator takes, and into a Secret.
func TestTheLargestKeyringFits(t *testing.T) {
	content := []byte(`{"version":"1.0","elements":[`)
	for i := 0; len(content) < wire.MaxKeyringFile-200; i++ {
		if i > 0 {
			content = append(content, ',')
		}
		content = fmt.Appendf(content, `{"user":"","data_id":"INNODBKey-%d","data_type":"AES","data":"%064d","extension":[]}`, i, i)
	}
	content = append(content, "]}"...)
	w := newWorld(t)
	push := pushOf(content)
	if _, err := w.put(push); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(push)
	if err != nil {
		t.Fatal(err)
	}
	if room := wire.MaxKeyringBytes - len(body); len(content) > wire.MaxKeyringFile || room < 4096 {
		t.Errorf("a keyring of %d bytes leaves %d of the body for names", len(content), room)
	}
	if _, size, err := w.store.Measure(t.Context(), "shop", "mysql-orders-paris-keyring-v1"); err != nil || size != len(content) {
		t.Errorf("measured %d bytes, %v", size, err)
	}
	if wire.MaxKeyringFile+(64<<10) > corev1.MaxSecretSize {
		t.Error("it does not fit into a Secret")
	}
}

func TestTooManyVersions(t *testing.T) {
	var have []client.Object
	for n := range int64(maxVersions) {
		have = append(have, version("paris", n+1, one("0a")))
	}
	w := newWorld(t, have...)
	if _, err := w.put(pushOf(one("0b"))); !errors.Is(err, wire.ErrTooManyVersions) {
		t.Errorf("one more: %v", err)
	}
	if got, err := w.put(pushOf(one("0a"))); err != nil || got.Version != maxVersions {
		t.Errorf("the newest one again: %+v, %v", got, err)
	}
}

// A group that is being deleted and leaves its data must leave its keys too.
func TestOwnerWhileTheGroupIsDeleted(t *testing.T) {
	for policy, owners := range map[v1alpha1.DeletionPolicy]int{v1alpha1.DeletionRetain: 0, v1alpha1.DeletionDelete: 1} {
		g := &v1alpha1.MysqlFailoverGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: testGroup, UID: "u", DeletionTimestamp: new(metav1.Now())},
			Spec:       v1alpha1.MysqlFailoverGroupSpec{DeletionPolicy: policy},
		}
		if s := secretOf(g, pushOf(one("00")), 1); len(s.OwnerReferences) != owners {
			t.Errorf("%s: owners %v", policy, s.OwnerReferences)
		}
	}
}

func TestVersions(t *testing.T) {
	kept := version("paris", 10, one("10"))
	kept.OwnerReferences = nil
	w := newWorld(t, version("paris", 9, one("09")), kept, version("paris", 2, one("02")), version("madrid", 11, one("11")))
	got, err := w.store.Versions(t.Context(), "shop", testGroup, "paris")
	if err != nil {
		t.Fatal(err)
	}
	want := []Version{
		{Number: 10, Secret: "mysql-orders-paris-keyring-v10", Digest: wire.KeyringDigest(one("10"))},
		{Number: 9, Secret: "mysql-orders-paris-keyring-v9", Digest: wire.KeyringDigest(one("09")), Owner: "group-uid"},
		{Number: 2, Secret: "mysql-orders-paris-keyring-v2", Digest: wire.KeyringDigest(one("02")), Owner: "group-uid"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := w.store.Digest(t.Context(), "shop", "mysql-orders-paris-keyring-v3"); !errors.Is(err, ErrMissing) {
		t.Errorf("digest of nothing: %v", err)
	}
}

// I17: what is no version of the keyring is not listed as one, and one that leaves is not taken for one that stays.
func TestWhatCountsAsAVersionI17(t *testing.T) {
	strange := version("paris", 1, one("01"))
	strange.Name = "mysql-orders-paris-keyring-v01"
	other := version("paris", 1, one("01"))
	other.Name = "orders-passwords"
	leaving := version("paris", 3, one("03"))
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"example.org/keep"}, new(metav1.Now())
	w := newWorld(t, strange, other, leaving, version("paris", 2, one("02")))
	got, err := w.store.Versions(t.Context(), "shop", testGroup, "paris")
	if err != nil {
		t.Fatal(err)
	}
	want := []Version{
		{Number: 3, Secret: "mysql-orders-paris-keyring-v3", Digest: wire.KeyringDigest(one("03")), Deleting: true, Owner: "group-uid"},
		{Number: 2, Secret: "mysql-orders-paris-keyring-v2", Digest: wire.KeyringDigest(one("02")), Owner: "group-uid"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("I17 (-want +got):\n%s", diff)
	}
}

// I17: how far a number may be counts from the next lower one. A site that has had a hundred thousand versions keeps seeing its newest.
func TestHowFarANumberMayBeI17(t *testing.T) {
	for name, tc := range map[string]struct{ have, want []int64 }{
		"one after the other":             {[]int64{farthest, 2 * farthest, 3 * farthest}, []int64{3 * farthest, 2 * farthest, farthest}},
		"the first is too far":            {[]int64{farthest + 1, farthest + 2}, nil},
		"a later one is too far":          {[]int64{farthest, 2*farthest + 1}, []int64{farthest}},
		"whatever is above it counts not": {[]int64{1, farthest + 2, farthest + 3}, []int64{1}},
	} {
		var have []client.Object
		for _, n := range tc.have {
			have = append(have, version("paris", n, one("01")))
		}
		w := newWorld(t, have...)
		versions, err := w.store.Versions(t.Context(), "shop", testGroup, "paris")
		var got []int64
		for _, v := range versions {
			got = append(got, v.Number)
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("I17: %s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
