// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The pod's tmpfs holds the only copy: neither an update nor an eviction touches it, and the documented commands bring the Secret
// back from it. Then the update goes on, and the new pod shows that what was restored is good.
func escrowLostPodRuns(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	site, other := unneeded(t, group)
	pod, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), time.Minute, "the right to evict "+site, func(ctx context.Context) error {
		return evict(ctx, v.Group, site)
	}); err != nil {
		t.Errorf("nothing is lost yet and nobody needs %s for a failover: %v", site, err)
	}
	digest := v.liveDigest(t, site)
	lost := loseSecret(t, v, site)
	v.failed(t, site)
	want := updateAround(t, v, site, other)
	if err := stage.Poll(t.Context(), time.Minute, "the protection of "+site, func(ctx context.Context) error {
		// While another pod is not ready none may be evicted: it has to be the budget for pods that must not go.
		if now, err := v.Pod(ctx, site); err != nil || now.Labels[v1alpha1.LabelProtected] != v1alpha1.HealthyYes {
			return errors.Join(err, errors.New("its pod is not labelled"))
		}
		if err := evict(ctx, v.Group, site); !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("eviction: %w, want a refusal", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	samePod(t, v, site, pod)

	runbook(t, v, "recover", site)
	updatedAfterwards(t, v, site, want, pod)
	group = v.sealed(t, time.Minute)
	after := keyringOf(group, site)
	if after.KeyringSecret != lost.KeyringSecret || after.KeyringDigest != digest {
		t.Errorf("restored is %s with %s, lost was %s with %s", after.KeyringSecret, after.KeyringDigest, lost.KeyringSecret, digest)
	}
	checkSealed(t, v, group, site)
	plugin(t, "keyring", "verify", v.Name, "-n", v.Namespace).want(t, 0, nil)
	// A roll-back to what the site is sealed with anyway: the commands, without the risk.
	runbook(t, v, "roll back", site, "SECRET="+after.KeyringSecret)
	v.sealed(t, resealing)
}

// unneeded is a replica that is never promoted, so that nothing but its keyring protects its pod, and a replica that may be.
func unneeded(t *testing.T, group *v1alpha1.MysqlFailoverGroup) (site, other string) {
	t.Helper()
	for _, s := range group.Spec.Sites {
		switch {
		case s.Name == group.Status.ActiveSite:
		case s.Role == v1alpha1.DROnly:
			site = s.Name
		default:
			other = s.Name
		}
	}
	if site == "" || other == "" {
		t.Fatalf("with %s active there is no replica of each role", group.Status.ActiveSite)
	}
	return site, other
}

// updateAround changes max_connections, which gives every site a new pod, and waits until another site has it and the operator
// says that it leaves this one. It returns the value, which stays: the site has to get it when its keyring is back.
func updateAround(t *testing.T, v *vault, site, other string) (want string) {
	t.Helper()
	before, err := strconv.Atoi(query(t, v.Group, other, "SELECT @@max_connections"))
	if err != nil {
		t.Fatal(err)
	}
	want = strconv.Itoa(before - 1)
	if err := setSpec(t.Context(), v.Group, func(spec *v1alpha1.MysqlFailoverGroupSpec) {
		spec.MysqlConf = map[string]string{"max_connections": want}
	}); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), rolling, other+" to be updated", func(ctx context.Context) error {
		return hasConnections(ctx, v, other, want)
	}); err != nil {
		t.Fatal(err)
	}
	// All others may get theirs by then, and the role may move for it.
	if _, err := v.Await(t.Context(), rolling, "the update to stop at "+site, func(group *v1alpha1.MysqlFailoverGroup) error {
		c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionProgressing)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "the pod of "+site+" is not replaced") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	return want
}

func hasConnections(ctx context.Context, v *vault, site, want string) error {
	got, err := v.RootSQL(ctx, site, "SELECT @@max_connections")
	if err == nil && strings.TrimSpace(got) != want {
		err = fmt.Errorf("%s: max_connections = %s, want %s", site, strings.TrimSpace(got), want)
	}
	return err
}

// samePod fails the test if a pod was replaced, or a container of it restarted.
func samePod(t *testing.T, v *vault, site string, before *corev1.Pod) {
	t.Helper()
	now, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	if now.UID != before.UID || now.DeletionTimestamp != nil {
		t.Fatalf("the pod of %s, which had the only copy of its keyring, was replaced", site)
	}
	restarts := map[string]int32{}
	for _, c := range before.Status.ContainerStatuses {
		restarts[c.Name] = c.RestartCount
	}
	for _, c := range now.Status.ContainerStatuses {
		if c.RestartCount != restarts[c.Name] {
			t.Errorf("%s of %s was restarted %d times, before %d", c.Name, site, c.RestartCount, restarts[c.Name])
		}
	}
}

// updatedAfterwards waits until a site that was left out of an update has it too, in a new pod.
func updatedAfterwards(t *testing.T, v *vault, site, want string, before *corev1.Pod) {
	t.Helper()
	const what = " to be updated, now that its keyring is in escrow"
	if _, err := v.Await(t.Context(), rolling, site+what, func(group *v1alpha1.MysqlFailoverGroup) error {
		now, err := v.Pod(t.Context(), site)
		if err != nil || now.UID == before.UID {
			return errors.Join(err, errors.New("there is no new pod yet"))
		}
		return errors.Join(stage.NotUpdated(group), hasConnections(t.Context(), v, site, want))
	}); err != nil {
		t.Fatal(err)
	}
}
