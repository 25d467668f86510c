// SPDX-License-Identifier: Apache-2.0

//go:build lab && more

package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// A group is removed by its chart. Its volumes and Secrets stay, because its deletion policy is Retain.
func TestRemovedGroupKeepsItsData(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	spec := stage.DefaultSpec("kept")
	spec.Sites = spec.Sites[:2]
	g := ownGroup(t, &stage.Group{Stage: lab, Namespace: "suite-kept", Name: "kept"}, spec)
	if _, err := g.AwaitReady(ctx, bringUp); err != nil {
		t.Fatal(err)
	}
	volumes := uids(t, g, &corev1.PersistentVolumeClaimList{})
	secrets := uids(t, g, &corev1.SecretList{})
	if _, err := lab.Lab.Helm(ctx, "uninstall", "kept", "--namespace", g.Namespace, "--wait", "--timeout", "3m"); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(ctx, 2*time.Minute, "the pods to go", func(ctx context.Context) error {
		pods, err := g.Pods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are left", len(pods))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("the group is still there: %v", err)
	}
	// The garbage collector takes a while to find what has no owner left.
	sleep(t, 10*time.Second)
	if got := uids(t, g, &corev1.PersistentVolumeClaimList{}); !maps.Equal(got, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, got)
	}
	left := uids(t, g, &corev1.SecretList{})
	for _, secret := range []string{v1alpha1.RootSecret("kept"), v1alpha1.AccountsSecret("kept"), "kept-tls"} {
		if left[secret] == "" || left[secret] != secrets[secret] {
			t.Errorf("secret %s did not stay: before %q, after %q", secret, secrets[secret], left[secret])
		}
	}
	checkSaidSo(t, g)
}

// checkSaidSo looks for the event and for the chart's notes.
func checkSaidSo(t *testing.T, g *stage.Group) {
	if err := stage.Poll(t.Context(), time.Minute, "the event that tells what stays", func(ctx context.Context) error {
		events, err := g.Events(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "GroupDataKept") }) {
			return errors.New(strings.Join(events, "\n"))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	notes, err := os.ReadFile(filepath.Join(lab.Chart("mysql-failover-group"), "templates", "NOTES.txt"))
	if err != nil || !strings.Contains(string(notes), "keeps its data volumes and Secrets") {
		t.Errorf("the chart's notes do not tell what stays (%v)", err)
	}
}
