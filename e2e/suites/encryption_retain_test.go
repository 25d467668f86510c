// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// What keyring.retainVersions has without being asked for, and the least that it can be.
const (
	retainDefault = 5
	retainLeast   = 2
)

// As many superseded versions stay as the group is told to retain, the newest of them, beside the one that the site is sealed
// with; numbers are never given again, and to retain more deletes nothing.
func versionsRetained(t *testing.T, v *vault) {
	site := replicas(v.sealed(t, comeBack))[0]
	t.Cleanup(func() {
		if err := retain(context.Background(), v, retainDefault); err != nil {
			t.Errorf("retain as many as before: %v", err)
		}
	})
	ever := inEscrow(t, v, site)
	for len(ever) <= 1+retainLeast+1 { // without two too many nothing shows that the older ones go and not just one
		turn(t, v, site)
		ever = union(ever, inEscrow(t, v, site))
	}
	if err := retain(t.Context(), v, retainLeast); err != nil {
		t.Fatal(err)
	}
	pruned(t, v, site, ever)
	for range 2 {
		before := slices.Max(ever)
		turn(t, v, site)
		kept := pruned(t, v, site, ever)
		if newest := slices.Max(kept); newest <= before {
			t.Errorf("%s is sealed with version %d: %d was given before", site, newest, before)
		}
		ever = union(ever, kept)
	}
	if err := retain(t.Context(), v, retainDefault); err != nil {
		t.Fatal(err)
	}
	before := inEscrow(t, v, site)
	turn(t, v, site)
	// What is pruned is pruned in the pass that finds the site sealed, or the next one: that nothing is, is what is waited for.
	sleep(t, 15*time.Second)
	after := inEscrow(t, v, site)
	for _, number := range before {
		if !slices.Contains(after, number) {
			t.Errorf("with %d to retain, version %d of %v is gone; there are %v", retainDefault, number, before, after)
		}
	}
	if len(after) <= len(before) {
		t.Errorf("after a rotation there are the versions %v, before %v", after, before)
	}
	checkSealed(t, v, v.sealed(t, time.Minute), site)
}

// retain tells the group how many superseded versions it shall retain. No pod is replaced for it.
func retain(ctx context.Context, v *vault, number int32) error {
	return setSpec(ctx, v.Group, func(spec *v1alpha1.MysqlFailoverGroupSpec) {
		spec.EncryptionAtRest.Keyring.RetainVersions = number
	})
}

// turn rotates the keyring of a replica. How is shown by other stories.
func turn(t *testing.T, v *vault, site string) {
	t.Helper()
	annotate(t, v.Group, v1alpha1.AnnotationRotateKeyring, site)
	if outcome := answered(t, v.Group, v1alpha1.AnnotationRotateKeyring, site, resealing); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the rotation of %s was answered: %+v", site, outcome)
	}
	v.sealed(t, resealing)
}

// inEscrow are the versions of a site that are in escrow, oldest first.
func inEscrow(t *testing.T, v *vault, site string) []int64 {
	t.Helper()
	numbers, err := v.versionsOf(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func (v *vault) versionsOf(ctx context.Context, site string) ([]int64, error) {
	var secrets corev1.SecretList
	if err := v.Kube.List(ctx, &secrets, client.InNamespace(v.Namespace), client.MatchingLabels{
		v1alpha1.LabelName: v1alpha1.NameKeyring, v1alpha1.LabelGroup: v.Name, v1alpha1.LabelSite: site,
	}); err != nil {
		return nil, err
	}
	var numbers []int64
	for _, s := range secrets.Items {
		number, err := strconv.ParseInt(s.Labels[v1alpha1.LabelKeyringVersion], 10, 64)
		if err != nil || s.Name != v1alpha1.KeyringSecret(v.Name, site, number) {
			return nil, fmt.Errorf("%s is labelled with version %q", s.Name, s.Labels[v1alpha1.LabelKeyringVersion])
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers, nil
}

// pruned waits until a site has the version that it is sealed with, the newest retainLeast of all others that it ever had, and
// nothing else.
func pruned(t *testing.T, v *vault, site string, ever []int64) []int64 {
	t.Helper()
	sealedWith := keyringOf(v.sealed(t, comeBack), site).KeyringVersion
	var now []int64
	if err := stage.Poll(t.Context(), time.Minute, "the older versions of "+site+" to be pruned", func(ctx context.Context) (err error) {
		if now, err = v.versionsOf(ctx, site); err != nil {
			return err
		}
		all := union(ever, now)
		if all[len(all)-1] != sealedWith {
			return fmt.Errorf("it is sealed with version %d of %v", sealedWith, all)
		}
		if want := all[max(0, len(all)-1-retainLeast):]; !slices.Equal(now, want) {
			return fmt.Errorf("there are the versions %v, want %v: %d is what it is sealed with", now, want, sealedWith)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("of the versions %v of %s there are %v", union(ever, now), site, now)
	return now
}

// union is all that is in one list or the other, in order.
func union(a, b []int64) []int64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
