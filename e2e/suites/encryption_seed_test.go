// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// The escrow Secret from which a site is to be unsealed is deleted before its pod is replaced: that pod has the only copy, and stays. The
// update is held by a pause, as a person's would.
func seedLostBeforeItsPod(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	site := replicas(group)[0]
	pod, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	annotate(t, v.Group, v1alpha1.AnnotationPauseUntil, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	annotate(t, v.Group, v1alpha1.AnnotationRotateKeyring, site)
	unsealing(t, v, site)
	lost := keyringOf(group, site)
	deleteEscrow(t, v, lost.KeyringSecret)
	v.failed(t, site)
	if outcome := answered(t, v.Group, v1alpha1.AnnotationRotateKeyring, site, time.Minute); outcome.Outcome != v1alpha1.RequestRefused {
		t.Errorf("the order was answered: %+v", outcome)
	}
	unannotate(t, v, v1alpha1.AnnotationPauseUntil)
	sleep(t, 20*time.Second) // nothing may touch it now that the update goes on
	if now, err := v.Pod(t.Context(), site); err != nil || now.UID != pod.UID {
		t.Fatalf("the pod that has the only copy was replaced: %v", err)
	}
	runbook(t, v, "recover", site)
	after := keyringOf(v.sealed(t, 2*time.Minute), site)
	if after.KeyringSecret != lost.KeyringSecret || after.KeyringDigest != lost.KeyringDigest {
		t.Errorf("sealed with %s (%s), lost was %s (%s)", after.KeyringSecret, after.KeyringDigest, lost.KeyringSecret, lost.KeyringDigest)
	}
}

// The same a moment later: the pod that had it ends, and the one after it waits for it. Nobody gives the data up but a person.
func seedLostWithItsPod(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	site := replicas(group)[0]
	lost := keyringOf(group, site)
	annotate(t, v.Group, v1alpha1.AnnotationRotateKeyring, site)
	deployment, key := &appsv1.Deployment{}, client.ObjectKey{Namespace: v.Namespace, Name: v1alpha1.SiteName(v.Name, site)}
	for deadline := time.Now().Add(resealing); ; time.Sleep(10 * time.Millisecond) {
		if err := v.Kube.Get(t.Context(), key, deployment); err == nil && memoryBacked(deployment.Spec.Template.Spec) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the Deployment was not made unsealed")
		}
	}
	deleteEscrow(t, v, lost.KeyringSecret)
	v.failed(t, site)
	group, err := v.Await(t.Context(), time.Minute, "the way out to be named", func(group *v1alpha1.MysqlFailoverGroup) error {
		k := keyringOf(group, site)
		if !strings.Contains(k.Message, v1alpha1.AnnotationRecloneSite+"="+site+":confirm") {
			return fmt.Errorf("status says %q", k.Message)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !siteOf(group, site).Provisioned {
		t.Error("the data was given up without a person's word")
	}
	reclonedByOrder(t, v, site, lost)
}

// unsealing waits until status says that a site is unsealed.
func unsealing(t *testing.T, v *vault, site string) {
	t.Helper()
	if _, err := v.Await(t.Context(), time.Minute, "the site to be about to be unsealed", func(group *v1alpha1.MysqlFailoverGroup) error {
		if k := keyringOf(group, site); k.Phase != v1alpha1.KeyringUnsealed {
			return errors.New("the keyring is " + string(k.Phase))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// unannotate takes an annotation off the group.
func unannotate(t *testing.T, v *vault, annotation string) {
	t.Helper()
	group, err := v.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := group.DeepCopy()
	delete(group.Annotations, annotation)
	if err := v.Kube.Patch(t.Context(), group, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// keyringVolume is the volume of a pod in which its keyring is.
const keyringVolume = "keyring"

// memoryBacked tells whether a pod keeps its keyring where it can write it.
func memoryBacked(spec corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == keyringVolume && v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory
	})
}
